"""Packed sequences: the tokens of a batch on one axis, without padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.attention.multihead import (
    attended,
    by_head,
    packed_sizes,
    three,
)
from burnish.codegen.readers.microsoft.shared.bodies import (
    END,
    Builder,
    Unreadable,
    microsoft,
    rank,
    size,
)

_GATES = ("none", "silu", "swish")


@microsoft("RemovePadding")
def remove_padding(op: Builder, input_: Any, sequence_token_count: Any) -> Any:
    """The tokens in a row (tokens, width), and the positions of tokens and padding.

    input_: (batch, time, width); sequence_token_count: (batch,). Then the places of
    tokens, those of padding behind them, (batch, time); the sums of counts, from 0 on;
    the greatest count.
    """
    count = op.Cast(sequence_token_count, to=ir.DataType.INT64)
    steps = op.places(input_, 1)
    real = op.Less(steps, op.Unsqueeze(count, [1]))
    places, padding = (
        op.Squeeze(op.NonZero(op.Reshape(each, [-1])), [0])
        for each in (real, op.Not(real))
    )
    width = op.Shape(input_, start=2, end=3)
    rows = op.Reshape(input_, op.Concat([-1], width, axis=0))
    order = op.Concat(places, padding, axis=0)
    ends = op.Concat([0], op.CumSum(count, 0), axis=0)
    return (
        op.Gather(rows, places, axis=0),
        _small(op, op.Reshape(order, op.Shape(input_, start=0, end=2))),
        _small(op, ends),
        _small(op, op.ReduceMax(count)),
    )


@microsoft("RestorePadding")
def restore_padding(op: Builder, input_: Any, token_offset: Any) -> Any:
    """Tokens in a row (tokens, width) at their positions, with zeros as padding."""
    shape = op.Concat(op.Shape(token_offset), op.Shape(input_, start=1, end=2), axis=0)
    places = op.Cast(op.Reshape(token_offset, [-1]), to=ir.DataType.INT64)
    held = op.Slice(places, [0], op.Shape(input_, start=0, end=1), [0])
    sizes = op.Concat(op.Shape(places), op.Shape(input_, start=1, end=2), axis=0)
    zeros = op.Expand(op.number(0.0, input_), sizes)
    y = op.ScatterND(zeros, op.Unsqueeze(held, [1]), input_)
    return op.Reshape(y, shape)


@microsoft("PackedAttention")
def packed_attention(
    op: Builder,
    input_: Any,
    weights: Any,
    bias: Any,
    token_offset: Any,
    cumulative_sequence_length: Any,
    *,
    num_heads: int,
    qkv_hidden_sizes: Any = None,
    scale: float = 0.0,
) -> Any:
    """Tokens (tokens, width) see those of their own sequence."""
    x = op.Unsqueeze(op.Add(op.MatMul(input_, weights), bias), [0])
    sizes = packed_sizes(weights, qkv_hidden_sizes)
    q, k, v = (by_head(op, part, num_heads) for part in op.split(x, -1, sizes))
    return _by_sequence(op, q, k, v, cumulative_sequence_length, scale)


@microsoft("PackedMultiHeadAttention")
def packed_multi_head_attention(
    op: Builder,
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    token_offset: Any,
    cumulative_sequence_length: Any,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float = 0.0,
) -> Any:
    """query: (tokens, width), or (tokens, heads, 3, size) with keys and values."""
    if key is not None and rank(query) != 2:
        raise Unreadable("expected queries of two axes beside keys")
    q, k, v = (None if x is None else op.Unsqueeze(x, [0]) for x in (query, key, value))
    for made, x in ((q, query), (k, key), (v, value)):
        if made is not None and x.shape is not None:
            made.shape, made.dtype = ir.Shape([1, *x.shape]), x.dtype
    q, k, v = three(op, q, k, v, bias, num_heads)
    return _by_sequence(op, q, k, v, cumulative_sequence_length, scale)


def _by_sequence(op: Builder, q: Any, k: Any, v: Any, ends: Any, scale: float) -> Any:
    """Attention of (1, heads, tokens, size), inside each sequence: (tokens, width)"""
    tokens = op.places(q, 2)
    wide = op.Cast(ends, to=ir.DataType.INT64)
    begun = op.GreaterOrEqual(op.Unsqueeze(tokens, [1]), wide)
    number = op.ReduceSum(op.Cast(begun, to=ir.DataType.INT64), [1], keepdims=0)
    same = op.Equal(op.Unsqueeze(number, [1]), number)
    y = attended(op, q, k, v, mask=same, causal=False, scale=scale)
    return op.Squeeze(y, [0])


def _small(op: Builder, x: Any) -> Any:
    return op.Cast(x, to=ir.DataType.INT32)


@microsoft("VarlenCausalConvWithState")
def varlen_causal_conv(
    op: Builder,
    input_: Any,
    weight: Any,
    cumulative_sequence_length: Any,
    bias: Any,
    initial_state: Any,
    capture_count: Any = None,
    kernel_delta: Any = None,
    previous_mask: Any = None,
    *,
    activation: str = "none",
    delta_offset: int = 0,
    dilation: int = 1,
    group_size: int = 1,
    state_update_capacity: int = 0,
) -> Any:
    """A depthwise convolution over each sequence and what was before it: (tokens, C)

    Then the last tokens of each, (batch, C, before), and the first ones that are asked
    for, (batch, capacity, C), zeros behind them.
    """
    taps = size(weight, 2)
    if kernel_delta is not None or taps is None or activation not in _GATES:
        raise Unreadable("expected one kernel of a known size for all tokens")
    ends, before = op.Cast(cumulative_sequence_length, to=ir.DataType.INT64), taps - 1
    before *= dilation
    begins, ends = op.Slice(ends, [0], [-1], [0]), op.Slice(ends, [1], [END], [0])
    tokens = op.places(input_, 0)
    behind = op.GreaterOrEqual(op.Unsqueeze(tokens, [1]), ends)
    row = op.ReduceSum(op.Cast(behind, to=ir.DataType.INT64), [1], keepdims=0)
    # Each sequence behind its state, so that no window leaves it.
    width = op.Shape(input_, start=1, end=2)
    states = op.Transpose(initial_state, perm=[0, 2, 1])
    states = op.Reshape(states, op.Concat([-1], width, axis=0))
    held = op.Concat(input_, states, axis=0)
    count = op.length(input_, 0)

    def places(rows: Any, local: Any) -> Any:
        """Where the local places of these sequences are; negative ones in the state."""
        old = op.Add(op.Add(op.Mul(rows, before), local), op.Add(count, before))
        new = op.Add(op.Gather(begins, rows, axis=0), local)
        return op.Where(op.Less(local, 0), old, new)

    local = op.Unsqueeze(op.Sub(tokens, op.Gather(begins, row, axis=0)), [1])
    back = np.arange(-before, 1, dilation)
    at = places(op.Unsqueeze(row, [1]), op.Add(local, back))
    kernel = op.Transpose(op.Squeeze(weight, [1]), perm=[1, 0])
    y = op.ReduceSum(op.Mul(op.Gather(held, at, axis=0), kernel), [1], keepdims=0)
    y = y if bias is None else op.Add(y, bias)
    y = op.Mul(y, op.Sigmoid(y)) if activation != "none" else y
    rows = op.Range(0, op.Squeeze(op.Shape(ends), [0]), 1)
    rows, lengths = (op.Unsqueeze(x, [1]) for x in (rows, op.Sub(ends, begins)))
    last = op.Add(lengths, np.arange(-before, 0))
    state = op.Gather(held, places(rows, last), axis=0)
    state = op.Transpose(state, perm=[0, 2, 1])
    if not state_update_capacity:
        return y, state, None
    slots = np.arange(state_update_capacity)
    wanted = op.Unsqueeze(op.Cast(capture_count, to=ir.DataType.INT64), [1])
    kept = op.Less(slots, op.Min(wanted, lengths))
    first = op.Gather(held, op.Mul(op.CastLike(kept, rows), places(rows, slots)))
    zero = op.number(0.0, input_)
    return y, state, op.Where(op.Unsqueeze(kept, [2]), first, zero)
