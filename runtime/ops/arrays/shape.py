"""Operators that move elements without changing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._shapes import (
    axes_of,
    broadcast_to,
    plain,
    ranked,
    reduced_axes,
    sum_to,
    unbroadcast,
    whole,
)


@operator
def reshape(x, /, shape: tuple[int, ...], keep_zeros: bool = False) -> Array:
    """x with another shape of as many elements; one -1 is worked out.

    keep_zeros: a 0 means x's own size there.
    """
    if keep_zeros:
        shape = tuple(n or x.shape[i] for i, n in enumerate(shape))
    try:
        return x.reshape(shape)
    except ValueError:
        raise InputError(
            f"reshape: expected a shape of {x.size} elements for x {x.shape}, "
            f"got {shape}"
        ) from None


@reshape.vjp
def _(g, y, x, *, shape, keep_zeros):
    return reshape(g, shape=x.shape)


@operator
def transpose(x, /, axes: tuple[int, ...] | None = None) -> Array:
    """x with its axes in another order; None reverses them."""
    if axes is not None and len(axes) != x.ndim:
        raise InputError(
            f"transpose: expected {x.ndim} axes for shape {x.shape}, got {axes}; two "
            f"axes are exchanged by swapaxes"
        )
    return x.transpose(axes)


@transpose.vjp
def _(g, y, x, *, axes):
    if axes is None:
        return transpose(g)
    order = axes_of(axes, len(axes))
    return transpose(g, axes=tuple(order.index(i) for i in range(len(order))))


@composed
def swapaxes(x: Any, axis1: int, axis2: int) -> Array:
    """x with two axes exchanged."""
    order = list(range(len(x.shape)))
    try:
        order[axis1], order[axis2] = order[axis2], order[axis1]
    except (IndexError, TypeError):
        axes_of((axis1, axis2), len(order))  # says what is expected
        raise
    return transpose(x, axes=tuple(order))


@composed
def moveaxis(x: Any, source: Any, destination: Any) -> Array:
    """x with axes (one or a tuple) moved to other places; the rest keep their order."""
    rank = len(x.shape)
    sources, targets = axes_of(source, rank), axes_of(destination, rank)
    if len(sources) != len(targets):
        raise InputError(
            f"moveaxis: expected as many targets as sources, got {source} "
            f"and {destination}"
        )
    moved = dict(zip(targets, sources, strict=True))
    rest = iter(i for i in range(rank) if i not in moved.values())
    order = (moved[i] if i in moved else next(rest) for i in range(rank))
    return transpose(x, axes=tuple(order))


@composed
def unbind(x: Any, axis: int = 0) -> tuple[Array, ...]:
    """x's slices along an axis, without it."""
    count = x.shape[axes_of(axis, len(x.shape))[0]]
    parts = split(x, num=count, axis=axis) if count else ()
    return tuple(squeeze(part, axis=axis) for part in parts)


@composed
def meshgrid(*vectors: Any, indexing: str = "xy") -> tuple[Array, ...]:
    """Vectors as the coordinates of a grid, one axis for each.

    indexing: "xy" has the first two axes exchanged, as plots have them, "ij" in order.
    """
    if indexing not in ("ij", "xy"):
        raise InputError(f"meshgrid: expected indexing 'ij' or 'xy', got {indexing!r}")
    order = list(range(len(vectors)))
    if indexing == "xy":
        order[:2] = reversed(order[:2])
    shape = tuple(math.prod(vectors[i].shape) for i in order)
    grid = []
    for i, vector in enumerate(vectors):
        along = [1] * len(shape)
        along[order.index(i)] = -1
        grid.append(broadcast_to(reshape(vector, shape=tuple(along)), shape=shape))
    return tuple(grid)


@composed
def flatten(x: Any, start_axis: int = 0, end_axis: int = -1) -> Array:
    """x with the axes from start_axis to end_axis as one."""
    first, last = axes_of((start_axis, end_axis), max(len(x.shape), 1))
    count = math.prod(x.shape[first : last + 1])
    return reshape(x, shape=(*x.shape[:first], count, *x.shape[last + 1 :]))


