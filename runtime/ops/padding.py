"""More or less at the ends of axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import namespace
from burnish.errors import InputError
from burnish.operator import operator
from burnish.ops._shapes import axes_of, plain
from burnish.ops.index import gather


def pad(
    x: Any, *, pads: Any, mode: str = "constant", value: Any = 0, axes: Any = None
) -> Any:
    """x with more at its ends: ((before, after), ...), one pair an axis.

    mode: "constant" (of `value`), "reflect", "edge" or "wrap", as `numpy.pad`. Negative
    numbers take away. axes: which ones the pairs are for, all of them unless given.
    """
    if axes is not None:
        chosen = dict(zip(axes_of(axes, len(x.shape)), pads, strict=True))
        pads = [chosen.get(axis, (0, 0)) for axis in range(len(x.shape))]
    if mode == "constant":
        pairs = tuple((int(before), int(after)) for before, after in pads)
        return pad_constant(x, pads=pairs, value=value)
    for axis, (before, after) in enumerate(pads):
        if (before, after) != (0, 0):
            grown = (max(before, 0), max(after, 0))
            places = namespace().pad(np.arange(x.shape[axis]), grown, mode)
            places = places[max(-before, 0) : len(places) - max(-after, 0)]
            x = gather(x, namespace(plain(x)).asarray(places), axis=axis)
    return x


@operator
def pad_constant(x, *, pads: tuple[tuple[int, int], ...], value: Any = 0):
    """x with `value` around it; see `pad`."""
    shape, source, target = [], [], []
    for n, (before, after) in zip(x.shape, pads, strict=True):
        if n + min(before, 0) + min(after, 0) < 0:
            raise InputError(
                f"pad: expected to take at most {n} from x {x.shape}, got {pads}"
            )
        shape.append(n + before + after)
        source.append(slice(max(-before, 0), n - max(-after, 0)))
        kept = n - max(-before, 0) - max(-after, 0)
        target.append(slice(max(before, 0), max(before, 0) + kept))
    y = namespace(x).full(shape, value, x.dtype)
    y[tuple(target)] = x[tuple(source)]
    return y


@pad_constant.vjp
def _(g, y, x, *, pads, value):
    return pad_constant(g, pads=tuple((-before, -after) for before, after in pads))
