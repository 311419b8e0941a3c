"""Fake quantization of a layer's inputs, and its place in weights files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from burnish import ops
from burnish.backend import namespace
from burnish.errors import InputError, RecordError
from burnish.lowbit import Packed, QParams, QuantScheme
from burnish.lowbit.files import as_array
from burnish.nn.core.module import Module
from burnish.nn.core.param import Buffer
from burnish.steps import step


class InputQuantizer(Module):
    """x -> x rounded as `scheme` says; arrays that are not floating point pass through.

    params: fixed scales and zero points ("static"); None takes them from each x
    ("dynamic"). It is kept at `layer.on_input` and is saved with the layer.
    integers: the layer sums whole numbers, as ONNX's MatMulInteger, where its weight
    has them too and nothing is recorded; else the values that they represent.
    bias_scales: the weight's scales, where the layer's bias is rounded down to whole
    units of its sums (the input's scale times the weight's) unless it trains.
    """

    def __init__(
        self,
        scheme: QuantScheme,
        params: QParams | None = None,
        *,
        integers: bool = False,
        bias_scales: Any = None,
    ):
        text = scheme.to_text((), np.float32)
        self.scheme = Buffer(np.frombuffer(text.encode(), np.uint8))
        self.scales: Buffer | None = None
        self.zero_points: Buffer | None = None
        self.integers = Buffer(np.ones(1, np.uint8)) if integers else None
        self.bias_scales = None if bias_scales is None else Buffer(bias_scales)
        if params is not None:
            self.scales = Buffer(params.scales)
            if params.zero_points is not None:
                self.zero_points = Buffer(params.zero_points)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """One as a file has it; RecordError when it does not say what it is."""
        try:
            scheme, _, _ = QuantScheme.from_bytes(arrays["scheme"])
        except InputError as error:
            raise RecordError(f"on_input: {error}") from None
        scales = arrays.get("scales")
        params = None if scales is None else QParams(scales, arrays.get("zero_points"))
        return cls(
            scheme,
            params,
            integers="integers" in arrays,
            bias_scales=arrays.get("bias_scales"),
        )

    @property
    def how(self) -> QuantScheme:
        """The scheme, read."""
        return QuantScheme.from_bytes(self.scheme.settled())[0]

    def forward(self, x: Any) -> Any:
        dtype = getattr(x, "dtype", None)
        if dtype is None or dtype.kind not in "fV":
            return x
        return self.rounded(x)[0]

    def rounded(self, x: Any) -> tuple[Any, Any]:
        """x rounded, and its scales."""
        scheme, params = self.how, self._params(x)
        blocks = scheme.level.blocks(x.shape)
        y = ops.fake_quantize(x, *params, value=scheme.value, blocks=blocks)
        return y, params[0]

    def whole(self, x: Any) -> tuple[Any, Any]:
        """An array as whole numbers, 0 for 0, held as floats; and their scales."""
        scheme = self.how
        scales, zeros = self._params(x)
        if self.scales is not None:
            scales, zeros = scales.data, None if zeros is None else zeros.data
        params = QParams(scales, zeros)
        codes = ops.quantize_blocks(
            x, *params, value=scheme.value, blocks=scheme.level.blocks(x.shape)
        )
        ones = namespace(x).ones_like(params.scales)
        packed = Packed(scheme, codes, ones, params.zero_points, x.shape, x.dtype)
        return packed.unpack(), params.scales

    def _params(self, x: Any) -> tuple[Any, ...]:
        """Scales and zero points: its own, or those of x."""
        if self.scales is None:
            return calibrated(x, scheme=self.how)
        return self.scales, self.zero_points

    def extra_repr(self) -> str:
        return f"{self.how}, {'dynamic' if self.scales is None else 'static'}"


@step
def calibrated(x: Any, *, scheme: QuantScheme) -> QParams:
    """Scales and zero points that cover x."""
    return scheme.calibrated(x)


@contextlib.contextmanager
def inputs_installed(module: Module, state: Mapping[str, Any]) -> Iterator[None]:
    """Give layers the input quantizers that a file has for them.

    They are taken away again when the block raises. A layer "fc" has one where there is
    a name "fc.on_input.scheme".
    """
    end = "on_input.scheme"
    wanted = {
        name.removesuffix(end).rstrip("."): name for name in state if name.endswith(end)
    }
    layers = dict(module.named_modules()) if wanted else {}
    before = {}
    for path in wanted:
        if path in layers:
            prefix = wanted[path].removesuffix("scheme")
            parts = {
                name.removeprefix(prefix): as_array(state[name])
                for name in state
                if name.startswith(prefix)
            }
            before[path] = layers[path].on_input
            layers[path].on_input = InputQuantizer.from_arrays(parts).to(
                layers[path].device
            )
    try:
        yield
    except BaseException:
        for path, item in before.items():
            layers[path].on_input = item
        raise
