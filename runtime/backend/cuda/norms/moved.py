"""Launching the kernel that moves many running statistics towards those of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from burnish.backend.cuda.kernels import by_value, kernel
from burnish.backend.cuda.layout import contiguous

_THREADS = 256
_MOST = 72
"""Arrays of a launch: kernels take 4 KB of arguments."""

ELEMENTS = {"float32": "float", "float64": "double"}
"""The CUDA types of the dtypes that are moved."""
COUNTS = {"int64": "long long"}
"""Those of dtypes that count."""


class Move(NamedTuple):
    """old * (1 - share) + new * (share * scale), or old + 1 where new is None.

    old and new have one shape and dtype.
    """

    old: Any
    new: Any
    share: float
    scale: float


def moved(moves: Sequence[Move]) -> list[Any]:
    """The result of each; those of one dtype are one launch, or a few."""
    import cupy

    made = [cupy.ndarray(move.old.shape, move.old.dtype) for move in moves]
    groups: dict[str, list[tuple[Move, Any]]] = {}
    for move, y in zip(moves, made, strict=True):
        groups.setdefault(y.dtype.name, []).append((move, y))
    for name, rows in groups.items():
        counts = name in COUNTS
        element = COUNTS[name] if counts else ELEMENTS[name]
        run = kernel("moved", element=element, wide=element, counts=counts, most=_MOST)
        for start in range(0, len(rows), _MOST):
            _launch(run, rows[start : start + _MOST])
    return made


def _launch(run: Any, rows: list[tuple[Move, Any]]) -> None:
    table, blocks = np.zeros((7, _MOST), np.int64), 0
    factors, held = table[3:5].view(np.float64), list[Any]()
    for i, (move, y) in enumerate(rows):
        old = contiguous(move.old)
        new = old if move.new is None else contiguous(move.new)
        held += old, new  # copies too, until they are read
        table[:3, i] = old.data.ptr, new.data.ptr, y.data.ptr
        factors[:, i] = 1 - move.share, move.share * move.scale
        table[5:, i] = y.size, blocks
        blocks += -(-y.size // _THREADS)
    if blocks:
        run((blocks,), (_THREADS,), (by_value(table), len(rows)))
