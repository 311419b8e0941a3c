"""FakeQuantize: numbers between layers, rounded as a quantized model has them."""

from __future__ import annotations

from typing import Any

from burnish import ops
from burnish.lowbit import Level, QuantScheme
from burnish.nn import init
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Buffer
from burnish.nn.lowbit.input_quantizer import calibrated
from burnish.ops.quantized.small import small
from burnish.tensor import Tensor


class FakeQuantize(Layer):
    """(clip(round(x / scale) + zero_point) - zero_point) * scale, in x's shape

    value: the numbers between, as of a QuantScheme: "q8f" has whole ones, -128 to 127,
    "q16f" -32768 to 32767; small floats, as "e4m3", have no zero point. channels:
    scales for that many places along `axis`; None has one for all. dynamic: one that
    covers each x. Raises InputError for a value that there is not.
    """

    def __init__(
        self,
        channels: int | None = None,
        *,
        axis: int = 1,
        dynamic: bool = False,
        value: str = "q8f",
    ):
        self.channels = channels
        self.axis = axis
        self.dynamic = dynamic
        self.value = value
        kind, shape = small(value), (1 if channels is None else channels,)
        has_zero = kind.whole and not dynamic
        self.scale = None if dynamic else Buffer(init.ones, shape)
        self.zero_point = (
            Buffer(init.zeros, shape, kind.dtype.name) if has_zero else None
        )

    def forward(self, x: Tensor) -> Tensor:
        level = Level.tensor() if self.channels is None else Level.channel(self.axis)
        counts, blocks = level.counts(x.shape), level.blocks(x.shape)
        params: tuple[Any, ...]
        if self.scale is None:
            mode = "affine" if small(self.value).whole else "symmetric"
            params = calibrated(x, scheme=QuantScheme(self.value, mode, level))
        else:
            counts = tuple(max(count, 1) for count in counts)  # also of no examples
            zero = self.zero_point
            params = (
                self.scale.reshape(counts),
                None if zero is None else zero.reshape(counts),
            )
        return ops.fake_quantize(x, *params, value=self.value, blocks=blocks)
