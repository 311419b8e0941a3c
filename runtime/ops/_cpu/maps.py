"""Depthwise convolutions of plain maps (N, C, *S), and their gradients, by kernels.

A kernel is given the places of a map it fills, and for every tap of the window where
each of them reads: place * step + offset along three axes, the first ones 1 where there
are fewer. A convolution is one such grid; its gradient to the input one for each phase
of the stride, because places of one phase share their taps.

Legend: N batch, C channels in, O channels out, *S sizes in, *K kernel, *P sizes out.
"""

from __future__ import annotations

import itertools
from math import prod
from typing import NamedTuple

import numpy as np

from burnish.backend import Array
from burnish.kernels import direct
from burnish.ops._kernels.window import Window

_LONGEST = 1 << 20


class _Grid(NamedTuple):
    """places, step: along each axis. taps: their numbers. offsets: (tap, axis)."""

    places: tuple[int, ...]
    step: tuple[int, ...]
    taps: Array
    offsets: Array


def fits(x: Array, w: Window) -> bool:
    """Whether kernels can count the elements of such a map."""
    return len(w.kernel) <= 3 and x.size < 1 << 31 and max(x.shape[2:]) < _LONGEST


def depthwise(x: Array, weight: Array, bias: Array | None, w: Window) -> Array:
    """x (N, C, *S), weight (O, 1, *K), bias (O,) -> (N, O, *P)"""
    y = np.empty((len(x), len(weight), *w.out), np.float32)
    _fill_planes(y, x, weight, bias, _forward(x.shape[2:], w), (0,) * 3, (1,) * 3)
    return y


def grouped(
    x: Array, weight: Array, bias: Array | None, w: Window, groups: int
) -> Array:
    """x (N, C, *S), weight (O, C / groups, *K), bias (O,) -> (N, O, *P), of two axes

    The channels of a group are the first axis of a depthwise convolution's map.
    """
    ins = weight.shape[1]
    deep = Window(
        (ins, *w.kernel), (1, *w.stride), (1, *w.dilation), ((0, 0), *w.pads),
        (1, *w.out),
    )  # fmt: skip
    maps = x.reshape(len(x), groups, ins, *x.shape[2:])
    y = depthwise(maps, weight.reshape(len(weight), 1, ins, *w.kernel), bias, deep)
    return y.reshape(len(x), len(weight), *w.out)


def depthwise_input_gradient(
    g: Array, weight: Array, w: Window, sizes: tuple[int, ...]
) -> Array:
    """x's gradient (N, C, *sizes), from g (N, C, *P), weight (C, 1, *K)"""
    x = np.empty((*g.shape[:2], *sizes), np.float32)
    for phase in itertools.product(*map(range, w.stride)):
        grid = _backward(phase, sizes, w)
        if prod(grid.places):
            given = _three(phase, 0), _three(w.stride, 1)
            _fill_planes(x, g, weight, None, grid, *given)
    return x


