"""Gradients of broadcasting and dtype promotion, for the rules of every family."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import operator
from burnish.steps import step


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an array, a variable or a Python number."""
    return getattr(x, "shape", ())


@operator
def cast(x, /, dtype: Any) -> Array:
    """x with another dtype; x itself when it has it already. "str" makes strings."""
    if np.dtype(dtype).kind == "U":
        return x.astype(str).astype(object)
    return x.astype(dtype, copy=False)


@cast.vjp
def _(g, y, x, *, dtype):
    return cast(g, dtype=x.dtype)


@operator
def sum_to(x, *, shape: tuple[int, ...]) -> Array:
    """x summed over the axes along which `shape` was broadcast to x's shape."""
    lead = x.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 and x.shape[lead + i] != 1
    )
    return total(x, axes).reshape(shape)


def total(x: Any, axes: tuple[int, ...]) -> Any:
    """x summed over axes that keep size 1.

    Sums of many numbers are no chains of additions: libraries differ in how they round.
    """
    few = x.size < _MANY or namespace(x) is not np
    if x.dtype.kind != "f" or x.dtype.itemsize < 4 or few:
        wide = np.float32 if x.dtype == np.float16 else x.dtype
        y = x.sum(axis=axes, keepdims=True, dtype=wide)
        return y.astype(x.dtype, copy=False)
    shape = list(x.shape)
    if not x.flags.c_contiguous:
        many = math.prod(shape[axis] for axis in axes) > _MANY
        y = x.sum(axis=axes, keepdims=True, dtype=np.float64 if many else x.dtype)
        return y.astype(x.dtype, copy=False)
    for start, stop in _runs(axes):
        sides = shape[:start], shape[start:stop], shape[stop:]
        x = _between(x.reshape([math.prod(side) for side in sides]))
        shape[start:stop] = [1] * (stop - start)
    return x.reshape(shape)


_MANY = 512  # a sum of more loses digits when it is one chain or one product


def _runs(axes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Starts and ends of axes that are neighbours, the last ones first."""
    runs: list[tuple[int, int]] = []
    for axis in sorted(axes, reverse=True):
        if runs and axis + 1 == runs[-1][0]:
            runs[-1] = axis, runs[-1][1]
        else:
            runs.append((axis, axis + 1))
    return runs


def _between(x: Any) -> Any:
    """x (N, R, D) summed over R: by products of some, and those in float64."""
    lead, rows, width = x.shape
    ones = namespace(x).ones(min(_MANY, rows), x.dtype)
    if width == 1:
        x = x[..., 0]
        return x @ ones if rows <= _MANY else x.sum(axis=1)  # in pairs
    if rows <= _MANY:
        return ones @ x if lead == 1 else x.sum(axis=1)
    end = rows // _MANY * _MANY
    parts = ones @ x[:, :end].reshape(lead, -1, _MANY, width)
    sums = parts.sum(axis=1, dtype=np.float64)
    sums += ones[: rows - end] @ x[:, end:]
    return sums.astype(x.dtype, copy=False)


@sum_to.vjp
def _(g, y, x, *, shape):
    return broadcast_to(g, shape=shape_of(x))


@operator
def broadcast_to(x, /, shape: tuple[int, ...]) -> Array:
    """x seen with `shape`; no copy."""
    return namespace(x).broadcast_to(x, shape)


@broadcast_to.vjp
def _(g, y, x, *, shape):
    return unbroadcast(g, x)


def unbroadcast(g: Any, like: Any) -> Any:
    """The gradient `g` brought back to the shape and dtype that `like` has."""
    shape = shape_of(like)
    if g.shape != shape:
        g = sum_to(g, shape=shape)
    dtype = getattr(like, "dtype", g.dtype)
    return g if g.dtype == dtype else cast(g, dtype=dtype)


def plain(x: Any) -> Any:
    """The array inside a variable; an array as it is."""
    return x.data if isinstance(x, Variable) else x


@step
def values(x: Any) -> Any:
    """The array of a variable, for what takes no variable."""
    return x


def library_of(x: Any) -> Any:
    """numpy or cupy, as an array or a variable needs it."""
    return x.device.xp if isinstance(x, Variable) else namespace(x)


def ranked(where: str, x: Any, *ranks: int) -> None:
    """Raise InputError unless x has one of these numbers of axes.

    The last may be negative: -3 is three or more.
    """
    rank = len(shape_of(x))
    if rank in ranks or (ranks[-1] < 0 and rank >= -ranks[-1]):
        return
    expected = " or ".join(f"{-n} or more" if n < 0 else str(n) for n in ranks)
    raise InputError(f"{where}: expected {expected} axes, got shape {shape_of(x)}")


def whole(where: str, name: str, value: Any) -> int:
    """`value` as an int; raises InputError unless it is a whole number."""
    try:
        return index(value)
    except TypeError:
        raise InputError(
            f"{where}: expected an integer as {name}, got {value!r}"
        ) from None


def axes_of(axes: Any, ndim: int) -> tuple[int, ...]:
    """None (all), an integer or integers as a tuple of axes counted from the front."""
    if axes is None:
        return tuple(range(ndim))
    found = []
    for axis in (axes,) if isinstance(axes, _INTEGERS) else _several(axes):
        if not -ndim <= axis < ndim:
            raise InputError(
                f"axis: expected -{ndim} to {ndim - 1} for {ndim} axes, got {axis}"
                if ndim
                else f"axis: expected none for a scalar, got {axis}"
            )
        found.append(int(axis) % ndim)
    return tuple(found)


_INTEGERS = (int, np.integer)  # a tuple is looked through faster than a union


def _several(axes: Any) -> tuple[int, ...]:
    try:
        return tuple(map(index, axes))
    except TypeError:
        raise InputError(
            f"axis: expected an integer or a tuple of them, got {axes!r}"
        ) from None


def reduced_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """`axes_of`, where a scalar may be reduced along its axis 0 or -1, as it is."""
    return () if not ndim and axes in (0, -1, (0,), (-1,)) else axes_of(axes, ndim)
