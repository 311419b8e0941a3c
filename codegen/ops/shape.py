"""Operators that change shapes and move nothing."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops._rules import Result, ints, method, onnx_op
from burnish.codegen.program import Expression, Item, Attribute, Literal


@onnx_op("Reshape", since=5)
def reshape(data: Expression, shape: Expression, *, allowzero: int = 0) -> Result:
    sizes: Any = ints(shape)
    if isinstance(sizes, Expression):
        return method(data, "reshape", sizes)
    if not allowzero:
        sizes = [
            Item(Attribute(data, "shape"), (Literal(i),)) if size == 0 else size
            for i, size in enumerate(sizes)
        ]
    return method(data, "reshape", *sizes)


@onnx_op("Flatten")
def flatten(input: Expression, *, axis: int = 1) -> Result:
    return method(input, "flatten", axis)
