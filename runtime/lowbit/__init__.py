"""Quantized arrays: schemes, and tensors in a few bits.

`burnish.quantization` is the page for users; this is what modules need of it.
"""

from burnish.lowbit.calibration import Calibration
from burnish.lowbit.level import Level
from burnish.lowbit.packed import Packed
from burnish.lowbit.scheme import VALUES, QParams, QuantScheme
from burnish.lowbit.tensor import QuantizedTensor

__all__ = [
    "VALUES",
    "Calibration",
    "Level",
    "Packed",
    "QParams",
    "QuantScheme",
    "QuantizedTensor",
]
