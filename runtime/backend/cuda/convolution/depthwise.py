"""Each channel by itself, channels-last: convolutions and pools, one axis or two."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from burnish.backend.cuda.kernels import ELEMENTS, LONG, by_value, kernel, wide
from burnish.backend.cuda.layout import empty, empty_like, is_last, last
from burnish.backend.cuda.norms.rows import contiguous, takes

_POOLING = 256
"""Threads of a block that pools."""

_TAPS = 9  # in a row: those of a thread are in its registers
_WIDTH = {"e": 2, "E": 2, "f": 2, "d": 1}
"""Channels of a thread, by dtype, where it has more than nine taps."""

_SHARED = 40 << 10
"""Bytes of weights that a block holds."""

_ENOUGH = 132 * 256
"""Threads that keep a GPU at work."""


def fits(x: Any, weight: Any, groups: int) -> bool:
    """Whether every channel has one kernel, of a size that is compiled."""
    kernel_size = weight.shape[2:]
    return (
        groups == x.shape[1] == weight.shape[0]
        and len(kernel_size) <= 2
        and max(kernel_size) <= _TAPS
        and x.dtype.char in "eEfd"
        and x.size < LONG
    )


def taps(weight: Any) -> Any:
    """The weight (C, 1, *K) as kernels read it: (prod(K), C)"""
    import cupy

    return cupy.ascontiguousarray(weight.reshape(len(weight), -1).T)


def depthwise(
    x: Any,
    taps: Any,
    w: Any,
    bias: Any = None,
    bounds: Any = None,
    ceiling: float | None = None,
) -> Any:
    """x (N, C, *S), taps (prod(K), C), bias (C,) -> (N, C, *P), channels-last

    bounds: two numbers that results are held between. ceiling: what x is held below.
    """
    x, bias = last(x), contiguous(bias)
    n, c = x.shape[:2]
    y = empty((n, c, *w.out), x.dtype)
    if not y.size:
        return y
    places = x.data.ptr | taps.data.ptr | (0 if bias is None else bias.data.ptr)
    acts = bias is not None, bounds is not None, ceiling is not None
    key = (n, x.dtype, c, w, not places & 15, acts)
    made, blocks, threads, room, geometry = _prepared(x.shape[2:], *key)
    numbers = map(np.float32, (*(bounds or (0, 0)), ceiling or 0))
    given = (x, taps, taps if bias is None else bias, y, *numbers, geometry)
    made(blocks, threads, given, shared_mem=room)
    return y


def pools(x: Any, w: Any) -> bool:
    """Whether `pooled` takes an array: channels-last in memory, small windows."""
    return 3 <= x.ndim <= 4 and is_last(x) and max(w.kernel) <= _TAPS and x.size < LONG


def pooled(form: str, x: Any, w: Any) -> Any:
    """The "sum" or the "max" under each window: (N, C, *S) -> (N, C, *P)"""
    y = empty((*x.shape[:2], *w.out), x.dtype)
    if y.size:
        c = x.shape[1]
        width = _width(x.dtype, c, not x.data.ptr & 15)
        made = kernel(
            "pool",
            form=form,
            element=ELEMENTS[x.dtype.name],
            wide=wide(x.dtype),
            width=width,
            across=True,
            kernel=_two(1, w.kernel),
            stride=_two(1, w.stride),
            dilation=_two(1, w.dilation),
        )
        given = (x, y, y.size, _geometry(x.shape[2:], w, c))
        made(*_places(y.shape, width), given)
    return y


def _places(shape: tuple[int, ...], width: int) -> Any:
    """Blocks and threads for places of channels-last arrays, as `here` has them."""
    n, c, *sizes = shape
    lanes = min(-(-c // width), _POOLING)
    rows, columns = _two(1, sizes)
    beside = max(1, min(_POOLING // lanes, columns))
    blocks = n * rows * -(-columns // beside), -(-c // (lanes * width))
    return blocks, (lanes, beside)


def max_gradient(g: Any, y: Any, x: Any, w: Any) -> Any:
    """The gradient of x from that of the maximum y under each window, or None."""
    import cupy

    if not takes(x, y, g) or not 3 <= x.ndim <= 4 or x.size >= LONG:
        return None
    if max(w.kernel) > _TAPS or min(map(min, w.pads)) < 0:
        return None
    across = is_last(x)
    x, y, g = (last(a) if across else contiguous(a) for a in (x, y, g))
    places, out = cupy.ndarray(y.size, np.uint8), empty_like(x)
    ends = x.data.ptr | y.data.ptr | g.data.ptr | out.data.ptr
    c, few = x.shape[1], w.stride[-1] <= 4  # places of a thread, in its registers
    setting: dict[str, Any] = {
        "element": ELEMENTS[x.dtype.name],
        "wide": wide(x.dtype),
        "across": across,
        "width": _width(x.dtype, c, not ends & 15) if few and across else 1,
        "kernel": _two(1, w.kernel),
        "stride": _two(1, w.stride),
        "dilation": _two(1, w.dilation),
    }
    first, spread = kernel("pool_places", **setting), kernel("pool_gradient", **setting)
    sizes, width = _geometry(x.shape[2:], w, c), setting["width"]
    n, heights, widths = len(x), *_two(1, x.shape[2:])
    step, before = setting["stride"][1], w.pads[-1][0]
    given = (n, c, heights, -(-(widths + before) // step))

    def over(shape: tuple[int, ...]) -> Any:
        flat = (-(-prod(shape) // _POOLING),), (_POOLING,)
        return _places(shape, width) if across else flat

    first(*over(y.shape), (x, y, places, y.size, sizes))
    spread(*over(given), (places, g, out, prod(given), sizes))
    return out


def _two(lead: int, numbers: Any) -> tuple[int, ...]:
    """Numbers of one axis or two, as those of two."""
    return (*(lead,) * (2 - len(numbers)), *numbers)


def _width(dtype: Any, c: int, aligned: bool) -> int:
    """The number of channels that are read at once."""
    width = 16 // int(dtype.itemsize)
    return width if aligned and c % width == 0 else 1


def _geometry(sizes: Any, w: Any, c: int) -> Any:
    before = [b for b, _ in w.pads]
    parts = (*_two(1, sizes), *_two(1, w.out), *_two(0, before), c)
    return by_value(np.array(parts, np.int64))


@functools.lru_cache(maxsize=4096)
def _prepared(
    sizes: Any, n: int, dtype: Any, c: int, w: Any, aligned: bool, acts: Any
) -> Any:
    """The kernel, its blocks and threads, its shared memory, and its geometry."""
    taps, out = _two(1, w.kernel), _two(1, w.out)
    count, size = prod(taps), 8 if dtype.char == "d" else 4
    most = 4 if count <= 9 and dtype.itemsize == 2 else _WIDTH[dtype.char]
    widths = (n for n in (4, 2, 1) if n == 1 or (n <= most and aligned and c % n == 0))
    width = next(widths)
    groups = c // width
    rows, columns = _tile(out, n * groups, width, w)
    across, down = -(-out[1] // columns), -(-out[0] // rows)
    tiles = across * down * n
    threads, most = (256, 96) if tiles * groups > 4 * _ENOUGH else (128, 32)
    parts = -(-groups // min(most, _SHARED // (count * width * size)))
    beside = -(-groups // parts)
    high = max(1, min(threads // beside, tiles))
    biased, act, capped = acts
    made = kernel(
        "depthwise",
        element=ELEMENTS[dtype.name],
        wide=wide(dtype),
        width=width,
        rows=rows,
        columns=columns,
        channels=c,
        beside=beside,
        unroll="" if taps[0] <= 3 else 1,
        kernel=taps,
        stride=_two(1, w.stride),
        dilation=_two(1, w.dilation),
        biased=biased,
        act=act,
        capped=capped,
    )
    before = _two(0, [b for b, _ in w.pads])
    numbers = (*_two(1, sizes), *out, *before, across, down, n)
    geometry = by_value(np.array(numbers, np.int32))
    blocks = (-(-tiles // high), parts)
    return made, blocks, (beside, high), count * beside * width * size, geometry


def _tile(out: Any, groups: int, width: int, w: Any) -> tuple[int, int]:
    """Rows and columns of results that a thread makes.

    As many as its registers hold, where there are threads enough without.
    """
    span = _two(1, w.dilation)[1] * (_two(1, w.kernel)[1] - 1) + 1
    step = _two(1, w.stride)[1]

    def held(columns: int) -> int:
        return ((columns - 1) * step + span + columns) * width

    def waste(columns: int) -> int:
        return -(-out[1] // columns) * columns

    fitting = [n for n in (8, 7, 4, 2, 1) if n == 1 or held(n) <= 64]
    enough = [n for n in fitting if groups * out[0] * -(-out[1] // n) >= _ENOUGH]
    columns = min(enough or fitting[-1:], key=lambda n: (waste(n), -n))
    for rows in (4, 2):
        many = groups * -(-out[0] // rows) * -(-out[1] // columns) >= 2 * _ENOUGH
        if many and rows * columns * width <= 64 and out[0] >= rows:
            return rows, columns
    return 1, columns


def flipped(w: Any, sizes: Any) -> Any:
    """The window of the gradient of x (N, C, *sizes); None for strides."""
    if any(step != 1 for step in w.stride):
        return None
    spans = [d * (k - 1) for d, k in zip(w.dilation, w.kernel, strict=True)]
    pads = [
        (span - before, size - out + before)
        for span, (before, _), size, out in zip(
            spans, w.pads, sizes, w.out, strict=True
        )
    ]
    return w._replace(pads=tuple(pads), out=tuple(sizes))
