"""Element-wise arithmetic."""

from __future__ import annotations

from burnish.codegen.ops._rules import Result, onnx_op, operand
from burnish.codegen.program import Expression, Infix


@onnx_op("Add", since=7)
def add(A: Expression, B: Expression) -> Result:
    return Infix("+", operand(A), operand(B))
