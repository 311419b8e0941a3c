"""Matrix products; one with constant weights is a Linear layer."""

from __future__ import annotations

from burnish.codegen.ops._rules import (
    Result,
    call,
    infix,
    layer,
    onnx_op,
    operand,
    operands,
    owned,
)
from burnish.codegen.program import Attribute, BinOp, Expression, Literal, Weight


@onnx_op("MatMul")
def matmul(A: Expression, B: Expression) -> Result:
    if isinstance(B, Weight) and owned(B) and len(B.shape) == 2:
        return linear(A, B)
    return infix("@", A, B)


@onnx_op("Linear", domain="burnish")
def linear(
    x: Expression,
    weight: Expression,
    bias: Expression | None = None,
    *,
    transB: int = 0,
) -> Result:
    """x @ weight + bias, weight (in, out) as MatMul has it, or turned as Gemm may."""
    if not (isinstance(weight, Weight) and owned(weight, bias)):
        factor = Attribute(operand(weight), "T") if transB else weight
        product = infix("@", x, factor)
        return product if bias is None else BinOp("+", product, operand(bias))
    if not transB:
        weight = weight.changed(weight.shape[::-1], lambda w: w.T)
    n_out, n_in = weight.shape
    weights = {"weight": weight}
    if isinstance(bias, Weight):
        weights["bias"] = bias
    return layer("Linear", (n_in, n_out), {"bias": bias is not None}, weights, x)


@onnx_op("Gemm", since=7)
def gemm(
    A: Expression,
    B: Expression,
    C: Expression | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Result:
    C = None if beta == 0 else C
    plain = alpha == 1 and (C is None or beta == 1) and not transA
    if plain and owned(B, C) and isinstance(B, Weight):
        weight = B if transB else B.changed(B.shape[::-1], lambda w: w.T)
        n_out, n_in = weight.shape
        sizes, weights = (n_in, n_out), {"weight": weight}
        if C is None:
            return layer("Linear", sizes, {"bias": False}, weights, A)
        if isinstance(C, Weight) and C.shape in ((n_out,), (1, n_out)):
            flat = C.changed((n_out,), lambda b: b.reshape(-1))
            weights["bias"] = C if C.shape == (n_out,) else flat
            return layer("Linear", sizes, {}, weights, A)
    a = Attribute(operand(A), "T") if transA else operand(A)
    b = Attribute(operand(B), "T") if transB else operand(B)
    product = _times(alpha, BinOp("@", a, b))
    return product if C is None else BinOp("+", product, _times(beta, operand(C)))


def _times(factor: float, value: Expression) -> Expression:
    return value if factor == 1 else BinOp("*", Literal(factor), value)


@onnx_op("Einsum")
def einsum(*Inputs: Expression, equation: str) -> Result:
    return call("einsum", equation, *operands(*Inputs))
