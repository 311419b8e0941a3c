"""Launching kernels that standardize each channel of (N, C, *S), and their gradient.

Their statistics become factors (4, C) of each channel: a center, a factor, a shift, and
1 / deviation.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any, NamedTuple

import numpy as np

from burnish.backend.cuda.kernels import ELEMENTS, LONG, kernel, named, wide
from burnish.backend.cuda.layout import empty_like, is_last, last
from burnish.backend.cuda.norms.rows import contiguous, takes

_PROCESSORS, _THREADS = 132, 256
"""Multiprocessors of an H200, each of which has a few blocks that sum at once."""
_TURNS, _MOST = 4, 2112
"""Places that a thread takes at least, where there are many, and the most blocks."""
_OWN, _SUMMING = 8, 1024
"""Channels and threads of a block that adds up parts."""


def batch_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """(x standardized by its own statistics, mean, variance); None for no kernel.

    weight, bias: (C,), or None.
    """
    given = [a for a in (x, weight, bias) if a is not None]
    if not takes(*given):
        return None
    found = statistics(x, weight, bias, eps)
    if found is None:
        return None
    factors, mean, var = found
    return applied(x, factors, None, False), mean, var


def statistics(x: Any, weight: Any, bias: Any, eps: float, number: Any = None) -> Any:
    """(factors, mean, variance) of each channel of x; None where no kernel does it.

    weight, bias: (C,), float32 beside half precision or of x's dtype, or None. number:
    the dtype of the mean and the variance where both are None; x's unless given.
    """
    import cupy

    own = [a for a in (weight, bias) if a is not None]
    if x.ndim < 2 or not takes(x) or x.size >= LONG or not _are_beside(x, own):
        return None
    x = x if is_last(x) else contiguous(x)
    weight, bias = contiguous(weight), contiguous(bias)
    shape = _shape(x)
    number = own[0].dtype if own else number or x.dtype
    found = cupy.ndarray((2, shape[1]), number)
    form = _Form("spread", weight is not None, bias is not None)
    factors = _factors(form, x, shape, (x, x), (x, x, weight, bias), found, eps)
    return factors, found[0], found[1]


def applied(x: Any, factors: Any, beside: Any, act: bool) -> Any:
    """(x - center) * factor + shift + beside, at least 0 with `act`.

    beside: of x's shape and dtype, or None.
    """
    x = x if is_last(x) else contiguous(x)
    if beside is not None:
        beside = last(beside) if is_last(x) else contiguous(beside)
    y, held = empty_like(x), () if beside is None else (beside,)
    setting = {"beside": bool(held), "act": act, "masked": False}
    _affine("spread", (x, x), factors, y, _shape(x), held, **setting)
    return y


def batch_norm_gradient(
    g: Any, x: Any, mean: Any, var: Any, weight: Any, eps: float
) -> Any:
    """The gradients of x, weight and bias from that of the result, or None."""
    import cupy

    given = [a for a in (x, g, mean, var, weight) if a is not None]
    if not takes(*given) or x.size >= LONG or g.shape != x.shape:
        return None
    x, g = _alike(x, g)
    shape = _shape(x)
    found = cupy.ndarray((2, shape[1]), x.dtype)
    mean, var, weight = contiguous(mean), contiguous(var), contiguous(weight)
    form = _Form("slope", weight is not None, False)
    own = mean, var, weight, None
    factors = _factors(form, x, shape, (g, mean), own, found, eps)
    out = empty_like(x)
    _affine("slope", (x, g), factors, out, shape, (), **_PLAIN)
    return out, found[0], found[1]


def applied_gradient(
    g: Any,
    y: Any,
    x: Any,
    factors: Any,
    weight: Any,
    beside: bool,
    act: bool,
    more: Any = None,
) -> Any:
    """The gradients of x, weight, bias and the residual in `applied`, or None.

    They are those of x's statistics too. y: the result. beside: whether there is such.
    more: what is added to g, of its shape and dtype, beside a residual with `act`.
    """
    import cupy

    if not takes(x, g, y) or x.size >= LONG or g.shape != x.shape:
        return None
    x, g = _alike(x, g)
    shape, number = _shape(x), factors.dtype if weight is None else weight.dtype
    found, weight = cupy.ndarray((2, shape[1]), number), contiguous(weight)
    mask = ("result" if beside else "own") if act else ""
    form = _Form("slope", weight is not None, False, mask, True, more is not None)
    held: tuple[Any, ...] = ()
    if mask == "result":
        ends = [y] if more is None else [y, more]
        y, *others = (last(a) if is_last(x) else contiguous(a) for a in ends)
        held = y, empty_like(x), *others
    own = factors, factors, weight, None
    made = _factors(form, x, shape, (g, factors), own, found, 0.0, held)
    if held:
        g = held[1]
    out, masked = empty_like(x), mask == "own"
    setting = {**_PLAIN, "masked": masked}
    _affine("slope", (x, g), made, out, shape, (factors,) if masked else (), **setting)
    return out, found[0], found[1], g if beside else None


_PLAIN = {"beside": False, "act": False, "masked": False}


class _Form(NamedTuple):
    """What a kernel of statistics computes; see the templates."""

    name: str
    weighted: bool
    biased: bool
    mask: str = ""
    held: bool = False
    several: bool = False


def _are_beside(x: Any, own: list[Any]) -> bool:
    """Whether weights and biases have the dtype that kernels take beside x."""
    dtype = np.dtype(np.float32) if x.dtype.itemsize < 4 else x.dtype
    return all(a.dtype in (dtype, x.dtype) and a.dtype == own[0].dtype for a in own)


def _alike(x: Any, g: Any) -> tuple[Any, Any]:
    """Both in one order, channels last where one of them is."""
    if is_last(g) or is_last(x):
        return last(x), last(g)
    return contiguous(x), contiguous(g)


def _shape(x: Any) -> tuple[int, int, int]:
    """x as (lead, C, inner) in memory; inner is 1 where channels are contiguous."""
    n, c = x.shape[:2]
    places = prod(x.shape[2:])
    return (n, c, places) if x._c_contiguous else (n * places, c, 1)


def _factors(
    form: _Form,
    x: Any,
    shape: tuple[int, int, int],
    given: tuple[Any, Any],
    own: tuple[Any, ...],
    found: Any,
    eps: float,
    held: tuple[Any, ...] = (),
) -> Any:
    """Each channel's factors; the two rows of `found` get what was summed.

    given: the gradient and the mean. own: the mean, the variance, the weight and the
    bias. held: the result, what is to get the gradient that counts, and what is added
    to the gradient, if anything.
    """
    import cupy

    lead, c, inner = shape
    g, mean = given
    places = x.data.ptr | g.data.ptr
    for array in held:
        places |= array.data.ptr
    pairs, factors, blocks, parts = _prepared(
        form, x.dtype, found.dtype, shape, not places & 15
    )
    number = "f8" if x.dtype.char == "d" else "f4"
    sums = cupy.ndarray((2, parts, c), number)
    sizes = _ints(lead, c, inner)
    pairs((blocks, parts), (_THREADS,), (x, g, mean, sums, *sizes, *held))
    made = cupy.ndarray((4, c), number)
    counts = lead * inner, *_ints(parts, c, inner)
    beside = tuple(x if a is None else a for a in own)
    arrays = (sums, x, *beside, made, found)
    factors((-(-c // _OWN),), (_SUMMING,), (*arrays, *counts, float(eps)))
    return made


def _ints(*numbers: int) -> tuple[Any, ...]:
    return tuple(map(np.int32, numbers))


@functools.lru_cache(maxsize=4096)
def _prepared(
    form: _Form,
    dtype: Any,
    number: Any,
    shape: tuple[int, int, int],
    aligned: bool,
) -> Any:
    """Both kernels, the blocks across channels, and the parts of the places."""
    lead, c, inner = shape
    across, width = inner == 1, 16 // dtype.itemsize
    width = width if across and aligned and c % width == 0 else 1
    lanes = _lanes(c, width) if across else 1
    types = {"element": ELEMENTS[named(dtype)], "wide": wide(dtype), "form": form.name}
    mean = "wide" if form.held else ELEMENTS[named(dtype)]
    sizes = {"width": width, "lanes": lanes, "across": across}
    resident = 3 if form.mask == "own" else 4  # which has more in registers
    gates = {"mask": form.mask, "several": form.several, "resident": resident}
    pairs = kernel("channel_pairs", number=mean, **gates, **sizes, **types)
    factors = kernel(
        "channel_factors",
        number=ELEMENTS[number.name],
        weighted=form.weighted,
        biased=form.biased,
        held=form.held,
        **types,
    )
    blocks = -(-c // (lanes * width)) if across else c
    rows = lead * inner // (_THREADS // lanes)
    most = resident * _PROCESSORS // blocks
    return pairs, factors, blocks, max(1, min(most, rows // 8))


def _affine(
    form: str,
    given: tuple[Any, Any],
    factors: Any,
    y: Any,
    shape: tuple[int, int, int],
    held: tuple[Any, ...],
    **setting: bool,
) -> None:
    """given: x and the gradient. held: what is beside, or the forward factors."""
    _, c, inner = shape
    x, g = given
    across, width = inner == 1, 16 // x.dtype.itemsize
    places = x.data.ptr | g.data.ptr | y.data.ptr
    for array in held:
        places |= array.data.ptr
    width = width if not places & 15 and (c if across else inner) % width == 0 else 1
    lanes = _lanes(c, width) if across else 1
    types = {"element": ELEMENTS[named(x.dtype)], "wide": wide(x.dtype), "form": form}
    sizes = {"width": width, "lanes": lanes, "across": across}
    made = kernel("channel_affine", **sizes, **setting, **types)
    grid: tuple[int, ...] = (-(-x.size // (_THREADS * width)),)
    if across:
        blocks, rows = -(-c // (lanes * width)), _THREADS // lanes
        turns = -(-x.size // (c * rows * _TURNS))
        grid = blocks, max(1, min(turns, -(-_MOST // blocks)))
    arrays = (x, g, factors, y)
    made(grid, (_THREADS,), (*arrays, x.size, *_ints(c, inner), *held))


def _lanes(c: int, width: int) -> int:
    """Threads across channels: no more than there are."""
    lanes = 32
    while lanes > 1 and lanes // 2 * width >= c:
        lanes //= 2
    return lanes
