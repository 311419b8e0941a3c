"""Transposed convolutions with few channels: the phases of a stride as channels.

A place and the next ones up to the stride read the same inputs, each with weights of
its own. As channels of one place they fill a block, which few channels leave empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.geometry import Window
from burnish.plan.cpu.layout import CHANNELS, LANES, strides
from burnish.plan.graph import Constant, Value

_GAIN = 2
"""Times fewer products that are worth another copy of the result."""


def has_few_channels(w: Window, outs: int) -> bool:
    """Whether a transposed convolution takes fewer products as phases."""
    within = zip(w.out, w.stride, strict=True)
    is_whole = set(w.dilation) == {1} and all(out % s == 0 for out, s in within)
    fits = outs * math.prod(w.stride) <= LANES and len(w.out) <= 2
    taps = math.prod(of_phases(w).kernel)
    return is_whole and fits and _GAIN * taps <= math.prod(w.kernel)


def of_phases(w: Window) -> Window:
    """The window of a convolution whose places are the first ones of each stride."""
    axes = [_reach(*each) for each in zip(w.kernel, w.stride, w.before, strict=True)]
    ones = (1,) * len(w.out)
    return Window(
        w.sizes,
        tuple(out // s for out, s in zip(w.out, w.stride, strict=True)),
        tuple(last - first + 1 for first, last in axes),
        ones,
        ones,
        tuple(-first for first, _ in axes),
    )


def _reach(kernel: int, stride: int, before: int) -> tuple[int, int]:
    """The first and the last input that any phase reads, from its place on."""
    return -((kernel - 1 - before) // stride), (stride - 1 + before) // stride


def phase_weight(weight: Constant, w: Window) -> Constant:
    """(in, out, *kernel) as (phases x out, in, *taps) of `of_phases`; zeros between."""
    rank, ins = len(w.out), weight.shape[0]
    places = []
    for kernel, stride, before in zip(w.kernel, w.stride, w.before, strict=True):
        first, last = _reach(kernel, stride, before)
        inputs = np.arange(first, last + 1)
        tap = np.arange(stride)[:, None] + before - inputs * stride
        places.append(np.where((tap >= 0) & (tap < kernel), tap, kernel))

    def phased(a: Any) -> Any:
        a = np.pad(a, [(0, 0), (0, 0)] + [(0, 1)] * rank)
        for i, tap in enumerate(places):
            a = np.take(a, tap, axis=2 + 2 * i)
        phases, taps = range(2, 2 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
        made = a.transpose(*phases, 1, 0, *taps)
        return np.ascontiguousarray(made).reshape(-1, ins, *made.shape[rank + 2 :])

    return weight.then(phased)


def copy_phases(
    b: Builder, plain: Value, phases: Value, stride: Sequence[int], *, back: bool
) -> None:
    """From the phases of a result to its plain form, or back."""
    count, outs, *out = plain.shape
    sizes = phases.shape[2:]
    shape = (count, *sizes, *stride, outs)
    blocked = (
        *(LANES * s for s in strides((count, *sizes))),
        *(outs * s for s in strides(tuple(stride))),
        1,
    )
    steps = strides(tuple(out))
    across = (
        outs * math.prod(out),
        *(s * n for s, n in zip(steps, stride, strict=True)),
        *steps,
        math.prod(out),
    )
    if back:
        b.copy(shape, b.spot(plain), across, b.result(phases, CHANNELS), blocked)
    else:
        b.copy(shape, b.spot(phases, CHANNELS), blocked, b.result(plain), across)
