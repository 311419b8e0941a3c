"""Matrix products; one with constant weights is a Linear layer."""

from __future__ import annotations

from burnish.codegen.ops._rules import Result, call, layer, onnx_op, owned
from burnish.codegen.program import Expression, Infix, Weight


@onnx_op("MatMul")
def matmul(A: Expression, B: Expression) -> Result:
    if isinstance(B, Weight) and owned(B) and len(B.shape) == 2:
        return linear(A, B, None)
    return Infix("@", A, B)


@onnx_op("Linear", domain="burnish")
def linear(x: Expression, weight: Expression, bias: Expression | None = None) -> Result:
    assert isinstance(weight, Weight)
    n_in, n_out = weight.shape
    weights = {"weight": weight.changed((n_out, n_in), lambda w: w.T)}
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
    plain = alpha == 1 and beta == 1 and not transA
    if plain and owned(B, C) and isinstance(B, Weight):
        weight = B if transB else B.changed(B.shape[::-1], lambda w: w.T)
        n_out, n_in = weight.shape
        if C is None or C.shape == (n_out,):
            weights = {"weight": weight} | ({"bias": C} if C is not None else {})
            return layer("Linear", (n_in, n_out), {"bias": C is not None}, weights, A)
    return call("gemm", A, B, C, alpha=alpha, beta=beta, trans_a=transA, trans_b=transB)
