"""Workspace sizes and packed weights of kernels, in plans and in eager calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LANES = 16
"""Numbers side by side in a block: channels, hidden units."""

_TOGETHER = 32
"""Examples that go through time together, as in recurrent.c and recurrent_gradient.c"""

CHUNK = 32
"""Rows with a sum of their own in a weight's gradient, as in row_gradients.c"""

_QUERIES = 12  # at most whose scores and results are held, as in attention.c

_GRADIENT_QUERIES, _GRADIENT_KEYS = 96, 256
"""Of a block, as in attention_gradient.c"""

_ROUNDED = 1 << 18  # numbers that are rounded to bfloat16 at a time


def whole(n: int) -> int:
    """n, up to whole blocks of LANES."""
    return -(-n // LANES) * LANES


def even(n: int) -> int:
    """n, up to an even number."""
    return n + n % 2


def paired(rows: Any, wide: int) -> Any:
    """Rows of `wide` float32 numbers as pairs of bfloat16, (rows / 2, wide, 2), flat.

    To the nearest, ties to even; the array is of uint16.
    """
    rows = np.ascontiguousarray(rows, np.float32).reshape(-1, 2, wide)
    made = np.empty((len(rows), wide, 2), np.uint16)
    step = max(1, _ROUNDED // (2 * wide))  # so that intermediate values stay small
    for start in range(0, len(rows), step):
        some = rows[start : start + step].swapaxes(1, 2)
        bits = np.ascontiguousarray(some).view(np.uint32)
        upper = bits + (0x7FFF + (bits >> 16 & 1)) >> 16
        made[start : start + step] = np.where(np.isnan(some), 0x7FC0, upper)
    return made.reshape(-1)


def attention_room(size: int, keys: int, values: int) -> int:
    """Floats that a share of attention needs: keys, values, scores and results."""
    held = _QUERIES * (whole(keys) + whole(values))
    return size * whole(keys) + keys * whole(values) + held


def attention_gradient_room(size: int, keys: int, values: int) -> int:
    """Floats that a share of attention's gradient needs; as in attention_gradient.c."""
    wide = whole(min(keys, _GRADIENT_KEYS))
    both, rows = whole(size) + whole(values), wide + _GRADIENT_QUERIES
    turned = wide * (size + values + whole(size))
    sums = max(wide, _GRADIENT_QUERIES) * max(whole(size), whole(values))
    return turned + rows * both + 2 * _GRADIENT_QUERIES * wide + sums


def recurrent_room(count: int, hidden: int) -> int:
    """Floats that a share of a recurrent layer needs: states, cells, states before."""
    return min(count, _TOGETHER) * 3 * whole(hidden)


def recurrent_gradient_room(count: int, hidden: int) -> int:
    """Floats that a share of its gradient needs: those of states and of cells."""
    return min(count, _TOGETHER) * 2 * whole(hidden)


def recurrent_codes_room(count: int, hidden: int) -> int:
    """Floats that such a layer with rounded states needs: h, c, and codes of h."""
    return count * (2 * whole(hidden) + whole(hidden) // 4)


def recurrent_shares(count: int, threads: int) -> int:
    """The most shares of so many examples that leave several to go together."""
    return max(min(count, threads), -(-count // _TOGETHER))


def by_units(weight: Any) -> Any:
    """(rows, hidden) as (block of hidden, row, LANES), zeros behind."""
    rows, hidden = weight.shape
    made = np.zeros((whole(hidden) // LANES, rows, LANES), np.float32)
    for block, start in enumerate(range(0, hidden, LANES)):
        some = weight[:, start : start + LANES]
        made[block, :, : some.shape[1]] = some
    return made


def interleaved(weight: Any, order: Sequence[int], hidden: int) -> Any:
    """(gates * hidden, hidden) as (block of hidden, hidden before, gate, LANES)"""
    w = weight.reshape(len(order), hidden, hidden)
    if hidden % LANES:
        w = np.zeros((len(order), whole(hidden), hidden), np.float32)
        w[:, :hidden] = weight.reshape(len(order), hidden, hidden)
    w = w.reshape(len(order), -1, LANES, hidden).swapaxes(2, 3)
    made = np.empty((w.shape[1], hidden, len(order), LANES), np.float32)
    for gate, place in enumerate(order):
        made[:, :, gate] = w[place]
    return made
