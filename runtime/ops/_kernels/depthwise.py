"""Convolutions with one input channel a group, in the better of two ways.

Legend: N batch, C channels in, M channels out for each of them: O = C * M.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from burnish.backend import Array
from burnish.ops._kernels import depthwise_bands as bands
from burnish.ops._kernels import depthwise_rows as rows
from burnish.ops._kernels.window import Window

_FEW = 32  # places of all results below which calls cost more: 16 times for images


def depthwise(x: Array, weight: Array, w: Window) -> Array:
    """x (N, C, *S), weight (O, 1, *K) -> (N, O, *P)"""
    taps = _taps(weight, x.shape[1])
    y = _made(bands.correlated, rows.correlated, x, taps, w)
    return y.reshape(len(x), len(weight), *w.out)


def depthwise_input_gradient(
    g: Array, weight: Array, w: Window, sizes: tuple[int, ...], c: int
) -> Array:
    """x's gradient (N, C, *sizes), from g (N, O, *P)."""
    given = _parts(g, c), _taps(weight, c), w, sizes
    return _made(bands.input_gradient, rows.input_gradient, *given)


def depthwise_weight_gradient(x: Array, g: Array, w: Window) -> Array:
    """weight's gradient (O, 1, *K), from x (N, C, *S), g (N, O, *P)."""
    given = x, _parts(g, x.shape[1]), w
    found = _made(bands.taps_gradient, rows.taps_gradient, *given)
    return found.reshape(g.shape[1], 1, *w.kernel)


def _taps(weight: Array, c: int) -> Array:
    return weight.reshape(c, len(weight) // c, *weight.shape[2:])


def _parts(g: Array, c: int) -> Array:
    return g.reshape(len(g), c, g.shape[1] // c, *g.shape[2:])


def _made(
    banded: Callable[..., Array],
    by_rows: Callable[..., Array],
    a: Array,
    b: Array,
    w: Window,
    *sizes: tuple[int, ...],
) -> Array:
    """The result of the way that is faster for these arrays."""
    dtype = np.result_type(a.dtype, b.dtype)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if _suits_bands(a, w):
        with np.errstate(all="ignore"):
            y = banded(a, b, w, *sizes)
            # a band's zeros times infinity are not numbers: those places see nothing
            if np.isfinite(np.vdot(y, y)):
                return y
    return by_rows(a, b, w, *sizes)


def _suits_bands(x: Array, w: Window) -> bool:
    """Whether there are enough positions to pay for a call."""
    if not isinstance(x, np.ndarray) or x.dtype not in (np.float32, np.float64):
        return False
    few = _FEW if prod(w.kernel[:-1]) == 1 else 16 * _FEW
    return len(w.kernel) < 3 and len(x) * prod(w.out) >= few