@composed
def flatten_to_matrix(x: Any, axis: int = 1) -> Array:
    """x as a matrix: the axes before `axis` by the axes from there on."""
    return reshape(x, shape=(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@composed
def squeeze(x: Any, axis: Any = None) -> Array:
    """x without these axes of length 1; None: without any of length 1."""
    shape = x.shape
    if axis is None:
        return reshape(x, shape=tuple(n for n in shape if n != 1))
    chosen = reduced_axes(axis, len(shape))
    if any(shape[i] != 1 for i in chosen):
        raise InputError(f"squeeze: expected length 1 in axis {axis}, got {shape}")
    return reshape(x, shape=tuple(n for i, n in enumerate(shape) if i not in chosen))


@composed
def unsqueeze(x: Any, axis: Any) -> Array:
    """x with axes of length 1 at these places of the result."""
    count = 1 if isinstance(axis, int | np.integer) else len(axis)
    chosen = axes_of(axis, len(x.shape) + count)
    if len({*chosen}) < count:
        raise InputError(f"unsqueeze: expected different axes, got {axis}")
    left = iter(x.shape)
    shape = tuple(1 if i in chosen else next(left) for i in range(len(x.shape) + count))
    return reshape(x, shape=shape)


@composed
def expand(x: Any, shape: tuple[int, ...]) -> Array:
    """x broadcast together with `shape`: a 1 or -1 there keeps x's own length."""
    lead = len(shape) - len(x.shape)
    sizes = tuple(1 if n == -1 and i >= lead else n for i, n in enumerate(shape))
    try:
        return broadcast_to(x, shape=np.broadcast_shapes(x.shape, sizes))
    except ValueError:
        raise InputError(
            f"expand: expected a shape that x {x.shape} broadcasts with, got {shape}"
        ) from None


@operator
def concat_of(*arrays, axis: int = 0) -> Array:
    """Arrays, given one by one, one after the other along an axis."""
    try:
        return namespace(*arrays).concatenate(arrays, axis)
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise InputError(
            f"concat: expected arrays equal in all axes but {axis}, got {shapes}"
        ) from None


@concat_of.vjp
def _(g, y, *arrays, axis):
    parts = split(g, sizes=tuple(a.shape[axis] for a in arrays), axis=axis)
    return [unbroadcast(part, a) for part, a in zip(parts, arrays, strict=True)]


@composed
def concat(arrays: Sequence[Any], axis: int = 0) -> Array:
    """Arrays one after the other along an axis."""
    return concat_of(*_listed("concat", arrays, axis), axis=axis)


@composed
def stack(arrays: Sequence[Any], axis: int = 0, *, empty: Any = None) -> Array:
    """Arrays of one shape along a new axis; of none of them `empty`, if it is given."""
    arrays = _listed("stack", arrays, axis)
    if not arrays and empty is not None:
        return empty
    return concat_of(*(unsqueeze(a, axis=axis) for a in arrays), axis=axis)


def _listed(name: str, arrays: Any, axis: Any) -> tuple[Any, ...]:
    """The arrays of a list or tuple, or along the first axis of an array."""
    if not isinstance(arrays, list | tuple):
        one_by_one = bool(getattr(axis, "shape", ()))
        if one_by_one or not getattr(arrays, "shape", ()):
            got = "arrays one by one" if one_by_one else repr(arrays)
            raise InputError(
                f"{name}: expected a list of arrays, as {name}([x, y], axis=0), "
                f"got {got}"
            )
        arrays = unbind(arrays)
    if not arrays and name == "concat":
        raise InputError("concat: expected at least one array, got none")
    return tuple(arrays)


@operator
def split(
    x, /, sizes: Any = None, axis: int = 0, num: int | None = None
) -> tuple[Array, ...]:
    """x cut along an axis into parts of these sizes, or of one size, the last shorter.

    num: into so many parts instead, the last maybe shorter.
    """
    total = x.shape[axes_of(axis, x.ndim)[0]]
    if num is not None:
        step = -(-total // num)
        sizes = tuple(max(min(step, total - i * step), 0) for i in range(num))
    elif isinstance(sizes, tuple | list):
        sizes = tuple(whole("split", "a size", size) for size in sizes)
    else:
        sizes = _parts(total, whole("split", "the size", sizes))
    if sum(sizes) != total:
        raise InputError(
            f"split: expected sizes that add up to {total}, the length of axis {axis}, "
            f"got {tuple(sizes)}"
        )
    parts, start = [], 0
    lead = (slice(None),) * axes_of(axis, x.ndim)[0]
    for size in sizes:
        parts.append(x[(*lead, slice(start, start + size))])
        start += size
    return tuple(parts)


@split.vjp
def _(g, y, x, *, sizes, axis, num):
    parts = [
        namespace(plain(b)).zeros(b.shape, b.dtype) if a is None else a
        for a, b in zip(g, y, strict=True)
    ]
    held = _holder(parts, x.shape, axis)
    return concat_of(*parts, axis=axis) if held is None else held


def _holder(parts: list[Any], shape: tuple[int, ...], axis: int) -> Any:
    """The array of this shape whose parts these are, else None."""
    base = parts[0].base if type(parts[0]) is np.ndarray else None
    if type(base) is not np.ndarray or base.size != math.prod(shape):
        return None
    if not base.flags.c_contiguous or any(type(a) is not np.ndarray for a in parts):
        return None
    held, axis = base.reshape(shape), axes_of(axis, len(shape))[0]
    place = held.ctypes.data
    for part in parts:
        if part.dtype != held.dtype or part.strides != held.strides:
            return None
        if part.ctypes.data != place:
            return None
        place += part.shape[axis] * part.strides[axis]
    return held


def _parts(length: int, size: int) -> tuple[int, ...]:
    """`length` cut into parts of `size`, the last maybe shorter; at least one part."""
    if size < 1:
        raise InputError(f"split: expected a size of 1 or more, got {size}")
    full, rest = divmod(length, size)
    return (size,) * full + ((rest,) if rest or not full else ())


@composed
def chunk(x: Any, chunks: int, axis: int = 0) -> tuple[Array, ...]:
    """`chunks` parts of one size along an axis, fewer where that is enough."""
    length = x.shape[axes_of(axis, len(x.shape))[0]]
    chunks = whole("chunk", "the number", chunks)
    if chunks < 1:
        raise InputError(f"chunk: expected one part or more, got {chunks}")
    sizes = _parts(length, -(-length // chunks)) if length else (0,) * chunks
    return split(x, sizes=sizes, axis=axis)


@operator
def tile(x, /, repeats: tuple[int, ...]) -> Array:
    """x repeated along each axis; where one side has fewer, ones are prepended."""
    return namespace(x).tile(x, repeats)


@tile.vjp
def _(g, y, x, *, repeats):
    more = len(repeats) - len(x.shape)
    sizes = (*(1,) * more, *x.shape)
    copies = [
        n for pair in zip((*(1,) * -more, *repeats), sizes, strict=True) for n in pair
    ]
    one = [n for size in sizes for n in (1, size)]
    added = sum_to(reshape(g, shape=tuple(copies)), shape=tuple(one))
    return reshape(added, shape=x.shape)


@operator
def flip(x, /, axis: Any = None) -> Array:
    """x backwards along axes."""
    return namespace(x).flip(x, reduced_axes(axis, x.ndim))


@flip.vjp
def _(g, y, x, *, axis):
    return flip(g, axis=axis)


@operator
def roll(x, /, shift: Any, axis: Any = None) -> Array:
    """x moved along axes; what leaves at one end comes in at the other."""
    return namespace(x).roll(x, shift, axis)


@roll.vjp
def _(g, y, x, *, shift, axis):
    back = -shift if isinstance(shift, int) else tuple(-s for s in shift)
    return roll(g, shift=back, axis=axis)


@composed
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Array:
    """(N, C*b*b, H, W) -> (N, C, H*b, W*b); blocks before C ("DCR") or after."""
    ranked("depth_to_space: x", x, 4)
    b = blocksize
    n, c, h, w = x.shape
    if mode == "DCR":
        x = reshape(x, shape=(n, b, b, c // (b * b), h, w))
        x = transpose(x, axes=(0, 3, 4, 1, 5, 2))
    else:
        x = reshape(x, shape=(n, c // (b * b), b, b, h, w))
        x = transpose(x, axes=(0, 1, 4, 2, 5, 3))
    return reshape(x, shape=(n, c // (b * b), h * b, w * b))


@composed
def space_to_depth(x: Any, *, blocksize: int) -> Array:
    """(N, C, H*b, W*b) -> (N, b*b*C, H, W)"""
    ranked("space_to_depth: x", x, 4)
    b = blocksize
    n, c, h, w = x.shape
    x = reshape(x, shape=(n, c, h // b, b, w // b, b))
    x = transpose(x, axes=(0, 3, 5, 1, 2, 4))
    return reshape(x, shape=(n, b * b * c, h // b, w // b))
