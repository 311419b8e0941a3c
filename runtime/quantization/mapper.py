"""Dequantize a model's weights."""

from __future__ import annotations

from burnish.nn import ModuleMapper
from burnish.nn.core.param import Stored
from burnish.tensor import Tensor


class Dequantize(ModuleMapper):
    """`Dequantize().map(model)`: quantized parameters hold plain numbers, and train.

    A file is small and the model as fast as before; layers keep rounding what they are
    given, where they did.
    """

    def map_float(self, path: str, tensor: Stored) -> Tensor:
        return tensor.dequantize()
