"""Integer matrix products and convolutions of quantized tensors."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops.quantized.quantize import quantized
from burnish.codegen.ops.rule import costs
from burnish.codegen.ops.rule.expressions import call, infix, method, operand
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE, UNBOUNDED
from burnish.codegen.ops.rule.windows import convolution
from burnish.codegen.ops.rule.words import cast as cast_to
from burnish.codegen.program import BinOp, Expression


@onnx_op("MatMulInteger", traits=OWN_SHAPE, macs=costs.multiplied)
def mat_mul_integer(
    A: Expression,
    B: Expression,
    a_zero_point: Expression | None = None,
    b_zero_point: Expression | None = None,
) -> Result:
    return _product(A, B, a_zero_point, b_zero_point)


def _product(
    a: Expression,
    b: Expression,
    a_zero: Expression | None,
    b_zero: Expression | None,
) -> Expression:
    """An exact product in int32; a's zero points are per row, b's per column."""
    if a_zero is not None and a_zero.rank == 1:
        a_zero = method(a_zero, "unsqueeze", -1)
    return BinOp("@", _centered(a, a_zero), _centered(b, b_zero))


def _centered(x: Expression, zero: Expression | None) -> Expression:
    wide = cast_to(operand(x), "int32")
    return wide if zero is None else BinOp("-", wide, cast_to(operand(zero), "int32"))


@onnx_op("QLinearMatMul", traits=OWN_SHAPE, macs=costs.multiplied)
def q_linear_mat_mul(
    a: Expression,
    a_scale: Expression,
    a_zero_point: Expression,
    b: Expression,
    b_scale: Expression,
    b_zero_point: Expression,
    y_scale: Expression,
    y_zero_point: Expression,
) -> Result:
    product = _product(a, b, a_zero_point, b_zero_point)
    columns = 1 if a.rank == 2 or _is_single(b_scale) else -1
    return _requantized(product, a_scale, b_scale, y_scale, y_zero_point, columns)


def _is_single(scale: Expression) -> bool:
    """Whether a scale is one for all, so that no axis counts."""
    return scale.shape is not None and all(size == 1 for size in scale.shape)


def _requantized(
    total: Expression,
    a_scale: Expression,
    b_scale: Expression,
    y_scale: Expression,
    zero_point: Expression,
    axis: int = 1,
) -> Expression:
    scale = BinOp("/", operand(y_scale), infix("*", a_scale, b_scale))
    real = cast_to(total, "float32")
    step = cast_to(scale, "float32")
    return quantized(real, step, zero_point, axis)


@onnx_op(
    "ConvInteger",
    traits=OWN_SHAPE | UNBOUNDED,
    macs=costs.correlated,
    options=convolution,
)
def conv_integer(
    x: Expression,
    w: Expression,
    x_zero_point: Expression | None = None,
    w_zero_point: Expression | None = None,
    **window: Any,
) -> Result:
    options = convolution(len(w.shape or ()) - 2, **window)
    zeros = (x_zero_point, w_zero_point)
    return call("conv", *_centered_for_conv(x, w, *zeros), **options)


@onnx_op(
    "QLinearConv",
    traits=OWN_SHAPE | UNBOUNDED,
    macs=costs.quantized_conv,
    options=convolution,
)
def q_linear_conv(
    x: Expression,
    x_scale: Expression,
    x_zero_point: Expression,
    w: Expression,
    w_scale: Expression,
    w_zero_point: Expression,
    y_scale: Expression,
    y_zero_point: Expression,
    B: Expression | None = None,
    **window: Any,
) -> Result:
    options = convolution(len(w.shape or ()) - 2, **window)
    inputs = _centered_for_conv(x, w, x_zero_point, w_zero_point)
    total = call("conv", *inputs, B, **options)
    return _requantized(total, x_scale, w_scale, y_scale, y_zero_point)


def _centered_for_conv(
    x: Expression,
    w: Expression,
    x_zero: Expression | None,
    w_zero: Expression | None,
) -> tuple[Expression, Expression]:
    if w_zero is not None and w_zero.shape not in ((), (1,)):
        w_zero = method(w_zero, "reshape", -1, *[1] * (len(w.shape or ()) - 1))
    return _centered(x, x_zero), _centered(w, w_zero)
