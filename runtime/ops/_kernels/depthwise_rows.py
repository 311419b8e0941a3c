"""Depthwise convolutions of any rank and dtype, as sums of products of rows.

Channels come last, so that what a place of the kernel sees is a long row, and its
weights are another: `einsum` adds up such products without arrays in between.

Legend: N batch, C channels in, M channels out for each of them.
"""

from __future__ import annotations

from burnish.backend import Array, namespace
from burnish.ops._kernels.window import Window, padded


def correlated(x: Array, taps: Array, w: Window) -> Array:
    """x (N, C, *S), taps (C, M, *K) -> (N, C, M, *P)"""
    x = padded(x, w.pads)
    xp, (n, c), many = namespace(x), x.shape[:2], taps.shape[1]
    y = xp.empty((n, c, many, *w.out), x.dtype)
    rows = [_tiled(taps[:, m], w) for m in range(many)]
    kernel, lead, row = _labels(w)
    for i in range(n if y.size else 0):
        seen = _windows(x[i], w)
        labels = [*kernel, *lead, *row]
        for m, weights in enumerate(rows):
            made = xp.einsum(seen, labels, weights, [*kernel, *row], [*lead, *row])
            y[i, :, m] = xp.moveaxis(made.reshape(*w.out, c), -1, 0)
    return y


def input_gradient(g: Array, taps: Array, w: Window, sizes: tuple[int, ...]) -> Array:
    """x's gradient (N, C, *sizes): the kernel turned round over g's spread elements."""
    xp, rank = namespace(g), len(sizes)
    spread = tuple((p - 1) * s + 1 for p, s in zip(w.out, w.stride, strict=True))
    apart = g
    if spread != tuple(w.out):
        apart = xp.zeros((*g.shape[:3], *spread), g.dtype)
        apart[(..., *(slice(None, None, s) for s in w.stride))] = g
    pads = tuple(
        (d * (k - 1) - before, size + before - length)
        for k, d, (before, _), size, length in zip(
            w.kernel, w.dilation, w.pads, sizes, spread, strict=True
        )
    )
    turned = xp.flip(taps, tuple(range(2, 2 + rank)))
    back = Window(w.kernel, (1,) * rank, w.dilation, pads, tuple(sizes))
    y = correlated(apart[:, :, 0], turned[:, :1], back)
    for m in range(1, g.shape[2]):
        y += correlated(apart[:, :, m], turned[:, m : m + 1], back)
    return y[:, :, 0]


def taps_gradient(x: Array, g: Array, w: Window) -> Array:
    """taps' gradient (C, M, *K), from x (N, C, *S), g (N, C, M, *P)"""
    x = padded(x, w.pads)
    xp, (n, c), many = namespace(x), x.shape[:2], g.shape[2]
    total = xp.zeros((many, *w.kernel, w.out[-1], c), x.dtype)
    kernel, lead, row = _labels(w)
    for i in range(n if g.size else 0):
        seen = _windows(x[i], w)
        labels = [*kernel, *lead, *row]
        for m in range(many):
            pulled = xp.ascontiguousarray(xp.moveaxis(g[i, :, m], 0, -1))
            pulled = pulled.reshape(*w.out[:-1], *seen.shape[2 * len(kernel) - 1 :])
            found = xp.einsum(seen, labels, pulled, [*lead, *row], [*kernel, *row])
            total[m] += found.reshape(total.shape[1:])
    return xp.moveaxis(total.sum(axis=-2), -1, 0)


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


def _tiled(taps: Array, w: Window) -> Array:
    """Weights (C, *K) beside a whole row of places: (*K, P's last, C)"""
    xp = namespace(taps)
    last = xp.moveaxis(taps, 0, -1)[..., None, :]
    shape = (*w.kernel, w.out[-1], taps.shape[0])
    rows = xp.ascontiguousarray(xp.broadcast_to(last, shape))
    return rows.reshape(*w.kernel, -1) if w.stride[-1] == 1 else rows
