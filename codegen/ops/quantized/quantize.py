"""Quantize and dequantize by scale and zero point."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from burnish.codegen.ops.rule.expressions import buffer, call, known, operand, tensor
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.traits import SAME_SHAPE
from burnish.codegen.ops.rule.words import cast as cast_to
from burnish.codegen.ops.rule.words import dtype_name
from burnish.codegen.program import Expression, Layer, Literal, Weight
from burnish.lowbit import QuantScheme
from burnish.ops.quantized.small import small

ON_INPUT = "burnish.on_input"
"""Metadata key: the quantization of a layer's input, in JSON; dynamic without "scale".

With "bias_scales" the layer's bias is rounded down to whole units of its sums.
"""


@onnx_op("FakeQuantize", domain="burnish", traits=SAME_SHAPE)
def fake_quantize(
    x: Expression,
    scale: Expression,
    zero_point: Expression,
    *,
    axis: int = 1,
    value: str = "q8f",
) -> Result:
    """Fake quantization: x rounded to numbers of a few bits, in its own dtype."""
    scales, zeros = known(scale), known(zero_point)
    assert scales is not None
    assert zeros is not None
    count = scales.size
    options: dict[str, Any] = {} if count == 1 or axis == 1 else {"axis": axis}
    weights = _buffers(scales.reshape(-1), zeros.reshape(-1), value)
    if value != "q8f":
        options["value"] = value
    args = () if count == 1 else (count,)
    return Layer("FakeQuantize", args, options, weights, (operand(x),))


def rounding(result: Any, quantization: str) -> Layer | None:
    """A rule's layer with what rounds its input; None where it is no layer."""
    if not isinstance(result, Layer) or "weight" not in result.weights:
        return None
    held = on_input(quantization, result.weights["weight"].path)
    return replace(result, weights=result.weights | held)


def on_input(quantization: str, path: str) -> dict[str, Weight]:
    """The tensors of what rounds a layer's input, beside a weight of that path."""
    params = json.loads(quantization)
    value = params.get("value", "q8f")
    is_whole = small(value).whole
    scheme = QuantScheme(value, "affine" if is_whole else "symmetric")
    text = scheme.to_text((), np.float32)
    arrays: dict[str, np.ndarray] = {"scheme": np.frombuffer(text.encode(), np.uint8)}
    if value == "q8f":
        arrays["integers"] = np.ones(1, np.uint8)
    if "bias_scales" in params:
        arrays["bias_scales"] = np.array(params["bias_scales"], np.float32).reshape(-1)
    if "scale" in params:
        arrays["scales"] = np.array([params["scale"]], np.float32)
    if "scale" in params and is_whole:
        arrays["zero_points"] = np.array([params["zero_point"]], small(value).dtype)
    return {f"on_input.{n}": buffer(array, path) for n, array in arrays.items()}


def rounded(x: Any, quantization: str) -> Layer:
    """A node's input behind fake quantization."""
    params = json.loads(quantization)
    if "scale" not in params:
        return Layer("FakeQuantize", (), {"dynamic": True}, {}, (operand(x),))
    value = params.get("value", "q8f")
    scale = np.array([params["scale"]], np.float32)
    zero = np.array([params["zero_point"]], small(value).dtype)
    options = {} if value == "q8f" else {"value": value}
    weights = _buffers(scale, zero, value)
    return Layer("FakeQuantize", (), options, weights, (operand(x),))


def _buffers(scale: np.ndarray, zero: np.ndarray, value: str) -> dict[str, Weight]:
    """Those of a FakeQuantize; small floats have no zero point."""
    made = {"scale": buffer(scale)}
    return made | {"zero_point": buffer(zero)} if small(value).whole else made


@onnx_op("QuantizeLinear", since=10, traits=SAME_SHAPE)
def quantize_linear(
    x: Expression,
    y_scale: Expression,
    y_zero_point: Expression | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Result:
    if precision:
        x, y_scale = (cast_to(part, dtype_name(precision)) for part in (x, y_scale))
    blocks = (axis, block_size, output_dtype)
    return quantized(x, y_scale, y_zero_point, *blocks, saturate=saturate)


def quantized(
    x: Expression,
    scale: Expression,
    zero_point: Expression | None,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    *,
    saturate: int = 1,
) -> Expression:
    """A zero point that is a number alone does not say the result's type."""
    dtype = dtype_name(output_dtype) if output_dtype else None
    options: dict[str, Any] = {"axis": axis, "block_size": block_size}
    options["saturate"] = saturate
    if zero_point is not None and (shift := _zero(zero_point)) is not None:
        dtype, zero_point = zero_point.dtype, Literal(shift) if shift else None
    elif zero_point is not None:
        dtype, zero_point = None, tensor(zero_point)
    if dtype != "uint8" or zero_point is not None:
        options["dtype"] = dtype
    return call("quantize_linear", tensor(x), operand(scale), zero_point, **options)


def _zero(zero_point: Expression) -> float | None:
    """A zero point without axes that is known, as a number."""
    array = known(zero_point)
    if array is None or array.ndim:
        return None
    return int(array) if "int" in array.dtype.name else float(array)


@onnx_op("DequantizeLinear", since=10, traits=SAME_SHAPE)
def dequantize_linear(
    x: Expression,
    x_scale: Expression,
    x_zero_point: Expression | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Result:
    """A scale that is a number alone has the type that the result has."""
    held = tensor(x_scale, x_scale.dtype)
    options = {"axis": axis, "block_size": block_size}
    if x_zero_point is not None and (shift := _zero(x_zero_point)) is not None:
        x_zero_point = Literal(shift) if shift else None
    y = call("dequantize_linear", tensor(x), held, x_zero_point, **options)
    dtype = dtype_name(output_dtype) if output_dtype else None
    return y if dtype in (None, x_scale.dtype) else cast_to(y, dtype)
