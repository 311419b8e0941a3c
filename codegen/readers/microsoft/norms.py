"""Norms fused with a residual sum or with embeddings, and hyper-connections."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    known,
    microsoft,
    rank,
)


@microsoft("SimplifiedLayerNormalization")
def rms_norm(
    op: Builder,
    X: Any,
    scale: Any,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    return op.RMSNormalization(X, scale, axis=axis, epsilon=epsilon)


@microsoft("SkipLayerNormalization")
def skip_layer_norm(
    op: Builder,
    input_: Any,
    skip: Any,
    gamma: Any,
    beta: Any = None,
    bias: Any = None,
    *,
    epsilon: float = 1e-5,
) -> Any:
    total = _sum(op, input_, skip, bias)
    y = op.LayerNormalization(total, gamma, beta, epsilon=epsilon)
    return y, None, None, total


@microsoft("SkipSimplifiedLayerNormalization")
def skip_rms_norm(
    op: Builder,
    input_: Any,
    skip: Any,
    gamma: Any,
    bias: Any = None,
    *,
    epsilon: float = 1e-5,
) -> Any:
    total = _sum(op, input_, skip, bias)
    return op.RMSNormalization(total, gamma, epsilon=epsilon), None, None, total


def _sum(op: Builder, input_: Any, skip: Any, bias: Any) -> Any:
    """The bias belongs to the layer in front: onnxruntime moves it from there."""
    if bias is None:
        return op.Add(input_, skip)
    return op.Add(op.Add(input_, bias), skip)


@microsoft("EmbedLayerNormalization")
def embed_layer_norm(
    op: Builder,
    input_ids: Any,
    segment_ids: Any,
    word_embedding: Any,
    position_embedding: Any,
    segment_embedding: Any,
    gamma: Any,
    beta: Any,
    mask: Any = None,
    position_ids: Any = None,
    *,
    epsilon: float = 1e-5,
    mask_index_type: int | None = None,
) -> Any:
    total = op.Gather(word_embedding, input_ids)
    if position_ids is None:
        position_ids = op.Unsqueeze(op.places(input_ids, 1), [0])
    total = op.Add(total, op.Gather(position_embedding, position_ids))
    if segment_ids is not None:
        total = op.Add(total, op.Gather(segment_embedding, segment_ids))
    y = op.LayerNormalization(total, gamma, beta, epsilon=epsilon)
    return y, _mask_index(op, input_ids, mask, mask_index_type), total


@microsoft("QEmbedLayerNormalization")
def quantized_embed_layer_norm(
    op: Builder,
    input_ids: Any,
    segment_ids: Any,
    word_embedding_quant: Any,
    position_embedding_quant: Any,
    segment_embedding: Any,
    gamma_quant: Any,
    beta_quant: Any,
    mask: Any,
    word_embedding_scale: Any,
    position_embedding_scale: Any,
    segment_embedding_scale: Any,
    gamma_scale: Any,
    beta_scale: Any,
    word_embedding_zero_point: Any,
    position_embedding_zero_point: Any,
    segment_embedding_zero_point: Any,
    gamma_zero_point: Any,
    beta_zero_point: Any,
    *,
    epsilon: float = 1e-5,
) -> Any:
    """EmbedLayerNormalization of tables in 8 bits."""
    word, position, segment, gamma, beta = (
        None if codes is None else op.DequantizeLinear(codes, scale, zero_point)
        for codes, scale, zero_point in (
            (word_embedding_quant, word_embedding_scale, word_embedding_zero_point),
            (
                position_embedding_quant,
                position_embedding_scale,
                position_embedding_zero_point,
            ),
            (segment_embedding, segment_embedding_scale, segment_embedding_zero_point),
            (gamma_quant, gamma_scale, gamma_zero_point),
            (beta_quant, beta_scale, beta_zero_point),
        )
    )
    y, count, _ = embed_layer_norm(
        *(op, input_ids, segment_ids, word, position, segment, gamma, beta, mask),
        epsilon=epsilon,
    )
    return y, count


def _mask_index(op: Builder, ids: Any, mask: Any, kind: int | None) -> Any:
    """How many places of each row count: int32 (batch,)."""
    if len(op.outputs) < 2 or not op.outputs[1]:
        return None
    if kind not in (None, 0, 1):
        raise Unreadable(f"expected mask_index_type 0 or 1, got {kind}")
    if mask is None or kind == 0:
        batch = op.Shape(ids, start=0, end=1)
        return op.Expand(op.Cast(0, to=ir.DataType.INT32), batch)
    return op.Cast(op.ReduceSum(mask, [1], keepdims=0), to=ir.DataType.INT32)


# --- several residual streams ---


@microsoft("HyperConnectionPreMix")
def pre_mix(
    op: Builder,
    streams: Any,
    pre_mix: Any,
    *,
    num_branches: int = 0,
    reduction_scale: float = 1.0,
) -> Any:
    """The streams (..., C, H) weighted by gates, their sum: (..., H)"""
    x, gates = _grouped(op, streams, num_branches), pre_mix
    axes = rank(streams) + bool(num_branches)
    if rank(gates) < axes:
        is_flat = num_branches and gates.shape[-1] != num_branches
        gates = _grouped(op, gates, num_branches) if is_flat else _each(op, gates)
    y = op.ReduceSum(op.Mul(x, op.CastLike(gates, x)), [-2], keepdims=0)
    return y if reduction_scale == 1 else op.Mul(y, op.number(reduction_scale, streams))


@microsoft("HyperConnectionPostMix")
def post_mix(
    op: Builder,
    streams: Any,
    block_output: Any,
    post_mix: Any,
    stream_mix: Any = None,
    *,
    num_branches: int = 0,
) -> Any:
    """The streams (..., C, H), mixed, and a block's output (..., H) in each of them"""
    x, axes = _grouped(op, streams, num_branches), rank(block_output) + 1
    gates = post_mix if rank(post_mix) == axes else _each(op, post_mix)
    added = op.Mul(op.CastLike(gates, x), op.Unsqueeze(block_output, [-2]))
    if stream_mix is not None:
        turned = [*range(axes - 2), axes - 1, axes - 2]
        x = op.MatMul(op.Transpose(op.CastLike(stream_mix, x), perm=turned), x)
    y = op.Add(x, added)
    return op.Reshape(y, op.Shape(streams)) if num_branches else y


