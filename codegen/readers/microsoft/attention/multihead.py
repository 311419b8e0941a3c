"""Attention with its projections, masks and caches."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    known,
    microsoft,
    rank,
    size,
)
from burnish.codegen.readers.microsoft.shared.caches import Cache
from burnish.codegen.readers.microsoft.shared.masks import hidden

_HEADS_FIRST = [0, 2, 1, 3]


@microsoft("Attention")
def attention(
    op: Builder,
    input_: Any,
    weights: Any,
    bias: Any = None,
    mask_index: Any = None,
    past: Any = None,
    attention_bias: Any = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Any = None,
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Any:
    """past and present hold keys and values, (2, batch, heads, time, size)."""
    if do_rotary or past_present_share_buffer:
        raise Unreadable("expected no rotary positions, and a cache of its own")
    x = op.MatMul(input_, weights)
    x = x if bias is None else op.Add(x, bias)
    x.shape = input_.shape and ir.Shape([*input_.shape[:2], None])
    return from_projection(
        *(op, x, mask_index, past, attention_bias),
        sizes=packed_sizes(weights, qkv_hidden_sizes),
        heads=num_heads,
        low=mask_filter_value,
        scale=scale,
        causal=unidirectional,
    )


def packed_sizes(weights: Any, given: Any) -> list[int]:
    """How wide queries, keys and values are in a packed projection."""
    return list(given) if given else [known(weights, 1, "weights") // 3] * 3


def from_projection(
    op: Builder,
    x: Any,
    mask: Any,
    past: Any,
    bias: Any,
    *,
    sizes: list[int],
    heads: int,
    low: float,
    scale: float,
    causal: int,
) -> Any:
    """Attention with a packed projection of queries, keys and values."""
    q, k, v = (by_head(op, part, heads) for part in op.split(x, -1, sizes))
    if past is not None:
        before = op.split(past, 0, [1, 1])
        k, v = (
            op.Concat(op.Squeeze(old, [0]), new, axis=2)
            for old, new in zip(before, (k, v), strict=True)
        )
    alone = past is mask is bias is None
    y = attended(
        *(op, q, k, v),
        mask=hidden(op, q, k, mask, low, bias, bool(causal and not alone)),
        causal=bool(causal and alone),
        scale=scale,
    )
    if len(op.outputs) < 2 or not op.outputs[1]:
        return y
    return y, op.Concat(op.Unsqueeze(k, [0]), op.Unsqueeze(v, [0]), axis=0)


@microsoft("MultiHeadAttention")
def multi_head_attention(
    op: Builder,
    query: Any,
    key: Any = None,
    value: Any = None,
    bias: Any = None,
    key_padding_mask: Any = None,
    attention_bias: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Any:
    q, k, v = three(op, query, key, value, bias, num_heads)
    if past_key is not None:
        k, v = op.Concat(past_key, k, axis=2), op.Concat(past_value, v, axis=2)
    alone = past_key is key_padding_mask is attention_bias is None
    y = attended(
        *(op, q, k, v),
        mask=hidden(
            *(op, q, k, key_padding_mask, mask_filter_value, attention_bias),
            bool(unidirectional and not alone),
        ),
        causal=bool(unidirectional and alone),
        scale=scale,
    )
    return y, k, v


@microsoft("DecoderMaskedMultiHeadAttention")
def decoder_attention(
    op: Builder,
    query: Any,
    key: Any = None,
    value: Any = None,
    mask_index: Any = None,
    attention_bias: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    past_sequence_length: Any = None,
    beam_width: Any = None,
    cache_indirection: Any = None,
    bias: Any = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    output_qk: int = 0,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
) -> Any:
    """One new token after a past; cross attention has all its keys, by head.

    A shared buffer (batch, heads, room, size) holds the past up to its length.
    """
    if cache_indirection is not None or output_qk:
        raise Unreadable(
            "expected no beams that share a cache, and no scores asked for"
        )
    q, new_k, new_v = three(op, query, key, value, bias, num_heads)
    k, v = seen_k, seen_v = new_k, new_v
    if past_key is not None and past_present_share_buffer:
        total = op.Add(op.Cast(past_sequence_length, to=ir.DataType.INT64), 1)
        cache = Cache(op, q, past_sequence_length, total, missing=1)
        k, v = cache.with_new(past_key, new_k), cache.with_new(past_value, new_v)
        seen_k, seen_v = cache.seen(k), cache.seen(v)
    elif past_key is not None:
        k = seen_k = op.Concat(past_key, new_k, axis=2)
        v = seen_v = op.Concat(past_value, new_v, axis=2)
    mask = hidden(op, q, seen_k, mask_index, mask_filter_value, attention_bias, False)
    y = attended(op, q, seen_k, seen_v, mask=mask, causal=False, scale=scale)
    return y, k, v


def three(
    op: Builder, query: Any, key: Any, value: Any, bias: Any, heads: int
) -> tuple[Any, Any, Any]:
    """Queries, keys and values by head, whichever way they are given."""
    if rank(query) == 5:
        q, k, v = _packed(op, query, bias, heads, 3)
        return q, k, v
    if key is None:
        raise Unreadable("expected keys beside queries of three axes")
    biases: list[Any] = [None] * 3
    if bias is not None:
        d, e = known(query, 2, "queries"), known(bias, 0, "a bias")
        biases = list(op.split(bias, 0, [d, d, e - 2 * d]))
    q = by_head(op, _plus(op, query, biases[0]), heads)
    if rank(key) == 5:
        k, v = _packed(op, key, None, heads, 2)
        return q, k, v
    k, v = (
        by_head(op, _plus(op, x, b), heads) if rank(x) == 3 else x
        for x, b in ((key, biases[1]), (value, biases[2]))
    )
    return q, k, v


def _plus(op: Builder, x: Any, bias: Any) -> Any:
    return x if bias is None else op.Add(x, bias)


def _packed(op: Builder, x: Any, bias: Any, heads: int, count: int) -> list[Any]:
    """(batch, time, heads, count, size) to `count` of (batch, heads, time, size)."""
    if bias is not None:
        raise Unreadable("expected no bias beside packed queries")
    parts = op.split(x, 3, [1] * count)
    return [op.Transpose(op.Squeeze(p, [3]), perm=_HEADS_FIRST) for p in parts]


def by_head(op: Builder, x: Any, heads: int) -> Any:
    """(batch, time, heads * size) to (batch, heads, time, size)."""
    y = op.Transpose(op.Reshape(x, [0, 0, heads, -1]), perm=_HEADS_FIRST)
    if x.shape is not None:
        y.shape = ir.Shape([x.shape[0], heads, x.shape[1], None])
    return y


def attended(
    op: Builder,
    q: Any,
    k: Any,
    v: Any,
    *,
    mask: Any,
    causal: bool,
    scale: float,
    softcap: float = 0.0,
) -> Any:
    """(batch, time, heads * size)"""
    options = {
        "is_causal": int(causal) or None,
        "scale": float(scale) or None,
        "softcap": float(softcap) or None,
    }
    (y,) = op.make("burnish", "Attention", (q, k, v, mask), options)
    y.type = q.type  # inference does not know the operator
    if q.shape is not None:
        y.shape = ir.Shape([*q.shape[:3], size(v, 3)])
    return op.Reshape(op.Transpose(y, perm=_HEADS_FIRST), [0, 0, -1])
