"""Philox 4x32-10 (Salmon et al. 2011): random words by a counter and a key."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from burnish.backend.namespace import Array

_TOGETHER = 1 << 14  # counters whose words stay in the second cache
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)


def words(first: Array, key: int) -> tuple[Array, Array, Array, Array]:
    """The words of counters (c0, c1, c2, c3), first (4, n): four uint64 arrays (n,).

    Counters and words are below 2**32; key: its lower 32 bits are the first word.
    """
    a, b, c, d = first.astype(np.uint64)
    spare = np.empty_like(a)
    for low, high in _round_keys(key):
        np.multiply(a, _FACTORS[0], out=a)
        np.multiply(c, _FACTORS[1], out=c)
        np.right_shift(c, _HALF, out=spare)
        spare ^= b
        spare ^= low
        np.bitwise_and(c, _LOW, out=b)
        np.right_shift(a, _HALF, out=c)
        c ^= d
        c ^= high
        np.bitwise_and(a, _LOW, out=d)
        a, spare = spare, a
    return a, b, c, d


def drawn_mask(count: int, probability: float, key: int) -> Array:
    """Booleans (count,), True with `probability`.

    Position p has word p % 4 of the counter (p // 4, 0, 0): the kernels for CPUs and
    GPUs give the same.
    """
    bound = np.uint64(mask_bound(probability))
    counters = -(-count // 4)
    kept = np.empty((counters, 4), bool)
    for start in range(0, counters, _TOGETHER):
        part = kept[start : start + _TOGETHER]
        first = np.zeros((4, len(part)), np.uint64)
        places = np.arange(start, start + len(part), dtype=np.uint64)
        first[:2] = places & _LOW, places >> _HALF
        for i, word in enumerate(words(first, key)):
            np.less(word, bound, out=part[:, i])
    return kept.reshape(-1)[:count]


def mask_bound(probability: float) -> int:
    """The number below which words are kept, whose upper 24 bits are compared."""
    share = math.ceil(float(np.float32(probability)) * (1 << 24))
    return min(max(share, 0), 1 << 24) << 8


def _round_keys(key: int) -> Iterator[tuple[np.uint64, np.uint64]]:
    for i in range(10):
        low, high = (key & 0xFFFFFFFF) + i * 0x9E3779B9, (key >> 32) + i * 0xBB67AE85
        yield np.uint64(low & 0xFFFFFFFF), np.uint64(high & 0xFFFFFFFF)
