"""Grouped-query and sparse attention over a key-value cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.readers.microsoft.attention.multihead import attended, by_head
from burnish.codegen.readers.microsoft.attention.rotary import rotated
from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    array_of,
    known,
    microsoft,
)
from burnish.codegen.readers.microsoft.shared.caches import (
    Cache,
    cache_step,
    restored,
    stored,
)
from burnish.codegen.readers.microsoft.shared.masks import triangle


@microsoft("GroupQueryAttention")
def group_query_attention(
    op: Builder,
    query: Any,
    key: Any,
    value: Any,
    past_key: Any,
    past_value: Any,
    seqlens_k: Any,
    total_sequence_length: Any,
    cos_cache: Any = None,
    sin_cache: Any = None,
    position_ids: Any = None,
    attention_bias: Any = None,
    head_sink: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    q_norm_weight: Any = None,
    k_norm_weight: Any = None,
    *,
    causal: int = 1,
    do_rotary: int = 0,
    k_norm_epsilon: float | None = None,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    q_norm_epsilon: float | None = None,
    qk_norm_epsilon: float = 1e-6,
    qk_output: int = 0,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    smooth_softmax: int = 0,
    softcap: float = 0.0,
    v_quant_type: str = "NONE",
) -> Any:
    """Causal; the new keys of each row follow those that it has in the past.

    Without a past every row starts at 0; elements behind a row's end are padding.
    """
    if not causal or qk_output:
        raise Unreadable("expected causal attention, and no scores asked for")
    bits = kv_cache_bit_width
    steps = (
        cache_step(op, past_key, k_scale, k_quant_type, bits, kv_num_heads),
        cache_step(op, past_value, v_scale, v_quant_type, bits, kv_num_heads),
    )
    q, k, v = _parts(op, query, key, value, num_heads, kv_num_heads)
    if q_norm_weight is not None:
        q = _normed(op, q, q_norm_weight, q_norm_epsilon or qk_norm_epsilon)
    if k_norm_weight is not None:
        k = _normed(op, k, k_norm_weight, k_norm_epsilon or qk_norm_epsilon)
    cache = None
    if past_key is not None:
        cache = Cache(op, q, seqlens_k, total_sequence_length, missing=1)
    if do_rotary:
        places = _places(op, q, cache) if position_ids is None else position_ids
        q, k = (
            rotated(op, x, places, cos_cache, sin_cache, rotary_interleaved)
            for x in (q, k)
        )
    if head_sink is None and smooth_softmax == 1:
        head_sink = op.Expand(op.number(0.0, query), [num_heads])
    own = cache is not None or local_window_size > 0 or head_sink is not None
    seen_k, seen_v = k, v
    if cache is not None:
        k = cache.with_new(past_key, stored(op, k, steps[0]))
        v = cache.with_new(past_value, stored(op, v, steps[1]))
        seen_k = restored(op, cache.seen(k), steps[0])
        seen_v = restored(op, cache.seen(v), steps[1])
    mask = attention_bias
    if own:
        window = local_window_size
        seen = triangle(op, q, k, window) if cache is None else cache.mask(window)
        if head_sink is not None and mask is None:
            mask = op.number(0.0, query)
        mask = seen if mask is None else op.Where(seen, mask, op.lowest(query))
    if head_sink is not None:
        mask = _with_sink(op, mask, head_sink, num_heads)
        seen_k, seen_v = (op.Pad(x, [0, 0, 0, 0, 0, 0, 1, 0]) for x in (seen_k, seen_v))
    y = attended(
        *(op, q, seen_k, seen_v),
        mask=mask,
        causal=not own,
        scale=scale,
        softcap=softcap,
    )
    return y, k, v


@microsoft("SparseAttention")
def sparse_attention(
    op: Builder,
    query: Any,
    key: Any,
    value: Any,
    past_key: Any,
    past_value: Any,
    block_row_indices: Any,
    block_col_indices: Any,
    total_sequence_length: Any,
    key_total_sequence_lengths: Any,
    cos_cache: Any = None,
    sin_cache: Any = None,
    *,
    do_rotary: int = 0,
    kv_num_heads: int,
    num_heads: int,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    sparse_block_size: int,
) -> Any:
    """Causal over a cache; each head sees the blocks of keys that its layout lists."""
    q, k, v = _parts(op, query, key, value, num_heads, kv_num_heads)
    cache = Cache(op, q, key_total_sequence_lengths, total_sequence_length)
    if do_rotary:
        q, k = (
            rotated(op, x, cache.places, cos_cache, sin_cache, rotary_interleaved)
            for x in (q, k)
        )
    k, v = cache.with_new(past_key, k), cache.with_new(past_value, v)
    blocks = _blocks(block_row_indices, block_col_indices, num_heads)
    y = attended(
        *(op, q, cache.seen(k), cache.seen(v)),
        mask=op.And(cache.mask(), cache.in_blocks(blocks, sparse_block_size)),
        causal=False,
        scale=scale,
    )
    return y, k, v


def _blocks(rows: Any, columns: Any, heads: int) -> np.ndarray:
    """Which blocks of keys each block of queries sees: (heads or 1, blocks, blocks)

    A layout has its columns row by row, and rows where those of each begin.
    """
    starts, places = array_of(rows, "layouts"), array_of(columns, "layouts")
    count = starts.shape[1] - 1
    seen = np.zeros((len(starts), count, count), bool)
    for layout, row in np.ndindex(len(starts), count):
        begin, end = starts[layout, row : row + 2]
        seen[layout, row, places[layout, begin:end]] = True
    return seen if len(seen) == 1 else np.tile(seen, (heads // len(seen), 1, 1))


def _places(op: Builder, q: Any, cache: Cache | None) -> Any:
    """The places of queries: behind the past of each row, or from 0 on."""
    if cache is not None:
        return cache.places
    return op.Unsqueeze(op.places(q, 2), [0])


def _parts(
    op: Builder, query: Any, key: Any, value: Any, heads: int, kv_heads: int
) -> list[Any]:
    """Queries, keys and values by head; key is None where query holds all of them."""
    if key is None:
        each = known(query, 2, "packed queries") // (heads + 2 * kv_heads)
        sizes = [heads * each, kv_heads * each, kv_heads * each]
        query, key, value = op.split(query, 2, sizes)
    counts = ((query, heads), (key, kv_heads), (value, kv_heads))
    return [by_head(op, x, count) for x, count in counts]


def _normed(op: Builder, x: Any, weight: Any, epsilon: float) -> Any:
    """RMS norm over the features of each head."""
    return op.RMSNormalization(x, weight, axis=-1, epsilon=epsilon)


def _with_sink(op: Builder, mask: Any, sink: Any, heads: int) -> Any:
    """An additive mask with one key more, of zeros: each head's sink is its score."""
    mask = op.Expand(mask, [1, heads, 1, 1])
    shape = op.Shape(op.Slice(mask, [0], [1], [-1]))
    return op.Concat(mask, op.Expand(op.Reshape(sink, [1, -1, 1, 1]), shape), axis=-1)
