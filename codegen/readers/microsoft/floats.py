"""Weights in blocks of 4-bit floats, as bitsandbytes stores them."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    array_of,
    microsoft,
)
from burnish.codegen.weights import constants

_FP4 = (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
_NF4_BELOW = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495),
)
_NF4_ABOVE = (
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634),
    *(0.33791524171829224, 0.44070982933044434, 0.5626170039176941),
    *(0.7229568362236023, 1.0),
)
_CODES = {
    0: np.array([*_FP4, *(-each for each in _FP4)], np.float32),
    1: np.array([*_NF4_BELOW, 0, *_NF4_ABOVE], np.float32),
}
"""What each code means: FP4, and NormalFloat4 of QLoRA (Dettmers et al. 2023)."""


@microsoft("MatMulBnb4")
def matmul_bnb4(
    op: Builder,
    A: Any,
    B: Any,
    absmax: Any,
    *,
    K: int,
    N: int,
    block_size: int,
    quant_type: int,
    training_mode: int = 0,
    transB: int = 1,
) -> Any:
    """A @ weight.T; B holds the weight (N, K) row after row, the high bits first.

    absmax: the largest number of each block. The weight is a plain one then.
    """
    if quant_type not in _CODES or not transB:
        raise Unreadable(f"expected FP4 or NF4 of (N, K), got type {quant_type}")
    stored, largest = array_of(B, "B").reshape(-1), array_of(absmax, "absmax")
    codes = np.stack([stored >> 4, stored & 15], -1).reshape(-1)[: N * K]
    scales = np.repeat(largest.reshape(-1), block_size)[: N * K]
    weight = (_CODES[quant_type][codes] * scales).astype(largest.dtype)
    held = op.value(np.ascontiguousarray(weight.reshape(N, K).T))
    held.name = B.name
    constants.mark_weight(op.nodes[-1])
    return op.MatMul(A, held)
