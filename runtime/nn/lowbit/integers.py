"""Products of rounded inputs and small weights, summed as whole numbers.

Where an input has one scale (or one a row), and a weight one for each output, a layer's
sums are those of integers: exact in floating point while they are below 2**24, and in
float64 beyond. The scales come last, as in ONNX's MatMulInteger and ConvInteger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from burnish import ops
from burnish.autodiff import recording
from burnish.backend import namespace
from burnish.lowbit import Packed
from burnish.nn.lowbit.input_quantizer import InputQuantizer
from burnish.tensor import Tensor

Product = Callable[..., Any]
_EXACT = 2**24
_LEVELS = ("tensor", "row")


class _Whole(NamedTuple):
    """A weight's codes less its zero points, in the narrowest floats for their sums."""

    numbers: Any
    scale: Any  # one, or one for each output


def exact(layer: Any, x: Any, product: Product, *, axis: int, behind: int = 0) -> Any:
    """product(x, weight) + bias of a layer; None where its sums are no whole numbers.

    axis: the weight's that counts the outputs. behind: the result's axes behind those.
    While calls are recorded, only a bias is rounded here: products are in floats.
    """
    if recording.tape is not None:
        return _recorded(layer, x, product)
    quantizer, shared = layer.on_input, ("tensor",) if behind else _LEVELS
    whole = _whole(quantizer, layer.weight, axis, shared) if _fits(x) else None
    if whole is None:
        return None
    codes, step = _codes(quantizer, x)
    is_down = quantizer.bias_scales is not None
    y = _scaled(codes, step, whole, product, layer.bias, behind, is_down)
    return Tensor.wrap(y, layer.device)


def linears(
    layer: Any, quantizer: Any, names: Sequence[str]
) -> Callable[..., Iterator[Any]]:
    """(x, *biases) -> x @ weight.T + bias for each named weight, x rounded once.

    Sums are those of whole numbers where `exact` has such, else of floats. The weights
    are brought into form here, for all calls of the result.
    """
    weights = [getattr(layer, name) for name in names]
    is_plain = layer.training or recording.tape is not None
    wholes = [
        None if is_plain else _whole(quantizer, weight, 0, _LEVELS)
        for weight in weights
    ]

    def every(x: Any, *biases: Any) -> Iterator[Any]:
        found = [whole for whole in wholes if whole is not None] if _fits(x) else []
        if len(found) < len(weights):
            x = quantizer(x)
            for weight, bias in zip(weights, biases, strict=True):
                yield ops.linear(x, weight, bias)
            return
        codes, step = _codes(quantizer, x)
        for whole, bias in zip(found, biases, strict=True):
            y = _scaled(codes, step, whole, ops.linear, bias)
            yield Tensor.wrap(y, layer.device)

    return every


def _fits(x: Any) -> bool:
    """Whether x has single precision, and any numbers."""
    return getattr(x, "dtype", None) == np.float32 and 0 not in x.shape


def _whole(
    quantizer: Any, weight: Any, axis: int, shared: tuple[str, ...]
) -> _Whole | None:
    """A weight for products with what a quantizer rounds; None without such sums."""
    held = weight.held
    if not (isinstance(quantizer, InputQuantizer) and isinstance(held, Packed)):
        return None
    if quantizer.integers is None:
        return None
    scheme, scale = quantizer.how, _by_output(held, axis)
    if scale is None or not scheme.kind.whole or scheme.level.kind not in shared:
        return None
    ones = namespace(held.codes).ones_like(held.scales)
    numbers = replace(held, scales=ones).unpack()
    others = tuple(i for i in range(numbers.ndim) if i != axis)
    most = float(abs(numbers).sum(others).max()) if numbers.size else 0.0
    if most * (scheme.kind.high - scheme.kind.low) >= _EXACT:
        numbers = numbers.astype(np.float64)
    return _Whole(numbers, scale)


def _codes(quantizer: Any, x: Any) -> tuple[Any, Any]:
    """x as whole numbers, and a scale for all of them or for each row."""
    codes, step = quantizer.whole(x.data if isinstance(x, Tensor) else x)
    return codes, step if step.size == 1 else step.reshape(*x.shape[:-1], 1)


def _scaled(
    codes: Any,
    step: Any,
    whole: _Whole,
    product: Product,
    bias: Any,
    behind: int = 0,
    is_down: bool = False,
) -> Any:
    """The product's sums times their scales, plus the bias; is_down: of whole units."""
    total = product(codes.astype(whole.numbers.dtype, copy=False), whole.numbers)
    unit = step * whole.scale.reshape(-1, *(1,) * behind)
    bias = None if bias is None else bias.data.reshape(-1, *(1,) * behind)
    if bias is not None:
        units = namespace(bias).floor(bias / unit) if is_down else _in_units(bias, unit)
        if units is not None:
            total, bias = total.astype(np.float64) + units, None
    y = total.astype(np.float32) * unit
    return y if bias is None else y + bias


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
