"""Max pooling of maps (N, C, *S) by a kernel."""

from __future__ import annotations

import functools
from math import prod

import numpy as np

from burnish.ops._cpu.call import dense, launch_shared, suits
from burnish.ops._kernels.window import Window
from burnish.ops.spatial import adaptive, pool

_LANES = 16

_SHORT = 32
"""Elements of a row up to which NumPy, which goes over whole maps, is faster."""

_CACHED = 1 << 19
"""Elements up to which it is for windows one apart: what it writes stays in a cache."""

_SEEN = 25
"""Elements for each of a result from which adaptive windows are worth the kernel."""


@pool.max_pool.on("numpy")
def _(x, **options):
    if 2 < x.ndim < 6 and x.shape[-1] > _SHORT and suits(x):
        given = pool.max_pool.defaults | options
        w = pool.window_of("max_pool", x.shape[2:], *given.values())
        is_worth = w.stride[-1] > 1 or x.size > _CACHED
        if is_worth and (found := _table(w, x.shape[2:])) is not None:
            table, even = found
            return _greatest(x, table, even, w.out, None)
    return pool.max_pool.value(x, **options)


@adaptive.adaptive_max_pool_with_indices.on("numpy")
def _(x, *, output_size):
    if 2 < x.ndim < 6 and suits(x):
        out = adaptive.sizes_of(x.shape[2:], output_size)
        if prod(out) and prod(x.shape[2:]) >= _SEEN * prod(out):
            places = np.empty((*x.shape[:2], *out), np.int64)
            table, even = _edges(x.shape[2:], out)
            return _greatest(x, table, even, out, places), places
    return adaptive.adaptive_max_pool_with_indices.value(x, output_size=output_size)


def _greatest(x, table, even, out, places):
    y = np.empty((*x.shape[:2], *out), x.dtype)
    room = -(-x.shape[-1] // _LANES) * _LANES
    launch_shared(
        "max_windows", 4 * x.size, _MOST, room, x=dense(x), windows=table, out=y,
        places=places, planes=prod(x.shape[:2]), **_three("size", x.shape[2:]),
        **_three("place", out), **even,
    )  # fmt: skip
    return y


_MOST = 32
"""Shares of planes at most."""


def _three(name, sizes):
    """The sizes of three axes, the first ones 1 where there are fewer."""
    whole = (*(1,) * (3 - len(sizes)), *sizes)
    return {f"{name}{i}": n for i, n in enumerate(whole)}


@functools.lru_cache(1 << 8)
def _table(w: Window, sizes: tuple[int, ...]):
    """Where windows start along three axes, and where they end; None for other ones.

    Those are windows that have gaps, and windows of padding alone.
    """
    edges = []
    for n, kernel, step, dilation, pads, count in zip(
        sizes, w.kernel, w.stride, w.dilation, w.pads, w.out, strict=True
    ):
        first, last = max(0, -pads[0]), n - max(0, -pads[1])
        starts = np.arange(count) * step - pads[0]
        line = np.stack((starts.clip(first), (starts + kernel).clip(None, last)))
        if (dilation > 1 < kernel) or not count or (line[0] >= line[1]).any():
            return None
        edges.append(line)
    return _joined(edges)


@functools.lru_cache(1 << 8)
def _edges(sizes: tuple[int, ...], out: tuple[int, ...]):
    """The same of adaptive windows."""
    return _joined(
        [np.stack(adaptive.edges(*each)) for each in zip(sizes, out, strict=True)]
    )


def _joined(edges):
    """A table of three axes: of each the starts, then the ends; and `_even`."""
    whole = [np.array([[0], [1]])] * (3 - len(edges)) + edges
    table = np.concatenate([line.reshape(-1) for line in whole]).astype(np.int32)
    return table, _even(*edges[-1])


def _even(starts, ends):
    """Which windows of the last axis are the longest ones, if their starts are even."""
    length = int((ends - starts).max())
    (alike,) = np.nonzero(ends - starts == length)
    steps = np.diff(starts[alike])
    step = int(steps[0]) if len(steps) else 1
    is_run = len(alike) == alike[-1] - alike[0] + 1 and (steps == step).all()
    return {
        "even_first": int(alike[0]),
        "even": len(alike) if is_run else 0,
        "length": length,
        "step": step,
    }
