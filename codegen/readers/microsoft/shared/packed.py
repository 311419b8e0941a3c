"""Numbers of few bits, several to a byte, low bits first."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

TYPES = {2: ir.DataType.UINT4, 4: ir.DataType.UINT4, 8: ir.DataType.UINT8}
"""What holds numbers of so many bits: 2 bits have no type before opset 25."""


def unpacked(stored: np.ndarray, bits: int) -> np.ndarray:
    """Bytes to numbers of few bits along the last axis."""
    if bits == 8:
        return stored
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = stored[..., None] >> shifts & np.uint8((1 << bits) - 1)
    return parts.reshape(*stored.shape[:-1], -1)


def packed(numbers: np.ndarray, bits: int) -> Any:
    kind = TYPES[bits]
    return ir.Tensor(numbers.astype(kind.numpy()), dtype=kind)
