"""Matrix products; one with constant weights is a Linear layer."""

from __future__ import annotations

from burnish.codegen.ops.rule import costs
from burnish.codegen.ops.rule.expressions import (
    call,
    infix,
    layer,
    operand,
    operands,
    owned,
)
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.simple import called
from burnish.codegen.ops.rule.traits import OWN_SHAPE, PRODUCT, SAME_SHAPE, UNBOUNDED
from burnish.codegen.ops.shapes import layers
from burnish.codegen.program import Attribute, BinOp, Expression, Literal, Weight


@onnx_op(
    "MatMul",
    traits=OWN_SHAPE | PRODUCT,
    shapes=layers.matmul,
    macs=costs.multiplied,
    weights=(1,),
)
def matmul(A: Expression, B: Expression) -> Result:
    if isinstance(B, Weight) and owned(B) and len(B.shape) == 2:
        return linear(A, B)
    return infix("@", A, B)


@onnx_op(
    "Linear",
    domain="burnish",
    traits=OWN_SHAPE | PRODUCT,
    shapes=layers.matmul,
    macs=costs.multiplied,
    weights=(1, 2),
)
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
    return _layer(x, weight, bias if isinstance(bias, Weight) else None, transB)


def _layer(x: Expression, weight: Weight, bias: Weight | None, transB: int) -> Result:
    """The layer, with its weight as the author keeps it, or else as (out, in)."""
    n_in, n_out = weight.shape[::-1] if transB else weight.shape
    transposed = weight.source is not None and weight.source.transposed
    if not transB and not transposed:
        weight = weight.changed((n_out, n_in), lambda w: w.T)
    weights = {"weight": weight} | ({} if bias is None else {"bias": bias})
    options = {"bias": bias is not None, "transposed": transposed}
    return layer("Linear", (n_in, n_out), options, weights, x)


@onnx_op(
    "Gemm",
    since=7,
    traits=OWN_SHAPE | PRODUCT,
    shapes=layers.matmul,
    macs=costs.gemm,
    weights=(1, 2),
)
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
        n_out = B.shape[0 if transB else 1]
        if C is None:
            return _layer(A, B, None, transB)
        if isinstance(C, Weight) and C.shape in ((n_out,), (1, n_out)):
            flat = C.changed((n_out,), lambda b: b.reshape(-1))
            return _layer(A, B, C if C.shape == (n_out,) else flat, transB)
    a = Attribute(operand(A), "T") if transA else operand(A)
    b = Attribute(operand(B), "T") if transB else operand(B)
    product = _times(alpha, BinOp("@", a, b))
    return product if C is None else BinOp("+", product, _times(beta, operand(C)))


def _times(factor: float, value: Expression) -> Expression:
    return value if factor == 1 else BinOp("*", Literal(factor), value)


called("Inverse", "inverse", "X", domain="burnish", traits=SAME_SHAPE)


@onnx_op("Einsum", traits=OWN_SHAPE | UNBOUNDED, macs=costs.einsum)
def einsum(*Inputs: Expression, equation: str) -> Result:
    return call("einsum", equation, *operands(*Inputs))