@microsoft("EngramGate")
def engram_gate(
    op: Builder,
    key: Any,
    query: Any,
    value: Any,
    key_norm_scale: Any,
    query_norm_scale: Any,
    conv_norm_scale: Any = None,
    *,
    epsilon: float = 1e-5,
) -> Any:
    """The value (batch, time, H) behind a gate of each stream: (batch, time, C, H)"""
    width = known(key, -1, "keys")

    def normed(x: Any, scale: Any) -> Any:
        even = op.RMSNormalization(x, np.ones(width, np.float32), epsilon=epsilon)
        return op.Mul(even, scale)

    k, q = normed(key, key_norm_scale), normed(query, query_norm_scale)
    dot = op.ReduceSum(op.Mul(k, q), [-1], keepdims=1)
    dot = op.Mul(dot, op.number(width**-0.5, key))
    root = op.Sqrt(op.Max(op.Abs(dot), op.number(1e-6, key)))
    y = op.Mul(op.Sigmoid(op.Mul(op.Sign(dot), root)), op.Unsqueeze(value, [-2]))
    return y, None if conv_norm_scale is None else normed(y, conv_norm_scale)


def _grouped(op: Builder, x: Any, branches: int) -> Any:
    """(..., C, H) of (..., C * H) where the branches are counted."""
    return op.Reshape(x, [*[0] * (rank(x) - 1), branches, -1]) if branches else x


def _each(op: Builder, gates: Any) -> Any:
    """(..., C, 1) of (..., C)"""
    return op.Unsqueeze(gates, [-1])
