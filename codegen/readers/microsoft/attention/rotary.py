"""Rotary position embeddings, multimodal ones too, and relative position biases."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    float32,
    known,
    microsoft,
    rank,
    size,
)

_HEADS_FIRST = [0, 2, 1, 3]


def rotated(
    op: Builder, x: Any, places: Any, cos: Any, sin: Any, interleaved: int
) -> Any:
    """x (batch, heads, time, size); without places, cos and sin are each place's."""
    columns = size(cos, -1)
    return op.RotaryEmbedding(
        *(x, cos, sin, places),
        interleaved=interleaved,
        rotary_embedding_dim=2 * columns if columns else None,
    )


@microsoft("RotaryEmbedding")
def rotary_embedding(
    op: Builder,
    input_: Any,
    position_ids: Any,
    cos_cache: Any,
    sin_cache: Any,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Any:
    """position_ids: of every place, (batch, time), or of the first, (1,)."""
    if is_packed_batching or scale != 1:
        raise Unreadable("expected no packed batch, and positions that are not scaled")
    x = _by_head(op, input_, num_heads, size(cos_cache, 1))
    if rank(position_ids) == 1:
        time = op.length(x, 2)
        first = op.Squeeze(position_ids, [0])
        places = op.Range(first, op.Add(first, time), 1)
        position_ids = op.Unsqueeze(places, [0])
    y = rotated(op, x, position_ids, cos_cache, sin_cache, interleaved)
    return _like(op, y, input_)


def _by_head(op: Builder, x: Any, heads: int, columns: int | None) -> Any:
    """(batch, heads, time, size) of that, or of (batch, time, heads * size)."""
    if rank(x) == 4:
        return x
    if columns is None:
        raise Unreadable("expected cosines of a known size")
    shape = [0, 0, heads, -1] if heads else [0, 0, -1, 2 * columns]
    return op.Transpose(op.Reshape(x, shape), perm=_HEADS_FIRST)


def _like(op: Builder, y: Any, x: Any) -> Any:
    """y by head, in the form of x."""
    if rank(x) == 4:
        return y
    return op.Reshape(op.Transpose(y, perm=_HEADS_FIRST), [0, 0, -1])


@microsoft("MRotaryEmbedding")
def rotary_embedding_of_three(
    op: Builder,
    input_: Any,
    position_ids: Any,
    cos_cache: Any,
    sin_cache: Any,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    mrope_layout: int = 0,
    mrope_section: Any,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Any:
    """position_ids (3, batch, time): times, heights and widths, each for its columns.

    mrope_layout: 0, sections one after the other; 1, in turn, where they last.
    """
    columns = sum(mrope_section)
    if is_packed_batching or scale != 1 or size(cos_cache, 1) != columns:
        raise Unreadable("expected no packed batch, and positions that are not scaled")
    stream = np.arange(3).repeat(mrope_section)
    if mrope_layout:
        stream[:] = 0
        for which in (1, 2):
            stream[which : 3 * mrope_section[which] : 3] = which
    x = _by_head(op, input_, num_heads, columns)
    cos, sin = (
        _of_streams(op, held, position_ids, stream) for held in (cos_cache, sin_cache)
    )
    return _like(op, rotated(op, x, None, cos, sin, interleaved), input_)


def _of_streams(op: Builder, cache: Any, places: Any, stream: Any) -> Any:
    """Each column by the places of its stream: (batch, time, columns)"""
    columns = size(cache, 1)
    first, second, third = op.split(op.Gather(cache, places), 0, [1, 1, 1])
    y = op.Where(op.value(stream == 1), second, first)
    y = op.Squeeze(op.Where(op.value(stream == 2), third, y), [0])
    y.shape = ir.Shape([None, None, columns])
    return y


# --- biases of attention scores ---


@microsoft("RelativePositionBias")
def relative_position_bias(
    op: Builder,
    bias_table: Any,
    query_length: Any,
    key_length: Any,
    *,
    is_bidirectional: int = 0,
    max_distance: int,
) -> Any:
    """T5's bias of each head by the distance in buckets: (1, heads, time, time)

    bias_table: declared (buckets, heads), stored head after head.
    """
    buckets, heads = (known(bias_table, axis, "a table") for axis in (0, 1))
    rows, columns = (
        op.Range(0, op.Squeeze(op.Cast(x, to=ir.DataType.INT64)), 1)
        for x in (query_length, key_length)
    )
    apart = op.Sub(op.Unsqueeze(columns, [0]), op.Unsqueeze(rows, [1]))
    first: Any = None
    if is_bidirectional:
        buckets //= 2
        ahead = op.Cast(op.Greater(apart, 0), to=ir.DataType.INT64)
        first, apart = op.Mul(ahead, buckets), op.Abs(apart)
    else:
        apart = op.Max(op.Neg(apart), 0)
    exact = buckets // 2
    ratio = op.Div(op.Cast(op.Max(apart, 1), to=ir.DataType.FLOAT), float32(exact))
    grown = op.Mul(
        op.Div(op.Log(ratio), float32(np.log(max_distance / exact))),
        float32(buckets - exact),
    )
    far = op.Add(op.Cast(grown, to=ir.DataType.INT64), exact)
    far = op.Min(far, buckets - 1)
    places = op.Where(op.Less(apart, exact), apart, far)
    places = places if first is None else op.Add(places, first)
    table = op.Reshape(bias_table, [heads, -1])
    return op.Unsqueeze(op.Gather(table, places, axis=1), [0])


@microsoft("GatedRelativePositionBias")
def gated_relative_position_bias(
    op: Builder,
    query_layer: Any,
    query_bias: Any,
    rel_pos: Any,
    weight: Any,
    bias: Any,
    eco_a: Any,
    token_offset: Any = None,
    *,
    num_heads: int,
) -> Any:
    """WavLM's bias (1, heads, time, time) behind gates of the queries"""
    if token_offset is not None or rank(query_layer) != 3:
        raise Unreadable("expected queries (batch, time, features)")
    q = op.Reshape(op.Add(query_layer, query_bias), [0, 0, num_heads, -1])
    q = op.Transpose(q, perm=_HEADS_FIRST)
    mixed = op.Reshape(op.Add(op.MatMul(q, weight), bias), [0, 0, 0, 2, -1])
    gates = op.Sigmoid(op.ReduceSum(mixed, [-1], keepdims=0))
    update, reset = op.split(gates, 3, [1, 1])
    one, two = (op.number(number, query_layer) for number in (1, 2))
    factor = op.Add(op.Mul(update, op.Sub(op.Mul(reset, eco_a), one)), two)
    return op.Mul(factor, rel_pos)


@microsoft("GemmaRotaryEmbedding")
def gemma_rotary_embedding(
    op: Builder, emb: Any, q: Any, q_rot: Any, k: Any, k_rot: Any
) -> Any:
    """x * cos(emb) + x_rot * sin(emb) of queries and keys (batch, heads, time, size)"""
    cos, sin = (
        op.CastLike(op.Unsqueeze(wave, [1]), q) for wave in (op.Cos(emb), op.Sin(emb))
    )
    return tuple(
        op.Add(op.Mul(x, cos), op.Mul(turned, sin))
        for x, turned in ((q, q_rot), (k, k_rot))
    )
