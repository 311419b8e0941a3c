"""Strided convolutions of few channels, as those of more channels without strides.

As many places as a step has become channels of one, so that a picture of three
channels has 12, and 16 with those that are 0. For bfloat16 alone, whose kernel for few
channels takes cuDNN long: that of float16 is as fast. Windows are as many cells as they
touch: a place beside a window that is infinite, or NaN, times a weight of 0 gives NaN.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnish.backend.cuda.kernels import LONG, by_value, kernel
from burnish.backend.cuda.layout import contiguous, empty

_CHANNELS, _PACK = 4, 8
"""The most channels that are few, and channels that are read at a time."""


def fits(x: Any, w: Any, groups: int) -> bool:
    """Whether a convolution of x (N, C, H, W) is computed so.

    w: its window, which has a step of its own along each axis.
    """
    few = groups == 1 and x.ndim == 4 and x.shape[1] <= _CHANNELS
    steps = 1 < prod(w.stride) <= 16 and set(w.dilation) == {1}
    wide = all(k > step for k, step in zip(w.kernel, w.stride, strict=True))
    return few and steps and wide and x.dtype.char == "E" and x.size < LONG


def is_wide(w: Any) -> bool:
    """Whether windows are more than two cells: cuDNN is no faster with fewer."""
    return min(window(w).kernel) > 2


def window(w: Any) -> Any:
    """The window of the convolution of cells."""
    taps = tuple(-(-k // s) for k, s in zip(w.kernel, w.stride, strict=True))
    return w._replace(kernel=taps, stride=(1, 1), pads=((0, 0), (0, 0)))


def inputs(x: Any, w: Any) -> Any:
    """x (N, C, H, W) in cells, with its padding: (N, C', *P), channels-last"""
    cells = [out + taps - 1 for out, taps in zip(w.out, window(w).kernel, strict=True)]
    return _folded(x, w, [before for before, _ in w.pads], cells)


def weights(weight: Any, w: Any) -> Any:
    """weight (O, C, *K) in cells: (O, C', *K'), channels-last"""
    return _folded(weight, w, [0, 0], window(w).kernel)


def unfolded(weight: Any, c: int, w: Any) -> Any:
    """What `weights` of (O, c, *K) made, or its gradient, as it was."""
    taps, steps = window(w).kernel, w.stride
    own = weight[:, : prod(steps) * c].reshape(len(weight), *steps, c, *taps)
    sizes = [s * k for s, k in zip(steps, taps, strict=True)]
    own = contiguous(own.transpose(0, 3, 4, 1, 5, 2)).reshape(len(weight), c, *sizes)
    return contiguous(own[:, :, : w.kernel[0], : w.kernel[1]])


def _folded(x: Any, w: Any, before: Any, cells: Any) -> Any:
    c, packs = x.shape[1], -(-prod(w.stride) * x.shape[1] // _PACK)
    y = empty((len(x), packs * _PACK, *cells), x.dtype)
    made = kernel("folded", channels=c, stride=w.stride, packs=packs)
    steps = [step // x.itemsize for step in x.strides]
    geometry = by_value(np.array([*steps, *x.shape[2:], *before, *cells], np.int64))
    size = len(x) * prod(cells)
    if size:
        made((-(-size // 256),), (256,), (x, y, np.uint32(size), geometry))
    return y
