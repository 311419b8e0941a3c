"""FakeQuantize: numbers between layers, rounded as a quantized model has them."""

from __future__ import annotations

from typing import Any

from burnish import ops
from burnish.lowbit import Level, QuantScheme
from burnish.nn import init
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Buffer
from burnish.nn.lowbit.input_quantizer import calibrated
from burnish.tensor import Tensor


class FakeQuantize(Layer):
    """(clip(round(x / scale) + zero_point) - zero_point) * scale, in x's shape

    The numbers between are whole ones of 8 bits, -128 to 127. channels: scales for that
    many places along `axis`; None has one for all. dynamic: one that covers each x.
    """

    def __init__(
        self, channels: int | None = None, *, axis: int = 1, dynamic: bool = False
    ):
        self.channels = channels
        self.axis = axis
        self.dynamic = dynamic
        shape = (1 if channels is None else channels,)
        self.scale = None if dynamic else Buffer(init.ones, shape)
        self.zero_point = None if dynamic else Buffer(init.zeros, shape, "int8")

    def forward(self, x: Tensor) -> Tensor:
        level = Level.tensor() if self.channels is None else Level.channel(self.axis)
        counts, blocks = level.counts(x.shape), level.blocks(x.shape)
        params: tuple[Any, ...]
        if self.scale is None or self.zero_point is None:
            params = calibrated(x, scheme=QuantScheme("q8f", "affine", level))
        else:
            counts = tuple(max(count, 1) for count in counts)  # also of no examples
            params = self.scale.reshape(counts), self.zero_point.reshape(counts)
        return ops.fake_quantize(x, *params, value="q8f", blocks=blocks)
