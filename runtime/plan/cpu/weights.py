"""How weights and biases of products and convolutions are packed."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.plan.cpu.layout import LANES
from burnish.plan.graph import Constant, constant


def packed(weight: Constant, groups: int, nr: int, depth: int) -> Constant:
    """Weights in the order of their use: (nr blocks of outputs, block, tap, input)."""
    wide = nr * LANES

    def pack(w: Any) -> Any:
        outs, ins = w.shape[0] // groups, w.shape[1]
        w = w.reshape(groups, outs, ins, -1)
        short = -outs % wide
        w = np.pad(w, ((0, 0), (0, short), (0, 0), (0, 0)))
        w = w.reshape(-1, wide, ins, w.shape[-1])
        whole = ins // depth * depth
        parts = []
        for lo, hi, step in ((0, whole, depth), (whole, ins, ins - whole)):
            if lo < hi:
                part = w[:, :, lo:hi].reshape(len(w), wide, -1, step, w.shape[-1])
                parts.append(part.transpose(0, 2, 4, 3, 1).reshape(len(w), -1))
        return np.ascontiguousarray(np.concatenate(parts, axis=1), np.float32)

    return weight.then(pack)


def packed_bias(bias: Constant | None, groups: int, outs: int, wide: int) -> Constant:
    """A bias with zeros behind the outputs of every group, which has `wide` of them."""
    if bias is None:
        return constant(np.zeros(groups * wide, np.float32))
    short = wide - outs
    return bias.then(
        lambda a: np.pad(a.reshape(groups, outs), ((0, 0), (0, short))).reshape(-1)
    )


def fitting(rows: list[int], count: int, places: int) -> int:
    """How many blocks of channels a tile has, a divisor of `count`."""
    usable = [nr for nr in range(1, 5) if rows[nr] and count % nr == 0]
    few = [nr for nr in usable if rows[nr] >= places]
    if few:
        return max(few)
    return max(
        (nr for nr in usable if nr < 4), key=lambda nr: min(rows[nr] * nr, 27 + nr)
    )
