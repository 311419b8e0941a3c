"""Clip elements to bounds, which are called min and max as everywhere."""

from __future__ import annotations

from burnish.backend import Array, namespace
from burnish.operator import operator
from burnish.ops._shapes import unbroadcast
from burnish.ops.elementwise.arithmetic import maximum
from burnish.ops.elementwise.compare import where


@operator
def clip(x, min=None, max=None) -> Array:
    """x held between min and max; each may be an array, a number or None.

    On a bound the gradient is x's; beyond it, the bound's.
    """
    xp = namespace(x, min, max)
    if isinstance(min, int | float) and isinstance(max, int | float):
        return xp.clip(x, min, max)
    x = x if min is None else xp.maximum(x, min)
    return x if max is None else xp.minimum(x, max)


@clip.vjp("x")
def _(g, y, x, min=None, max=None):
    inside = None if min is None else x >= min
    if max is not None:
        inside = x <= max if inside is None else inside & (x <= max)
    return unbroadcast(g if inside is None else where(inside, g, 0), x)


@clip.vjp("min")
def _(g, y, x, min, max=None):
    g = where(x < min, g, 0)
    return unbroadcast(g if max is None else where(min < max, g, 0), min)


@clip.vjp("max")
def _(g, y, x, min, max):
    beyond = x > max if min is None else maximum(x, min) > max
    return unbroadcast(where(beyond, g, 0), max)
