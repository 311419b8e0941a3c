"""Launching kernels that have a group of threads for every row of an array."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

from burnish.backend.bfloat16 import is_bfloat16
from burnish.backend.cuda import layout
from burnish.backend.cuda.calls import Run, called
from burnish.backend.cuda.kernels import (
    ELEMENTS,
    LONG,
    bound,
    kernel,
    named,
    passed,
    wide,
)
from burnish.backend.cuda.libraries import workspace

_PARTS, _FULL, _ACROSS = 128, 792, 264
"""The most parts of a sum over places, and blocks that keep a GPU busy: along places,
and across channels."""

_HELD, _CROWD = 64, 2048
"""32-bit values of a row in a thread's registers, and rows that keep a GPU busy."""

_TALL, _ROWS, _THIN = 32, 512, 64
"""Warps of a block that sums to the end, rows that one does, and rows of a part."""

_PLACES = 1 << 16
"""Places of a channel that one block sums: a launch from Python takes longer."""


def takes(*arrays: Any) -> bool:
    """Whether kernels take these arrays: floats of one kind, and not empty."""
    dtype = arrays[0].dtype
    is_float = dtype.kind == "f" or is_bfloat16(arrays[0])
    return is_float and all(a.dtype == dtype and a.size for a in arrays)


def contiguous(array: Any) -> Any:
    """The array itself if it is contiguous, else a contiguous copy; None stays None."""
    return None if array is None else layout.contiguous(array)


def launch(
    template: str,
    rows: tuple[int, int, int],
    arrays: tuple[Any, ...],
    others: tuple[Any, ...],
    **setting: Any,
) -> bool:
    """Run a kernel over rows: (how many, their length, how far apart elements are).

    arrays: contiguous, of one dtype, read and written 16 bytes at a time where they
    allow it; then the others. Whether there are few enough rows for it.
    """
    places = 0
    for array in arrays:
        places |= array.data.ptr
    made = launcher(template, rows, arrays[0].dtype, not places & 15, **setting)
    if made is None:
        return False
    made(*arrays, *others)
    return True


