"""Small convolutions of few channels, each in one launch.

From Python a launch takes longer than they do; plans have faster ones in more launches.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnish.backend.cuda.calls import Run
from burnish.backend.cuda.convolution import windows
from burnish.backend.cuda.kernels import ELEMENTS, bound, named, passed, wide
from burnish.backend.cuda.libraries import workspace
from burnish.backend.cuda.norms.rows import contiguous

_THREADS = 128
_WIDTHS = 4, 8, 16
"""Channels of the result that a thread may have."""
_WIDEST = _WIDTHS[-1] << 15
"""Channels of the result that a grid has rows of blocks for."""
_TERMS = 256
"""Products of a sum: a thread adds them one after another."""
_MOST = 1 << 26
"""Products of a convolution."""
_CROWD, _PLACES, _WINDOW, _PAIRS = 512, 1 << 16, 32, 1 << 10
"""Threads of a block that adds up what places have; the most places, places of a
window, whose sums a thread has in registers, and pairs of channels, which are blocks.
"""


def prepared(x: Any, weight: Any, w: Any, *, biased: bool) -> Run | None:
    """How to compute conv(x, weight, bias) of arrays alike; None for larger ones.

    x (N, C, *S), weight (O, C, *K), both floats of one kind.
    """
    shape = len(x), len(weight), *w.out
    return _prepared(x, weight, shape, x.shape[2:], w, back=False, biased=biased)


def prepared_gradient(g: Any, weight: Any, w: Any, sizes: Any) -> Run | None:
    """How to compute the gradient of x (N, C, *sizes) from g (N, O, *P), or None."""
    shape = len(g), weight.shape[1], *sizes
    return _prepared(g, weight, shape, sizes, w, back=True, biased=False)


def prepared_slopes(x: Any, g: Any, w: Any) -> Run | None:
    """How to compute the weight's gradient (O, C, *K) from x and g (N, O, *P), or None.

    A block adds up what all places of two channels have.
    """
    from cupy import ndarray

    (n, ins), outs, places = x.shape[:2], g.shape[1], prod(w.kernel)
    count, dtype = n * prod(w.out), x.dtype
    pairs = ins * outs
    is_small = count <= _PLACES and count * pairs * places <= _MOST
    if workspace.in_plan() or not (is_small and 0 < pairs <= _PAIRS and count):
        return None
    if places > _WINDOW:
        return None
    if not (x._c_contiguous and g._c_contiguous and x.size < windows.NUMBERED):
        return None
    made = bound(
        "few_channels_slopes",
        element=ELEMENTS[named(dtype)],
        wide=wide(dtype),
        index="int",
        rank=len(w.kernel),
        kernel=w.kernel,
    )
    geometry = windows.described(x.shape[2:], w, (ins, 1, 1), False)
    threads = (min(_CROWD, -(-count // 32) * 32),)
    blocks, shape = (pairs,), (outs, ins, *w.kernel)
    numbers = *passed(*map(np.int32, (count, ins, outs))), geometry

    def run(x: Any, g: Any) -> Any:
        y = ndarray(shape, dtype)
        made(blocks, threads, (x, g, y, *numbers))
        return y

    return run


def _prepared(
    x: Any,
    weight: Any,
    shape: tuple[int, ...],
    sizes: Any,
    w: Any,
    *,
    back: bool,
    biased: bool,
) -> Run | None:
    from cupy import ndarray

    (n, outs), ins, terms = shape[:2], x.shape[1], x.shape[1] * prod(w.kernel)
    count = n * prod(shape[2:])
    is_small = terms <= _TERMS and count * outs * terms <= _MOST
    if workspace.in_plan() or not is_small or not (count * outs and x._c_contiguous):
        return None
    if max(x.size, count * outs) >= windows.NUMBERED or outs > _WIDEST:
        return None
    width = next((each for each in _WIDTHS if each >= outs), _WIDTHS[-1])
    dtype, number = x.dtype, wide(x.dtype)
    made = bound(
        "few_channels",
        element=ELEMENTS[named(dtype)],
        wide=number,
        index="int",
        rank=len(w.kernel),
        outs=width,
        back=back,
        biased=biased,
    )
    geometry = windows.described(sizes, w, (ins, 1, 1), False)
    blocks, threads = (-(-count // _THREADS), -(-outs // width)), (_THREADS,)
    numbers = *passed(*map(np.int32, (count, ins, outs))), geometry
    room = terms * width * (8 if number == "double" else 4)

    def run(x: Any, weight: Any, bias: Any = None) -> Any:
        y = ndarray(shape, dtype)
        beside = (contiguous(bias), y) if biased else (y,)
        given = (x, contiguous(weight), *beside, *numbers)
        made(blocks, threads, given, shared_mem=room)
        return y

    return run
