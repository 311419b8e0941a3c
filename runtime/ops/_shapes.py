"""Operators that undo broadcasting; gradient rules of every family lean on them."""

from __future__ import annotations

from typing import Any

from burnish.backend import namespace
from burnish.operator import operator


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an array, a variable or a Python number."""
    return getattr(x, "shape", ())


@operator
def sum_to(x, *, shape: tuple[int, ...]):
    """x summed over the axes along which `shape` was broadcast to x's shape."""
    lead = x.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 and x.shape[lead + i] != 1
    )
    return x.sum(axis=axes, keepdims=True, dtype=x.dtype).reshape(shape)


@sum_to.vjp
def _(g, y, x, *, shape):
    return broadcast_to(g, shape=shape_of(x))


@operator
def broadcast_to(x, *, shape: tuple[int, ...]):
    """x seen with `shape`; no copy."""
    return namespace(x).broadcast_to(x, shape)


@broadcast_to.vjp
def _(g, y, x, *, shape):
    return unbroadcast(g, x)


def unbroadcast(g: Any, like: Any) -> Any:
    """The gradient `g` brought back to the shape that `like` had before broadcasting."""
    shape = shape_of(like)
    return g if g.shape == shape else sum_to(g, shape=shape)
