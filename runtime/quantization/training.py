"""Quantization-aware training: the rounding takes part, weights stay floating point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from burnish import ops
from burnish.autodiff import Variable
from burnish.errors import InputError
from burnish.lowbit import QParams, QuantizedTensor
from burnish.nn import Module, Param, ParamGroup
from burnish.nn.adapters.applying import computed, replace_computed
from burnish.nn.adapters.reparameterize import Reparameterized, Reparameterizer
from burnish.nn.core.param import Buffer, Stored
from burnish.nn.lowbit.input_quantizer import InputQuantizer
from burnish.quantization.activations import layers
from burnish.quantization.quantizer import Quantizer, chosen
from burnish.steps import step

M = TypeVar("M", bound=Module)
_LEAST = 2.0**-100


@dataclass(frozen=True)
class FakeQuantized(Reparameterizer):
    """A weight as its quantized numbers, which trains in floating point.

    learned: the scales are parameters too (LSQ, https://arxiv.org/abs/1902.08153), else
    they follow the weight.
    """

    quantizer: Quantizer
    learned: bool = False

    def split(self, param: Param) -> dict[str, Stored]:
        parts: dict[str, Stored] = {"base": param}
        if self.learned:
            scales, zero_points = self._calibrated(param)
            parts["scales"] = Param(scales.astype(np.float32))
            if zero_points is not None:
                parts["zero_points"] = Buffer(zero_points)
        return parts

    def params(self, **parts: Any) -> tuple[Any, Any]:
        """Scales and zero points, as they are now."""
        if not self.learned:
            return self._calibrated(parts["base"])
        scales = ops.maximum(parts["scales"], np.float32(_LEAST))
        return scales, parts.get("zero_points")

    def _calibrated(self, base: Param) -> QParams:
        return self.quantizer.scheme.calibrated(base.data, self.quantizer.calibration)

    def value(self, **parts: Any) -> Any:
        scheme, base = self.quantizer.scheme, parts["base"]
        return ops.fake_quantize(
            base,
            *self.params(**parts),
            value=scheme.value,
            blocks=scheme.level.blocks(base.shape),
        )


class FakeInput(Module):
    """x -> x as its quantized numbers; while it trains it follows x's range.

    Running means of least and greatest, saved with the layer; momentum: the share of a
    new batch.
    """

    def __init__(self, quantizer: Quantizer, momentum: float = 0.01):
        if quantizer.scheme.level.kind != "tensor":
            raise InputError(
                f"prepare_qat: expected inputs with one scale per tensor, got "
                f"{quantizer.scheme.level}"
            )
        self.quantizer = quantizer
        self.momentum = momentum
        self.low = Buffer(np.zeros(1, np.float32))
        self.high = Buffer(np.zeros(1, np.float32))
        self.batches = Buffer(np.zeros(1, np.int64))

    def forward(self, x: Any) -> Any:
        if getattr(x, "dtype", np.dtype(bool)).kind not in "fV":
            return x
        scheme = self.quantizer.scheme
        blocks = scheme.level.blocks(x.shape)
        if self.training:
            low, high, batches = _followed(
                x, self.low, self.high, self.batches, fake=self, blocks=blocks
            )
            self.low.assign(low)
            self.high.assign(high)
            self.batches.assign(batches)
        return ops.fake_quantize(x, *self.params(), value=scheme.value, blocks=blocks)

    def params(self) -> QParams:
        """Scales and zero points, as they are now."""
        return _params(self.low, self.high, scheme=self.quantizer.scheme)

    def extra_repr(self) -> str:
        return str(self.quantizer.scheme)


@step
def _params(low: Any, high: Any, *, scheme: Any) -> QParams:
    return scheme.params(low, high)


@step
def _followed(
    x: Any, low: Any, high: Any, batches: Any, *, fake: FakeInput, blocks: Any
) -> tuple[Any, Any, Any]:
    """The range after another batch, and how many there are."""
    quantizer = fake.quantizer
    share = np.float32(fake.momentum if int(batches[0]) else 1.0)
    ends = quantizer.calibration.ranges(x, quantizer.scheme, blocks)
    new = (
        old + share * (end.astype("f4") - old)
        for old, end in zip((low, high), ends, strict=True)
    )
    return *(each.astype("f4") for each in new), batches + 1


def prepare_qat(
    model: M,
    weights: Quantizer | None = None,
    inputs: Quantizer | None = None,
    group: ParamGroup | None = None,
    learned: bool = False,
) -> M:
    """Let a model train with the rounding of its weights and inputs, in place.

    Gradients go straight through the rounding and are 0 where a value is cut off.
    inputs: None leaves them as they are. learned: the weights' scales are trained too.
    Train, then `convert_qat`.
    """
    found = layers(model, group) if inputs is not None else {}
    fakes = {path: FakeInput(inputs) for path in found} if inputs is not None else {}
    params = {id(param) for param in chosen(model, group).values()}
    method = FakeQuantized(weights or Quantizer(), learned)
    these = ParamGroup.from_predicate(lambda path, param: id(param) in params)
    model.apply_reparameterization(method, these)
    for path, layer in found.items():
        layer.on_input = fakes[path].to(layer.device)
    return model.to(model.device)


def convert_qat(model: M) -> M:
    """A quantized model out of a trained `prepare_qat`, in place, with its numbers.

    Raises InputError when the model was not prepared, or an input never trained.
    """
    fakes = [m for _, m in model.named_modules() if isinstance(m.on_input, FakeInput)]
    if not any(isinstance(item.method, FakeQuantized) for item in computed(model)):
        raise InputError(
            f"convert_qat: expected a model that prepare_qat has prepared, got "
            f"{type(model).__name__} without"
        )
    for path, module in model.named_modules():
        fake = module.on_input
        if isinstance(fake, FakeInput) and not int(fake.batches.numpy()[0]):
            raise InputError(
                f"convert_qat: {path or 'the model'}: expected inputs seen in "
                f"training, there were none; train on an autodiff device first"
            )
    replace_computed(model, _packed)
    for layer in fakes:
        fake = layer.on_input
        assert isinstance(fake, FakeInput)
        made = InputQuantizer(fake.quantizer.scheme, fake.params())
        layer.on_input = made.to(layer.device)
    return model


def _packed(item: Reparameterized) -> Param:
    if not isinstance(item.method, FakeQuantized):
        return item
    parts = {name or "base": part for name, part in item.parts()}
    base, scheme = parts["base"], item.method.quantizer.scheme
    scales, zero_points = item.method.params(**parts)
    held = scales.data if isinstance(scales, Variable) else scales
    zeros = zero_points.data if isinstance(zero_points, Variable) else zero_points
    packed = scheme.pack(base.data, QParams(held, zeros))
    made = Param(base.data)
    made.place(base.device)
    made.assign(QuantizedTensor(packed, base.device.inner()))
    return made
