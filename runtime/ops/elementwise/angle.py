"""Angles and distances in the plane."""

from __future__ import annotations

import math

from burnish.backend import Array, namespace
from burnish.operator import composed, operator
from burnish.ops._shapes import unbroadcast
from burnish.ops.elementwise.compare import where


@operator
def hypot(a, b) -> Array:
    """The distance of the point (a, b) from (0, 0), where its gradient is 0."""
    return namespace(a, b).hypot(a, b)


@hypot.vjp("a")
def _(g, y, a, b):
    return unbroadcast(g * a / where(y == 0, 1, y), a)


@hypot.vjp("b")
def _(g, y, a, b):
    return unbroadcast(g * b / where(y == 0, 1, y), b)


@composed
def deg2rad(x) -> Array:
    """Degrees in radians."""
    return x * (math.pi / 180)


@composed
def rad2deg(x) -> Array:
    """Radians in degrees."""
    return x * (180 / math.pi)
