"""Products of rounded inputs and small weights, summed as whole numbers.

Where an input has one scale (or one a row), and a weight one for each output, a layer's
sums are those of integers: exact in floating point while they are below 2**24, and in
float64 beyond. The scales come last, as in ONNX's MatMulInteger and ConvInteger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from burnish import ops
from burnish.autodiff import recording
from burnish.backend import namespace
from burnish.lowbit import Packed
from burnish.nn.lowbit.input_quantizer import InputQuantizer
from burnish.tensor import Tensor

Product = Callable[..., Any]
_EXACT = 2**24


def exact(layer: Any, x: Any, product: Product, *, axis: int, behind: int = 0) -> Any:
    """product(x, weight) + bias of a layer; None where its sums are no whole numbers.

    axis: the weight's that counts the outputs. behind: the result's axes behind those.
    While calls are recorded, only a bias is rounded here: products are in floats.
    """
    if recording.tape is not None:
        return _recorded(layer, x, product)
    quantizer, weight = layer.on_input, layer.weight.held
    array = x.data if isinstance(x, Tensor) else x
    if not (isinstance(quantizer, InputQuantizer) and isinstance(weight, Packed)):
        return None
    if quantizer.integers is None:
        return None
    scheme, scale = quantizer.how, _by_output(weight, axis)
    shared = ("tensor",) if behind else ("tensor", "row")
    if scale is None or not scheme.kind.whole or scheme.level.kind not in shared:
        return None
    if getattr(array, "dtype", None) != np.float32 or not array.size:
        return None
    codes, step = quantizer.whole(array)
    if step.size > 1:
        step = step.reshape(*array.shape[:-1], 1)
    scale = scale.reshape(-1, *(1,) * behind)
    span = scheme.kind.high - scheme.kind.low
    total = product(*_wide(codes, _whole(weight), axis, span))
    unit = step * scale
    bias = None if layer.bias is None else layer.bias.data.reshape(-1, *(1,) * behind)
    if bias is not None:
        is_down = quantizer.bias_scales is not None
        whole = namespace(bias).floor(bias / unit) if is_down else _in_units(bias, unit)
        if whole is not None:
            total, bias = total.astype(np.float64) + whole, None
    y = total.astype(np.float32) * unit
    return Tensor.wrap(y if bias is None else y + bias, layer.device)


def _recorded(layer: Any, x: Any, product: Product) -> Any:
    """A layer's product with its bias rounded down; None where that stays as it is."""
    quantizer = layer.on_input
    if not isinstance(quantizer, InputQuantizer) or quantizer.integers is None:
        return None
    if quantizer.bias_scales is None or layer.bias is None or x.dtype != np.float32:
        return None
    x, scale = quantizer.rounded(x)
    unit = scale.reshape(-1) * quantizer.bias_scales
    return product(x, layer.weight, ops.floor(layer.bias / unit) * unit)


def _in_units(bias: Any, unit: Any) -> Any:
    """A bias as the whole numbers that a file stores of it; None where it has none."""
    whole = namespace(bias).rint(bias.astype(np.float64) / unit)
    same = whole.astype(np.float32) * unit == bias
    return whole if unit.size in (1, bias.size) and bool(same.all()) else None


def _by_output(weight: Packed, axis: int) -> Any:
    """A scale for all outputs, or one for each; None where there are others."""
    level = weight.scheme.level
    if not weight.scheme.kind.whole or weight.dtype != np.float32:
        return None
    if level.kind == "tensor":
        return weight.scales
    if level.kind != "channel":
        return None
    (at,) = level.sizes
    return weight.scales if at % len(weight.shape) == axis else None


def _whole(weight: Packed) -> Any:
    """codes - zero points, as floats."""
    ones = namespace(weight.codes).ones_like(weight.scales)
    return replace(weight, scales=ones).unpack()


def _wide(codes: Any, weight: Any, axis: int, span: float) -> tuple[Any, Any]:
    """Both in the narrowest floats that hold every sum."""
    others = tuple(i for i in range(weight.ndim) if i != axis)
    most = float(abs(weight).sum(others).max()) * span if weight.size else 0.0
    dtype = np.float32 if most < _EXACT else np.float64
    return codes.astype(dtype, copy=False), weight.astype(dtype, copy=False)
