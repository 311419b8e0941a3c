"""QuantizedTensor: the result of `tensor.quantize(scheme)`."""

from __future__ import annotations

from typing import Any

from burnish.backend import Device
from burnish.lowbit.packed import Packed
from burnish.tensor import Tensor


class QuantizedTensor(Tensor):
    """A quantized tensor; an operator computes with its dequantized values.

    packed: codes, scales and zero points. Its `data` is computed at every use and not
    kept; `dequantize()` gives a plain tensor.
    """

    __slots__ = ("packed",)

    packed: Packed

    def __init__(self, packed: Packed, device: Device):
        self.packed = packed
        self.device = device
        self.node = None
        self.index = 0

    @property
    def data(self) -> Any:
        return self.packed.unpack()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.packed.shape

    @property
    def dtype(self) -> Any:
        return self.packed.dtype

    @property
    def scheme(self) -> Any:
        """Its QuantScheme."""
        return self.packed.scheme

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales and zero points."""
        return self.packed.nbytes

    def dequantize(self) -> Tensor:
        """A plain tensor of its values."""
        return self.wrap(self.data, self.device)

    def __repr__(self) -> str:
        return f"QuantizedTensor({self.shape}, {self.dtype}, {self.scheme})"