@functools.lru_cache(maxsize=4096)
def launcher(
    template: str,
    rows: tuple[int, int, int],
    dtype: Any,
    aligned: bool,
    *,
    holds: bool = False,
    **setting: Any,
) -> Callable[..., None] | None:
    """A function of a kernel's arguments that launches it over rows, as `launch` has
    them; None for too many rows. aligned: whether 16 bytes are read at a time. holds:
    the kernel keeps contiguous rows in registers, where they are not too long."""
    count, n, inner = rows
    width = 16 // dtype.itemsize
    packed = inner == 1 and n % width == 0 and aligned
    pack = width if packed else 1
    lanes, height = _lanes(n, pack), 1
    if holds:
        most = _HELD * 4 // max(4, dtype.itemsize)
        if count >= _CROWD and n <= 32 * most:
            lanes = 32  # a warp a row waits for no other one
        held = -(-n // (lanes * pack))
        setting["held"] = held if inner == 1 and held * pack <= most else 0
    if inner > 1:
        lanes, height = 1, 128
    elif lanes == 32:
        height = 4
    blocks = -(-count // height)
    if blocks >= LONG:
        return None
    made = kernel(
        template,
        element=ELEMENTS[named(dtype)],
        wide=wide(dtype),
        lanes=lanes,
        packed=packed,
        width=width,
        **setting,
    )
    return lambda *given: made((blocks,), (lanes, height), given)


def _lanes(n: int, width: int) -> int:
    """Threads for a row: a warp for a short one, up to 1024 for a long one."""
    for lanes in (32, 128, 256, 512):
        if n <= lanes * width * 2 or (lanes == 32 and n <= 32 * width * 4):
            return lanes
    return 1024


def split(x: Any, axis: int) -> tuple[int, int, int]:
    """Rows along an axis: how many, their length, and how far apart elements are."""
    shape = x.shape
    n = shape[axis]
    return x.size // n, n, prod(shape[axis % len(shape) + 1 :])


def softmax(x: Any, axis: int, form: str) -> Any:
    """softmax of an array along an axis; None where no kernel does it.

    form: "softmax", "log_softmax", or "softmax_or_zero", 0 where all is -inf.
    """
    return called(prepared_softmax, (x, axis, form), {})


def prepared_softmax(x: Any, axis: int, form: str) -> Run | None:
    """How to compute `softmax` of arrays alike; None where no kernel does it."""
    from cupy import ndarray

    if not x.ndim or not takes(x):
        return None
    rows, tidy = split(x, axis), x._c_contiguous
    aligned = not (tidy and x.data.ptr & 15)
    launch = launcher("softmax", rows, x.dtype, aligned, holds=True, form=form)
    if launch is None:
        return None
    shape, dtype, sizes = x.shape, x.dtype, passed(*rows)

    def run(x: Any, *_: Any) -> Any:
        y = ndarray(shape, dtype)
        launch(x if tidy else contiguous(x), y, *sizes)
        return y

    return run


def softmax_gradient(g: Any, y: Any, axis: int, form: str) -> Any:
    """The gradient of softmax's argument from g and the result y, or None."""
    import cupy

    if not y.ndim or not takes(y, g) or g.shape != y.shape:
        return None
    g, y, rows = contiguous(g), contiguous(y), split(y, axis)
    out = cupy.ndarray(y.shape, y.dtype)
    done = launch("softmax_gradient", rows, (g, y, out), rows, form=form)
    return out if done else None


def layer_norm(x: Any, weight: Any, bias: Any, n: int, eps: float, center: bool) -> Any:
    """Rows of n last elements standardized, or None where no kernel does it.

    weight and bias have n elements, or are None.
    """
    import cupy

    given = [a for a in (x, weight, bias) if a is not None]
    if not takes(*given) or any(a.size != n for a in given[1:]):
        return None
    x, weight, bias = contiguous(x), contiguous(weight), contiguous(bias)
    y = cupy.ndarray(x.shape, x.dtype)
    rows = x.size // n
    arrays = (x, x if weight is None else weight, x if bias is None else bias, y)
    done = launch(
        "layer_norm",
        (rows, n, 1),
        arrays,
        (rows, n, float(eps)),
        center=center,
        weighted=weight is not None,
        biased=bias is not None,
    )
    return y if done else None


def layer_norm_gradient(
    g: Any, x: Any, weight: Any, n: int, eps: float, center: bool
) -> Any:
    """The gradients of x, weight (n,) and bias (n,) in `layer_norm`, or None."""
    return called(_prepared_gradient, (g, x, weight, n, float(eps), center), {})


def _prepared_gradient(
    g: Any, x: Any, weight: Any, n: int, eps: float, center: bool
) -> Run | None:
    """How to compute `layer_norm_gradient` of arrays alike, or None."""
    from cupy import ndarray

    given = [a for a in (x, g, weight) if a is not None]
    if not takes(*given) or (weight is not None and weight.size != n):
        return None
    shape, dtype, count = x.shape, x.dtype, x.size // n
    slopes = launcher(
        "layer_norm_gradient",
        (count, n, 1),
        dtype,
        not any(a._c_contiguous and a.data.ptr & 15 for a in given),
        center=center,
        weighted=weight is not None,
    )
    if slopes is None:
        return None
    element, number = ELEMENTS[named(dtype)], wide(dtype)
    kind, parts = "f8" if number == "double" else "f4", min(64, -(-count // 32))
    adds = bound("layer_norm_weights", element=element, wide=number)
    total = bound("channel_sums", element="wide", **_to_the_end(element, number))
    sizes, ends = passed(count, n, eps), passed(parts, n, 1)
    across = -(-n // 32)

    def run(g: Any, x: Any, weight: Any, *_: Any) -> Any:
        g, x, weight = contiguous(g), contiguous(x), contiguous(weight)
        out = ndarray(shape, dtype)
        means, scales = ndarray(count, kind), ndarray(count, kind)
        slopes(g, x, x if weight is None else weight, out, means, scales, *sizes)
        some = ndarray((parts, n), kind), ndarray((parts, n), kind)
        adds((across, parts), (32, 8), (g, x, means, scales, *some, *sizes[:2]))
        sums = ndarray(n, dtype), ndarray(n, dtype)
        for part, y in zip(some, sums, strict=True):
            total((across, 1), (32, _TALL), (part, y, *ends))
        return out, *sums

    return run


def channel_sums(x: Any, lead: int, c: int, inner: int) -> Any:
    """x, seen as (lead, C, inner), summed to (C,), many rows in two steps; or None."""
    return called(prepared_channel_sums, (x, lead, c, inner), {})


def prepared_channel_sums(x: Any, lead: int, c: int, inner: int) -> Run | None:
    """How to compute `channel_sums` of arrays alike; None where no kernel does it."""
    from cupy import ndarray

    if not takes(x):
        return None
    dtype, kind = x.dtype, "f8" if x.dtype.char == "d" else "f4"
    tidy, across = x._c_contiguous, inner == 1
    width = 16 // dtype.itemsize  # neighbours are channels, else places of one channel
    if not across or c % width or (tidy and x.data.ptr & 15):
        width = 1
    blocks = -(-c // (32 * width)) if across else c
    element, number = ELEMENTS[named(x.dtype)], wide(x.dtype)
    last = _to_the_end(element, number)
    ends = (-(-c // 32), 1)
    is_short = lead * inner <= _PLACES and not workspace.in_plan()
    if lead <= _ROWS if across else is_short:
        whole = bound("channel_sums", element=element, **last | {"across": across})
        grid, size = ends if across else (c, 1), (c,)
        numbers = passed(lead, c, inner)

        def at_once(x: Any, *_: Any) -> Any:
            y = ndarray(size, dtype)
            array = x if tidy else contiguous(x)
            whole(grid, (32, _TALL), (array, y, *numbers))
            return y

        return at_once
    least, full = (_THIN, _ACROSS) if across else (256, _FULL)
    parts = max(1, min(_PARTS, lead * inner // least, -(-full // blocks)))
    setting = {"out": "wide", "wide": number, "width": width, "across": across}
    first = bound("channel_sums", element=element, warps=8, **setting)
    second = bound("channel_sums", element="wide", **last)
    rows, rest = passed(lead, c, inner), passed(parts, c, 1)

    def in_parts(x: Any, *_: Any) -> Any:
        x, some, y = contiguous(x), ndarray((parts, c), kind), ndarray(c, dtype)
        first((blocks, parts), (32, 8), (x, some, *rows))
        second(ends, (32, _TALL), (some, y, *rest))
        return y

    return in_parts


def _to_the_end(out: str, number: str) -> dict[str, Any]:
    """How `channel_sums` adds up what is left in blocks of many rows: whole sums."""
    return {"out": out, "wide": number, "width": 1, "across": True, "warps": _TALL}
