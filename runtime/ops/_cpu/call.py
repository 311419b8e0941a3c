"""When an operator's kernel of the C library is used, and how it is called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from burnish.backend import Array

_FLOAT32 = np.dtype(np.float32)

FEW = 1 << 12
"""Elements below which a call of a kernel costs more than it spares."""


def suits(*arrays: Any, gain: float = 1) -> bool:
    """Whether kernels take these arrays, the first being the largest.

    gain: how many times as much a kernel spares an element as it usually does.
    """
    for a in arrays:
        if a is not None:
            dtype = getattr(a, "dtype", None)
            if dtype is not _FLOAT32 and dtype != _FLOAT32:
                return False
    first = arrays[0]
    if first is None or not first.size:
        return False
    return gain * first.size >= FEW and _direct().usable() is not None


def usable() -> bool:
    """Whether the library was built before."""
    return _direct().usable() is not None


@functools.cache
def _direct() -> Any:
    """The module that runs kernels: imported for the first call that is worth one."""
    from burnish.kernels import direct

    return direct


def single(
    name: str, arrays: tuple[Any, ...], options: dict[str, Any], shape: tuple[int, ...]
) -> Any:
    """The result of an operator's own plan, of this shape; None where it declines."""
    return _planner()(name, arrays, options, shape)


def plan_with(load: Callable[[], Callable[..., Any]]) -> None:
    """Let `single` call the function that `load` imports, when it is first needed."""
    global _planner
    _planner = functools.cache(load)


_planner: Callable[[], Callable[..., Any]]


def launch(kernel: str, work: float, **fields: Any) -> None:
    """Run a kernel; `work` is how many elements, or products by eight, it goes over."""
    direct = _direct()
    direct.run_one(kernel, direct.shares(work), fields)


def dense(a: Array | None) -> Any:
    """The array with its elements side by side; None for None."""
    return None if a is None else np.ascontiguousarray(a)


def element_wise(steps: list[tuple[Any, ...]], *operands: Array) -> Array:
    """The result of a program whose operands broadcast to the first one's shape."""
    x = operands[0]
    out = np.empty(x.shape, np.float32)
    sizes, read = _read(operands)
    _direct().program(steps, sizes, out, *read)
    return out


def two_results(
    steps: list[tuple[Any, ...]], other: int, *operands: Array
) -> tuple[Array, Array]:
    """`element_wise`, and beside the last step's result what is in a register.

    Where the last two operands are the halves of an array, so are the results.
    """
    shape = operands[0].shape
    sizes, read = _read(operands)
    axis = _halved(*operands[-2:])
    if axis is not None and prod(sizes[-2:]) == prod(shape[axis:]):
        out = np.empty((prod(shape[:axis]), 2, prod(shape[axis:])), np.float32)
        _direct().program(steps, sizes, out, *read, to="pairs", other=other)
        return out[:, 0].reshape(shape), out[:, 1].reshape(shape)
    out = np.empty((2, *shape), np.float32)
    _direct().program(steps, sizes, out, *read, other=other)
    return out[0], out[1]


def _halved(a: Array, b: Array) -> int | None:
    """The axis whose halves a and b are in an array without gaps; None for others."""
    if a.base is None or a.base is not b.base or a.strides != b.strides:
        return None
    apart = _direct().address(b) - _direct().address(a)
    for axis, n in enumerate(a.shape):
        whole = (*a.shape[:axis], 2 * n, *a.shape[axis + 1 :])
        steps = [a.itemsize * prod(whole[i + 1 :]) for i in range(a.ndim)]
        if apart == n * a.strides[axis] and a.strides == tuple(steps):
            return axis
    return None


def summed(steps: list[tuple[Any, ...]], *operands: Array) -> Any:
    """The sum of `element_wise`'s result: of some in float32, and those in float64."""
    from burnish.kernels.records import PROGRAM

    sizes, read = _read(operands)
    plane = prod(sizes[-2:])
    tiles = -(-plane // PROGRAM["tile"]) * prod(sizes[:-2])
    sums = np.empty(tiles, np.float32)
    _direct().program(steps, sizes, sums, *read, to="sums")
    return sums.sum(dtype=np.float64).astype(np.float32)


def _read(operands: tuple[Array, ...]) -> tuple[tuple[int, ...], list[Any]]:
    """Sizes of the first operand's axes, few, and operands with strides along them."""
    x = operands[0]
    if all(a.shape == x.shape and a.flags.c_contiguous for a in operands):
        return (x.size,), [(a, (1,)) for a in operands]
    read = [a if _is_whole(a) else dense(a) for a in operands]
    forms = tuple([(a.shape, a.strides) for a in read])
    sizes, ways = _merged(x.shape, forms)
    if len(sizes) > _AXES:
        read = [*map(dense, operands)]
        sizes, ways = _merged(x.shape, tuple([(a.shape, a.strides) for a in read]))
    return sizes, [*zip(read, ways, strict=True)]


def _is_whole(a: Array) -> bool:
    """Whether a program can read an array as it is: by strides of whole elements."""
    return a.flags.aligned and all(step >= 0 and not step % 4 for step in a.strides)


@functools.lru_cache(1 << 10)
def _merged(
    shape: tuple[int, ...],
    operands: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...],
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Sizes of a result's axes, few, and the strides of operands along them.

    operands: the shape of each, and its strides in bytes.
    """
    from burnish.kernels.elementwise import merged

    ways = []
    for own, strides in operands:
        way = [0 if n == 1 else s // 4 for n, s in zip(own, strides, strict=True)]
        ways.append([0] * (len(shape) - len(way)) + way)
    sizes, paths = merged([*shape] or [1], [way or [0] for way in ways])
    if 1 < len(sizes) < _AXES and sizes[-1] >= _LONG:  # rows are planes of their own
        sizes.insert(-1, 1)
        for path in paths:
            path.insert(-1, 0)
    return tuple(sizes), [tuple(path) for path in paths]


def spreads(x: Array, *others: Array) -> bool:
    """Whether others broadcast to x, along as many axes as programs have."""
    try:
        whole = np.broadcast_shapes(x.shape, *[a.shape for a in others]) == x.shape
    except ValueError:
        return False
    return whole and x.ndim <= _AXES


_AXES = 6
"""The most axes of an element-wise program."""

_LONG = 1 << 9
"""Elements of a row from which an operand's are read where they are, not copied."""


def launch_shared(
    kernel: str, work: float, most: int, room: int, **fields: Any
) -> None:
    """`launch` in at most so many shares, each with room for so many numbers."""
    direct = _direct()
    parts = min(direct.shares(work), most)
    space = np.empty(parts * room, np.float32)
    direct.launch(kernel, parts, space=space, room=room, **fields)
