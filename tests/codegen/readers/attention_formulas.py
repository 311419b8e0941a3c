"""onnxruntime's kinds of attention that it has no kernel for on a CPU, in NumPy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tests.codegen.readers.microsoft import F4, I4, case, fixed, w, x


def softmax(scores: np.ndarray) -> np.ndarray:
    shares: np.ndarray = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def sigmoid(y: np.ndarray) -> np.ndarray:
    share: np.ndarray = 1 / (1 + np.exp(-y))
    return share


# --- sequences without padding ---

COUNTS = np.array([2, 4, 1], I4)
OFFSETS = np.array([[0, 1, 4, 5], [6, 7, 8, 2], [3, 9, 10, 11]], I4)
ENDS = np.array([0, 2, 6, 7], I4)


def remove_padding() -> Any:
    batch = x(3, 4, 5)
    real = OFFSETS.reshape(-1)[:7]
    rows = batch.reshape(12, 5)[real]
    model = case("RemovePadding", batch, COUNTS, outputs=4)
    return model, [rows, OFFSETS, ENDS, np.array([4], I4)]


def restore_padding() -> Any:
    rows = x(7, 5)
    expected = np.zeros((12, 5), F4)
    expected[OFFSETS.reshape(-1)[:7]] = rows
    return case("RestorePadding", rows, OFFSETS), [expected.reshape(3, 4, 5)]


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Two heads, each sequence by itself: (tokens, width)"""
    result = np.zeros_like(v)
    for begin, end in itertools.pairwise(ENDS):
        for head in range(2):
            wide, out = (
                slice(head * n // 2, (head + 1) * n // 2)
                for n in (q.shape[1], v.shape[1])
            )
            scores = q[begin:end, wide] @ k[begin:end, wide].T
            shares = softmax(scores * (q.shape[1] / 2) ** -0.5)
            result[begin:end, out] = shares @ v[begin:end, out]
    return result


def packed_attention() -> Any:
    rows, weight, bias = x(7, 8), w(8, 28), w(28)
    projected = rows @ np.asarray(weight) + np.asarray(bias)
    model = case(
        "PackedAttention",
        *(rows, weight, bias, OFFSETS, ENDS),
        num_heads=2,
        qkv_hidden_sizes=[8, 8, 12],
    )
    return model, [attended(*np.split(projected, [8, 16], axis=1))]


def packed_heads(together: bool) -> Any:
    bias = None if together else w(24)
    q, k, v = (x(7, 8) for _ in "qkv")
    given: tuple[Any, ...] = (q, k, v, bias)
    if together:
        each = [part.reshape(7, 2, 4) for part in (q, k, v)]
        given = (np.stack(each, 2), None, None, None)
    else:
        q, k, v = (
            part + np.asarray(b)
            for part, b in zip((q, k, v), np.split(bias, 3), strict=True)
        )
    model = case("PackedMultiHeadAttention", *given, OFFSETS, ENDS, num_heads=2)
    return model, [attended(q, k, v)]


# --- sparse attention ---

ROWS = np.array([[0, 1, 3, 5, 7], [0, 1, 2, 4, 6]], I4)
COLUMNS = np.array([[0, 0, 1, 1, 2, 0, 3], [0, 1, 0, 2, 2, 3, 0]], I4)
"""Two layouts of blocks of two keys, for heads in turns."""


def heads_with_norms() -> Any:
    """Causal; two heads of queries share one of keys."""
    q, k, v = x(2, 3, 2, 16), x(2, 3, 1, 16), x(2, 3, 1, 16)
    gains = w(16), w(16)
    normed = [
        a / np.sqrt((a**2).mean(-1, keepdims=True) + 1e-5) * np.asarray(gain)
        for a, gain in zip((q, k), gains, strict=True)
    ]
    scores = np.einsum("bihd,bjd->bhij", normed[0], normed[1][:, :, 0]) / 4
    shares = softmax(np.where(np.tri(3, dtype=bool), scores, -np.inf))
    model = case(
        "GroupQueryAttention",
        *(a.reshape(2, 3, -1) for a in (q, k, v)),
        *(None, None, np.array([2, 2], I4), fixed(np.array(3, I4)), *[None] * 7),
        *gains,
        num_heads=2,
        kv_num_heads=1,
        qk_norm_epsilon=1e-5,
    )
    y = np.einsum("bhij,bjd->bihd", shares, v[:, :, 0])
    return model, [y.reshape(2, 3, 32)]


def sparse(*lengths: int, **options: Any) -> Any:
    """One new token each, 4 heads that share two of keys; lengths with it."""
    q, k, v = x(2, 1, 64), x(2, 1, 32), x(2, 1, 32)
    past = [x(2, 2, 8, 16) for _ in "kv"]
    keys, values = (part.copy() for part in past)
    expected = np.zeros((2, 4, 16), F4)
    for b, length in enumerate(lengths):
        keys[b, :, length - 1] = k[b].reshape(2, 16)
        values[b, :, length - 1] = v[b].reshape(2, 16)
        row = (length - 1) // 2
        for head in range(4):
            begin, end = ROWS[head % 2, row : row + 2]
            blocks = COLUMNS[head % 2, begin:end]
            seen = [place for place in range(length) if place // 2 in blocks]
            scores = keys[b, head // 2, seen] @ q[b].reshape(4, 16)[head]
            expected[b, head] = softmax(scores / 4) @ values[b, head // 2, seen]
    made = case(
        "SparseAttention",
        *(q, k, v, *past, fixed(ROWS), fixed(COLUMNS)),
        *(fixed(np.array([max(lengths)], I4)), np.array(lengths, I4)),
        **(options | {"num_heads": 4, "kv_num_heads": 2, "sparse_block_size": 2}),
        outputs=3,
    )
    return made, [expected.reshape(2, 1, 64), keys, values]


# --- biases of attention by positions ---


def distance_bias(both_ways: int) -> Any:
    """T5's buckets: each distance its own, far ones by their logarithm."""
    table, time = x(8, 2), 12
    count = 4 if both_ways else 8
    exact = count // 2
    wanted = np.empty((1, 2, time, time), F4)
    for row, column in np.ndindex(time, time):
        apart = column - row
        first = count if both_ways and apart > 0 else 0
        apart = abs(apart) if both_ways else max(-apart, 0)
        if apart >= exact:
            share = math.log(apart / exact) / math.log(9 / exact)
            apart = min(exact + int(share * (count - exact)), count - 1)
        wanted[0, :, row, column] = table[first + apart]
    stored = fixed(table.T.reshape(8, 2).copy())
    model = case(
        *("RelativePositionBias", stored, np.array(time), np.array(time)),
        is_bidirectional=both_ways,
        max_distance=9,
    )
    return model, [wanted]


def gated_bias() -> Any:
    q, bias, places, weight = x(2, 5, 8), w(8), x(1, 2, 5, 5), w(4, 6)
    shift, eco = w(6), w(1, 2, 1, 1)
    heads = (q + np.asarray(bias)).reshape(2, 5, 2, 4).transpose(0, 2, 1, 3)
    mixed = heads @ np.asarray(weight) + np.asarray(shift)
    update, reset = np.split(sigmoid(mixed.reshape(2, 2, 5, 2, 3).sum(-1)), 2, -1)
    wanted = (update * (reset * np.asarray(eco) - 1) + 2) * places
    model = case(
        *("GatedRelativePositionBias", q, bias, places, weight, shift, eco),
        num_heads=2,
    )
    return model, [wanted]


ATTENTION = {
    "RemovePadding": remove_padding(),
    "RestorePadding": restore_padding(),
    "PackedAttention": packed_attention(),
    "PackedMultiHeadAttention": packed_heads(together=False),
    "PackedMultiHeadAttention, together": packed_heads(together=True),
    "GroupQueryAttention with norms": heads_with_norms(),
    "GatedRelativePositionBias": gated_bias(),
    "RelativePositionBias": distance_bias(0),
    "RelativePositionBias both ways": distance_bias(1),
    "SparseAttention": sparse(7, 7),
    "SparseAttention of rows of two lengths": sparse(7, 4),
}
