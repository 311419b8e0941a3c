"""Formulas of several steps, evaluated block by block so that the steps stay in cache.

NumPy computes a step at a time over the whole of an array; for a large one every step
goes to memory and back, and every intermediate array is fresh memory. In blocks the
steps in between cost a few times less. A formula is an ordinary function of arrays: on
variables and on small arrays it is called once, as it is. On a GPU it becomes a kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import Array, bfloat16, namespace, symbols
from burnish.backend.cuda.elementwise import fused

BLOCK = 1 << 16
"""Elements of a block: some arrays of this size fit a core's second-level cache."""


def blockwise(formula: Callable[..., Any], *arrays: Any, whole: int = 0) -> Any:
    """formula(*arrays), where the arrays broadcast and elements depend on no others.

    whole: so many last axes are never cut, for formulas that go along them. What the
    formula returns has the broadcast shape, or has other last axes in their place; it
    may be a tuple of such arrays, or of None.
    """
    if not whole and (y := _on_gpu(formula, arrays)) is not None:
        return y
    given = [a for a in arrays if hasattr(a, "shape")]
    if not _in_blocks(given):
        return formula(*arrays)
    shape = np.broadcast_shapes(*(a.shape for a in given))
    if not whole and _alike(given, shape):
        flat = [a.reshape(-1) if hasattr(a, "shape") else a for a in arrays]
        return _evaluate(formula, flat, (prod(shape),), 1, 0).reshape(shape)
    lead = len(shape) - whole
    return _evaluate(formula, [*arrays], shape[:lead], prod(shape[lead:]), whole)


def filled(step: Callable[..., Any], x: Array, *others: Any, whole: int = 0) -> Array:
    """An array like the floating x after step(array, x, *others) has written into it.

    The others broadcast to x. Half precision is computed in single precision, and
    integers in double precision, as NumPy's own functions would.
    """
    if not whole and (y := _on_gpu(step, (x, *others), writes=True)) is not None:
        return y
    xp = namespace(x)
    if x.dtype == np.float16:
        others = tuple(_wide(a) for a in others)
        return filled(step, _wide(x), *others, whole=whole).astype(x.dtype)
    if bfloat16.possible() and any(map(bfloat16.is_bfloat16, (x, *others))):
        y = filled(step, *bfloat16.widened((x, *others)), whole=whole)
        return bfloat16.like(y, x)
    if x.dtype.kind != "f":
        x = x.astype(np.float64)
    if not x.ndim:  # arithmetic would make it a scalar that nothing writes into
        return filled(step, x.reshape(1), *others).reshape(())
    y = xp.empty(x.shape, x.dtype)
    arrays = [y, x, *others]
    given = [a for a in arrays if hasattr(a, "shape")]
    with np.errstate(over="ignore"):
        if not _in_blocks(given):
            step(*arrays)
            return y
        rank = x.ndim
        if not whole and _alike(given, x.shape):
            arrays = [a.reshape(-1) if hasattr(a, "shape") else a for a in arrays]
            rank = 1
        lead = arrays[0].shape[: rank - whole]
        for index in _cuts(lead, prod(x.shape[rank - whole :]) if whole else 1):
            step(*(_part(a, index, rank) for a in arrays))
    return y


def _on_gpu(formula: Any, arrays: tuple[Any, ...], writes: bool = False) -> Any:
    """The formula's value from a GPU kernel; None off a GPU and for other formulas."""
    if "cupy" not in sys.modules or namespace(*arrays).__name__ != "cupy":
        return None
    if any(isinstance(a, Variable) for a in arrays):
        return None
    return fused.evaluated(formula, arrays, writes=writes)


def _wide(a: Any) -> Any:
    half = getattr(a, "dtype", None) == np.float16
    return a.astype(np.float32) if half else a


def _in_blocks(given: list[Any]) -> bool:
    """Whether blocks pay: large plain arrays of NumPy's."""
    if max((prod(a.shape) for a in given), default=0) < 2 * BLOCK:
        return False
    return not any(isinstance(a, Variable) for a in given) and namespace(*given) is np


def _alike(given: list[Any], shape: tuple[int, ...]) -> bool:
    """Whether arrays can be gone through as one long row."""
    return all(a.shape == shape and a.flags.c_contiguous for a in given)


def _evaluate(
    formula: Any, arrays: Any, lead: tuple[int, ...], width: int, whole: int
) -> Any:
    out: list[Any] = []
    several = False
    for index in _cuts(lead, width):
        parts = formula(*(_part(a, index, len(lead) + whole) for a in arrays))
        if not out:
            several = isinstance(parts, tuple)
            out = [
                p if p is None else np.empty((*lead, *p.shape[len(lead) :]), p.dtype)
                for p in (parts if several else (parts,))
            ]
        for y, part in zip(out, parts if several else (parts,), strict=True):
            if y is not None:
                y[index] = part
    return tuple(out) if several else out[0]


def _cuts(shape: tuple[int, ...], width: int) -> Iterator[tuple[slice, ...]]:
    """Indices of blocks that cover `shape`, `width` elements behind each place."""
    if not shape:  # the first axis is whole too
        yield ()
        return
    row = prod(shape[1:]) * width
    if row > BLOCK and len(shape) > 1:
        for i in range(shape[0]):
            for rest in _cuts(shape[1:], width):
                yield slice(i, i + 1), *rest
        return
    step = max(1, BLOCK // max(row, 1))
    for start in range(0, shape[0], step):
        yield (slice(start, start + step),)


def _part(a: Any, index: tuple[slice, ...], rank: int) -> Any:
    """The part of `a` that broadcasts to a block of an array of `rank` axes."""
    if not hasattr(a, "shape"):
        return a
    own = index[max(rank - a.ndim, 0) :]
    cut = (s if n > 1 else slice(None) for s, n in zip(own, a.shape, strict=False))
    return a[(*cut, ...)]


def select(condition: Any, a: Any, b: Any) -> Array:
    """numpy.where(condition, a, b), but as fast for a condition that keeps changing.

    Arithmetic on the numbers' bits knows no branches to mispredict.
    """
    dtype = np.result_type(a, b)
    mask = np.asarray(condition)
    unsigned = _UNSIGNED.get(dtype.itemsize)
    if mask.dtype != bool or mask.size < 256 or not unsigned or dtype.hasobject:
        return np.where(condition, a, b)
    a, b = (np.asarray(side, dtype).view(unsigned) for side in (a, b))
    rest = b if b.ndim or b else None
    return blockwise(_mixed, mask, a, rest).view(dtype)


_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def _mixed(mask: Array, a: Array, b: Array | None) -> Array:
    chosen = mask.astype(a.dtype)
    return chosen * a if b is None else chosen * (a ^ b) ^ b


def keep(y: Array, inside: Array, x: Array, rest: float = 0) -> None:
    """Write x where a condition holds and `rest` elsewhere into y, as `select` does."""
    xp = namespace(x)
    if xp is symbols.library:
        y[...] = xp.where(inside, x, rest)
        return
    bits = _UNSIGNED[x.dtype.itemsize]
    chosen, made, other = x.view(bits), y.view(bits), x.dtype.type(rest).view(bits)
    if other:
        chosen = xp.bitwise_xor(chosen, other, out=made)
    xp.multiply(inside.view(np.uint8), chosen, out=made)
    if other:
        made ^= other


def positive(x: Array) -> Array:
    """max(x, 0); NumPy clips floats a few times faster than it compares with a 0."""
    return x.clip(0, np.inf) if x.dtype.kind == "f" else namespace(x).maximum(x, 0)
