"""What a layer is given, rounded to small numbers first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from burnish import ops
from burnish.errors import InputError, RecordError
from burnish.lowbit import QParams, QuantScheme
from burnish.nn.module import Module
from burnish.nn.param import Buffer
from burnish.steps import step


class InputQuantizer(Module):
    """x -> x rounded as `scheme` says; what is not floating point passes through.

    params: fixed scales and zero points ("static"); None takes them from each x
    ("dynamic"). It stands at `layer.on_input` and is saved with the layer.
    """

    def __init__(self, scheme: QuantScheme, params: QParams | None = None):
        text = scheme.to_text((), np.float32)
        self.scheme = Buffer(np.frombuffer(text.encode(), np.uint8))
        self.scales: Buffer | None = None
        self.zero_points: Buffer | None = None
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
        if scales is None:
            return cls(scheme)
        return cls(scheme, QParams(scales, arrays.get("zero_points")))

    @property
    def how(self) -> QuantScheme:
        """The scheme, read."""
        return QuantScheme.from_bytes(self.scheme.settled())[0]

    def forward(self, x: Any) -> Any:
        dtype = getattr(x, "dtype", None)
        if dtype is None or dtype.kind not in "fV":
            return x
        scheme = self.how
        params: tuple[Any, ...] = (self.scales, self.zero_points)
        if self.scales is None:
            params = _calibrated(x, scheme=scheme)
        blocks = scheme.level.blocks(x.shape)
        return ops.fake_quantize(x, *params, value=scheme.value, blocks=blocks)

    def extra_repr(self) -> str:
        return f"{self.how}, {'dynamic' if self.scales is None else 'static'}"


@step
def _calibrated(x: Any, *, scheme: QuantScheme) -> QParams:
    return scheme.calibrated(x)
