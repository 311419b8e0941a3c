"""Numbers of few bits, several to a byte, low bits first."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

TYPES = {4: ir.DataType.UINT4, 8: ir.DataType.UINT8}


def unpacked(stored: np.ndarray, bits: int) -> np.ndarray:
    """Bytes to numbers of few bits along the last axis."""
    if bits == 8:
        return stored
    pair = np.stack([stored & 15, stored >> 4], axis=-1)
    return pair.reshape(*stored.shape[:-1], -1)


def packed(numbers: np.ndarray, bits: int) -> Any:
    kind = TYPES[bits]
    return ir.Tensor(numbers.astype(kind.numpy()), dtype=kind)
