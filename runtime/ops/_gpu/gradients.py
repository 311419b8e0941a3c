"""Gradient rules that run unchanged on a GPU: kernels and moves of values."""

from __future__ import annotations

from typing import Any

from burnish.ops._shapes import unbroadcast
from burnish.ops.activation import smooth
from burnish.ops.arrays import shape
from burnish.ops.elementwise import arithmetic

_RULES: tuple[tuple[Any, str], ...] = (
    (smooth.gelu, "x"),
    (smooth.swish, "x"),
    (arithmetic.add, "a"),
    (arithmetic.add, "b"),
    (shape.reshape, "x"),
    (shape.transpose, "x"),
)
for _owner, _name in _RULES:
    _owner.vjp(_name, on="cupy", takes_bfloat16=True)(_owner.rules[_name][0])


@arithmetic.mul.vjp("a", on="cupy", takes_bfloat16=True)
def _(g, y, a, b):
    return unbroadcast(arithmetic.mul(g, b), a)


@arithmetic.mul.vjp("b", on="cupy", takes_bfloat16=True)
def _(g, y, a, b):
    return unbroadcast(arithmetic.mul(g, a), b)
