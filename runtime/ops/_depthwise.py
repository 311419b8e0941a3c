"""Convolutions with one input channel a group, without columns and matrix products.

Channels come last, so that what a place of the kernel sees is a long row, and its
weights are another: `einsum` adds up such products without arrays in between. Every
input channel has m output channels: O = C * m.
"""

from __future__ import annotations

import numpy as np

from burnish.backend import Array, namespace
from burnish.ops._window import Window, padded


def depthwise(x: Array, weight: Array, w: Window) -> Array:
    """x (N, C, *S) with its padding, weight (O, 1, *K) -> (N, O, *P)"""
    xp, (n, c), o = namespace(x), x.shape[:2], weight.shape[0]
    y = xp.empty((n, c, o // c, *w.out), xp.result_type(x, weight))
    taps = weight.reshape(c, o // c, *w.kernel)
    rows = [_tiled(taps[:, m], w, y.dtype) for m in range(o // c)]
    kernel, lead, row = _labels(w)
    for i in range(n if y.size else 0):
        seen = _windows(x[i].astype(y.dtype, copy=False), w)
        labels = [*kernel, *lead, *row]
        for m, weights in enumerate(rows):
            made = xp.einsum(seen, labels, weights, [*kernel, *row], [*lead, *row])
            y[i, :, m] = xp.moveaxis(made.reshape(*w.out, c), -1, 0)
    return y.reshape(n, o, *w.out)


def depthwise_input_gradient(
    g: Array, weight: Array, w: Window, sizes: tuple[int, ...], c: int
) -> Array:
    """x's gradient (N, C, *sizes): the kernel turned round over g's spread elements."""
    xp, (n, o), rank = namespace(g), g.shape[:2], len(sizes)
    spread = tuple((p - 1) * s + 1 for p, s in zip(w.out, w.stride, strict=True))
    apart = g
    if spread != tuple(w.out):
        apart = xp.zeros((n, o, *spread), g.dtype)
        apart[(..., *(slice(None, None, s) for s in w.stride))] = g
    pads = tuple(
        (d * (k - 1) - before, size + before - length)
        for k, d, (before, _), size, length in zip(
            w.kernel, w.dilation, w.pads, sizes, spread, strict=True
        )
    )
    apart = padded(apart, pads).reshape(n, c, o // c, *_room(spread, pads))
    turned = xp.flip(weight, tuple(range(2, 2 + rank))).reshape(c, o // c, *w.kernel)
    back = Window(w.kernel, (1,) * rank, w.dilation, pads, tuple(sizes))
    y = depthwise(apart[:, :, 0], turned[:, :1], back)
    for m in range(1, o // c):
        y += depthwise(apart[:, :, m], turned[:, m : m + 1], back)
    return y


def depthwise_weight_gradient(x: Array, g: Array, w: Window) -> Array:
    """weight's gradient (O, 1, *K), from x (N, C, *S) with its padding, g (N, O, *P)"""
    xp, (n, c), o = namespace(x), x.shape[:2], g.shape[1]
    dtype = xp.result_type(x, g)
    total = xp.zeros((o // c, *w.kernel, w.out[-1], c), dtype)
    kernel, lead, row = _labels(w)
    parts = g.astype(dtype, copy=False).reshape(n, c, o // c, *w.out)
    for i in range(n if g.size else 0):
        seen = _windows(x[i].astype(dtype, copy=False), w)
        labels = [*kernel, *lead, *row]
        for m in range(o // c):
            pulled = xp.ascontiguousarray(xp.moveaxis(parts[i, :, m], 0, -1))
            pulled = pulled.reshape(*w.out[:-1], *seen.shape[2 * len(kernel) - 1 :])
            found = xp.einsum(seen, labels, pulled, [*lead, *row], [*kernel, *row])
            total[m] += found.reshape(total.shape[1:])
    found = xp.moveaxis(total.sum(axis=-2), -1, 0)  # (C, m, *K)
    return xp.ascontiguousarray(found).reshape(o, 1, *w.kernel)


def _labels(w: Window) -> tuple[list[int], list[int], list[int]]:
    """Numbers for the kernel's axes, the places' but for the last, and a row's."""
    rank = len(w.kernel)
    row = [2 * rank - 1] if w.stride[-1] == 1 else [2 * rank - 1, 2 * rank]
    return [*range(rank)], [*range(rank, 2 * rank - 1)], row


def _windows(x: Array, w: Window) -> Array:
    """One example (C, *S) as each place of the kernel sees it: (*K, *P, C), a view

    With stride 1 the last place and the channels are one axis.
    """
    xp, c = namespace(x), x.shape[0]
    last = xp.ascontiguousarray(xp.moveaxis(x, 0, -1))
    *steps, step = last.strides
    sizes, strides = [*w.out, c], [t * s for t, s in zip(steps, w.stride, strict=True)]
    strides.append(step)
    if w.stride[-1] == 1:
        sizes[-2:], strides[-2:] = [w.out[-1] * c], [step]
    along = [t * d for t, d in zip(steps, w.dilation, strict=True)]
    strided = xp.lib.stride_tricks.as_strided
    return strided(last, (*w.kernel, *sizes), (*along, *strides))


def _tiled(taps: Array, w: Window, dtype: np.dtype) -> Array:
    """Weights (C, *K) beside a whole row of places: (*K, P's last, C)"""
    xp = namespace(taps)
    last = xp.moveaxis(taps, 0, -1).astype(dtype, copy=False)[..., None, :]
    shape = (*w.kernel, w.out[-1], taps.shape[0])
    rows = xp.ascontiguousarray(xp.broadcast_to(last, shape))
    return rows.reshape(*w.kernel, -1) if w.stride[-1] == 1 else rows


def _room(sizes: tuple[int, ...], pads: tuple[tuple[int, int], ...]) -> list[int]:
    return [n + b + a for n, (b, a) in zip(sizes, pads, strict=True)]