def depthwise_weight_gradient(x: Array, g: Array, w: Window) -> Array:
    """weight's gradient (O, 1, *K), from x (N, C, *S), g (N, O, *P)"""
    out = np.zeros((g.shape[1], 1, *w.kernel), np.float32)
    grid = _forward(x.shape[2:], w)
    taps = len(grid.taps)
    if not taps:
        return out
    found = np.empty((g.shape[1], taps), np.float32)
    copy, floats = _copied(grid)
    room = -(-(4 * floats + 16 * (taps + 9)) // 64) * 64
    parts = direct.shares(g.size * taps / 8)
    direct.launch(
        "depthwise_weight", parts, x=x, g=g, taps=grid.offsets, out=found,
        space=np.empty(parts * room, np.uint8), batch=len(x), channels=g.shape[1],
        multiplier=g.shape[1] // x.shape[1], n_taps=taps, **_numbers(x, grid), **copy,
        room=room,
    )  # fmt: skip
    out.reshape(len(out), -1)[:, grid.taps] = found
    return out


def max_pool_gradient(g: Array, x: Array, w: Window) -> Array:
    """x's gradient, from g (N, C, *P): each goes to the first maximum."""
    out = np.empty(x.shape, np.float32)
    grid = _forward(x.shape[2:], w)
    axes = {
        "kernel": _three(w.kernel, 1),
        "dilation": _three(w.dilation, 1),
        "before": _three([before for before, _ in w.pads], 0),
    }
    direct.launch(
        "max_pool_gradient", direct.shares(g.size * prod(w.kernel)), g=g, x=x, out=out,
        planes=prod(x.shape[:2]), **_numbers(x, grid),
        **{f"{name}{i}": axes[name][i] for name in axes for i in range(3)},
    )  # fmt: skip
    return out


def _fill_planes(
    y: Array, x: Array, weight: Array, bias: Array | None, grid: _Grid,
    start: tuple[int, ...], apart: tuple[int, ...],
) -> None:  # fmt: skip
    """Fill places of y, `apart` from one another, each plane from one of x."""
    pitch, taps = _pitch(y.shape[2:]), len(grid.taps)
    copy, floats = _copied(grid)
    room = -(-(4 * floats + 16 * taps) // 64) * 64
    parts = direct.shares(x.size * max(1, taps) / 8)
    direct.launch(
        "depthwise", parts, x=x, weight=weight, taps=grid.offsets, numbers=grid.taps,
        bias=bias, out=y, space=np.empty(parts * room, np.uint8),
        planes=prod(y.shape[:2]), channels=y.shape[1],
        multiplier=y.shape[1] // x.shape[1], n_taps=taps,
        all_taps=prod(weight.shape[1:]), **_numbers(x, grid), **copy,
        **{f"to{i}": pitch[i] * apart[i] for i in range(3)},
        out_plane=prod(y.shape[2:]),
        out_start=sum(p * s for p, s in zip(pitch, start, strict=True)), room=room,
    )  # fmt: skip


def _copied(grid: _Grid) -> tuple[dict[str, int], int]:
    """How planes are copied: from which place on, how wide; and the floats of it."""
    library = direct.usable()
    assert library is not None
    low, high = (0,) * 3, (0,) * 3
    if len(grid.offsets):
        low, high = grid.offsets.min(axis=0).tolist(), grid.offsets.max(axis=0).tolist()
    wide = [
        (n - 1) * s + b - a + 1
        for n, s, a, b in zip(grid.places, grid.step, low, high, strict=True)
    ]
    wide[2] = -(-wide[2] // grid.step[2]) + library.width
    row = wide[2] * grid.step[2]
    fields = {f"low{i}": low[i] for i in range(3)}
    fields |= {f"wide{i}": wide[i] for i in range(3)}
    return {**fields, "row": row}, wide[0] * wide[1] * row


def _forward(sizes: tuple[int, ...], w: Window) -> _Grid:
    """The input positions that a convolution reads."""
    axes = [
        [(k, k * dilation - pad[0]) for k in range(kernel)]
        for kernel, dilation, pad in zip(w.kernel, w.dilation, w.pads, strict=True)
    ]
    return _grid(axes, w.out, w.stride, sizes, w.kernel)


def _backward(phase: tuple[int, ...], sizes: tuple[int, ...], w: Window) -> _Grid:
    """The positions of g that x's positions at `phase` of the stride read."""
    axes, places = [], []
    for i, stride in enumerate(w.stride):
        moved = (
            (k, phase[i] + w.pads[i][0] - k * w.dilation[i]) for k in range(w.kernel[i])
        )
        axes.append([(k, at // stride) for k, at in moved if at % stride == 0])
        places.append(len(range(phase[i], sizes[i], stride)))
    ones = (1,) * len(sizes)
    return _grid(axes, tuple(places), ones, w.out, w.kernel)


def _grid(axes, places, step, sizes, kernel) -> _Grid:
    """A grid of the taps of each axis, (number, offset), that read any element."""
    axes = [
        [(k, at) for k, at in axis if at < size and at + (n - 1) * s >= 0]
        for axis, n, s, size in zip(axes, places, step, sizes, strict=True)
    ]
    taps = list(itertools.product(*axes))
    numbers = [np.ravel_multi_index([k for k, _ in tap], kernel) for tap in taps]
    offsets = [_three([at for _, at in tap], 0) for tap in taps]
    return _Grid(
        _three(places, 1),
        _three(step, 1),
        np.array(numbers, np.int32),
        np.array(offsets, np.int32).reshape(-1, 3),
    )


def _numbers(x: Array, grid: _Grid) -> dict[str, int]:
    """The fields of a record that say where taps read x."""
    sizes = _three(x.shape[2:], 1)
    named = {"size": sizes, "place": grid.places, "step": grid.step}
    fields = {f"{k}{i}": v[i] for k, v in named.items() for i in range(3)}
    return fields


def _pitch(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """From an element to the next one along each of three axes."""
    sizes = _three(sizes, 1)
    return sizes[1] * sizes[2], sizes[2], 1


def _three(values, fill: int) -> tuple[int, ...]:
    """Values of the last of three axes."""
    return (*(fill,) * (3 - len(values)), *values)
