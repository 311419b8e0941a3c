"""Linear attention and causal convolutions with a recurrent state, gates and norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    known,
    microsoft,
    rank,
    size,
)
from burnish.codegen.readers.microsoft.shared.layouts import (
    to_channels_first,
    to_channels_last,
)

_VERSION = 27
"""The opset that has LinearAttention."""


@microsoft("LinearAttention")
def linear_attention(
    op: Builder,
    query: Any,
    key: Any,
    value: Any,
    past_state: Any = None,
    decay: Any = None,
    beta: Any = None,
    *,
    chunk_size: int = 64,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    state_window: int = 0,
    update_rule: str = "gated_delta",
) -> Any:
    """As in ONNX, where queries have as many heads as keys and values, or more."""
    if state_window:
        raise Unreadable("expected the last state alone, not a window of states")
    if kv_num_heads > q_num_heads:
        key = _of_all_heads(
            op, key, known(query, 2, "heads"), q_num_heads, kv_num_heads
        )
        query = _repeated(op, query, q_num_heads, kv_num_heads)
        q_num_heads = kv_num_heads
    return _attended(
        *(op, query, key, value, past_state, decay, beta),
        chunk_size=chunk_size,
        kv_num_heads=kv_num_heads,
        q_num_heads=q_num_heads,
        scale=scale,
        update_rule=update_rule,
    )


def _attended(op: Builder, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
    """ONNX's LinearAttention: the result, and the last state."""
    made = op.make("", "LinearAttention", inputs, attributes, 2)
    op.nodes[-1].version = _VERSION
    return tuple(made)


def _of_all_heads(op: Builder, key: Any, width: int, heads: int, wanted: int) -> Any:
    """Keys of `wanted` heads; a head of the queries, `width` / `heads`, is as wide."""
    held = known(key, 2, "heads") * heads // width
    return key if held == wanted else _repeated(op, key, held, wanted)


def _repeated(op: Builder, x: Any, heads: int, wanted: int) -> Any:
    """(batch, time, heads * width) with every head as often as it is read, in a row."""
    width = size(x, 2)
    if width is None or wanted % heads:
        raise Unreadable("expected heads of a known size")
    places = np.arange(width).reshape(heads, -1).repeat(wanted // heads, 0)
    return op.Gather(x, places.reshape(-1), axis=2)


@microsoft("LinearAttentionGate")
def linear_attention_gate(
    op: Builder, a: Any, dt_bias: Any, decay_scale: Any, b: Any = None
) -> Any:
    decay = op.Mul(op.Softplus(op.Add(a, dt_bias)), decay_scale)
    return decay, None if b is None else op.Sigmoid(b)


@microsoft("CausalConvWithState")
def causal_conv(
    op: Builder,
    input_: Any,
    weight: Any,
    bias: Any = None,
    past_state: Any = None,
    *,
    activation: str = "none",
    channels_last: int = 0,
    dilation: int = 1,
    input_channel_offset: int = 0,
    input_channels: int = 0,
    ndim: int = 1,
    state_channels_last: int = -1,
    state_length: int = 0,
    state_update_capacity: int = 0,
    state_window: int = 0,
) -> Any:
    """A depthwise convolution over what was before and the input: (batch, C, time)"""
    extended = (input_channel_offset, input_channels, state_length, state_window)
    if ndim != 1 or any((*extended, state_update_capacity, state_channels_last + 1)):
        raise Unreadable("expected one axis of time and the last state alone")
    channels, taps = size(weight, 0), size(weight, 2)
    if channels is None or taps is None or rank(input_) != 3:
        raise Unreadable("expected (batch, channels, time) and weights of a known size")
    axes = 3 if channels_last else 0
    x, before = to_channels_first(op, input_, axes), (taps - 1) * dilation
    if past_state is None:
        x = op.Pad(x, [0, 0, before, 0, 0, 0])
    else:
        x = op.Concat(to_channels_first(op, past_state, axes), x, axis=2)
    y = op.Conv(x, weight, bias, group=channels, dilations=[dilation])
    if activation in ("silu", "swish"):
        y = op.Mul(y, op.Sigmoid(y))
    elif activation != "none":
        raise Unreadable(f"expected activation 'silu' or 'none', got {activation!r}")
    state = None
    if len(op.outputs) > 1 and op.outputs[1]:
        time = op.Shape(x, start=2, end=3)
        state = op.Slice(x, op.Sub(time, [before]), time, [2])
        state = to_channels_last(op, state, axes)
    return to_channels_last(op, y, axes), state


@microsoft("GatedRMSNorm")
def gated_rms_norm(
    op: Builder,
    X: Any,
    scale: Any,
    gate: Any,
    *,
    activation: str = "silu",
    epsilon: float = 1e-5,
) -> Any:
    """Each group of as many elements as `scale` has is normalized by itself."""
    width, axes, x = known(scale, 0, "a scale"), rank(X), X
    if size(X, -1) != width:
        x = op.Reshape(X, [*[0] * (axes - 1), -1, width])
    y = op.RMSNormalization(x, scale, axis=-1, epsilon=epsilon)
    if x is not X:
        y = op.Reshape(y, [*[0] * (axes - 1), -1])
    factor = op.Sigmoid(gate)
    if activation in ("silu", "swish"):
        factor = op.Mul(gate, factor)
    return op.Mul(y, factor)


@microsoft("BranchwiseRMSNorm")
def branchwise_rms_norm(
    op: Builder,
    X: Any,
    scale: Any = None,
    *,
    epsilon: float = 1e-5,
    num_branches: int = 0,
) -> Any:
    """X (..., C, H), or (..., C * H) of `num_branches`; scale (C * H), (C, H) or (H)"""
    axes, last, x = rank(X), size(X, -1), X
    width = last
    if num_branches:
        x = op.Reshape(X, [*[0] * (axes - 1), num_branches, -1])
        width = last and last // num_branches
    squares = op.ReduceMean(op.Mul(x, x), [-1], keepdims=1)
    y = op.Div(x, op.Sqrt(op.Add(squares, op.number(epsilon, X))))
    if scale is not None:
        if rank(scale) == 1 and size(scale, 0) != width:
            if width is None:
                raise Unreadable("expected branches of a known size")
            scale = op.Reshape(scale, [-1, width])
        y = op.Mul(y, scale)
    return op.Reshape(y, [*[0] * (axes - 1), -1]) if num_branches else y


@microsoft("GatedAdd")
def gated_add(op: Builder, X: Any, Y: Any, gate: Any, gate_weight: Any = None) -> Any:
    if gate_weight is not None:
        raise Unreadable("expected a gate that is not projected")
    return op.Add(X, op.Mul(Y, gate))


@microsoft("ScaledSiLU")
def scaled_silu(op: Builder, X: Any, scale: Any = None, *, alpha: float = 1.0) -> Any:
    if scale is None:
        x = X if alpha == 1 else op.Mul(X, op.number(alpha, X))
    else:
        x = op.Mul(X, scale)
    return op.Mul(x, op.Sigmoid(x))


@microsoft("GatedDeltaNet")
def gated_delta_net(
    op: Builder,
    query: Any,
    key: Any = None,
    value: Any = None,
    cu_seqlens: Any = None,
    decay: Any = None,
    beta: Any = None,
    initial_state: Any = None,
    a_log: Any = None,
    dt_bias: Any = None,
    *,
    beta_activation: str = "none",
    chunk_size: int = 64,
    gate_activation: str = "none",
    gate_lower_bound: float = -5.0,
    qk_l2_norm: int = 0,
    scale: float = 0.0,
    state_update_capacity: int = 0,
    update_rule: str = "gated_delta",
) -> Any:
    """LinearAttention of q, k (batch, time, heads, size); the state is (B, H, V, K).

    Without an axis of the batch, the state says how many rows the tokens are of.
    """
    if cu_seqlens is not None or state_update_capacity or any(op.outputs[2:]):
        raise Unreadable("expected rows of one length and the last state alone")
    if key is None or value is None:
        raise Unreadable("expected queries, keys and values apart")
    heads, wide, q_heads, width = (
        known(x, axis, "heads") for x in (value, query) for axis in (-2, -1)
    )
    if rank(query) == 3 and initial_state is None:
        raise Unreadable(
            "expected an initial state, which says how many rows there are"
        )
    rows = [0] if rank(query) == 4 else op.Shape(initial_state, start=0, end=1)

    def laid_out(x: Any, *axes: int) -> Any:
        """x as (batch, time, *axes), whether its tokens are in rows or in one."""
        return op.Reshape(x, op.Concat(rows, [-1, *axes], axis=0))

    q, k = (laid_out(x, q_heads, width) for x in (query, key))
    if qk_l2_norm:
        q, k = (_of_length_one(op, x, query) for x in (q, k))
    if q_heads != heads:
        each = np.arange(q_heads).repeat(heads // q_heads)
        q, k = (op.Gather(x, each, axis=2) for x in (q, k))
    q, k = (op.Reshape(x, [0, 0, -1]) for x in (q, k))
    gate = None
    if update_rule in ("gated", "gated_delta"):
        gate = _log_decay(op, decay, a_log, dt_bias, gate_activation, gate_lower_bound)
        gate = laid_out(gate, heads if size(decay, -1) == heads else heads * width)
    rate = None
    if update_rule in ("delta", "gated_delta"):
        rate = laid_out(beta, heads)
        rate = op.Sigmoid(rate) if beta_activation == "sigmoid" else rate
    turned = [0, 1, 3, 2]
    past = None if initial_state is None else op.Transpose(initial_state, perm=turned)
    y, state = _attended(
        *(op, q, k, laid_out(value, heads * wide), past, gate, rate),
        chunk_size=chunk_size,
        kv_num_heads=heads,
        q_num_heads=heads,
        scale=scale,
        update_rule=update_rule,
    )
    shape = op.Shape(value)
    return op.Reshape(y, shape), op.Transpose(state, perm=turned)


def _of_length_one(op: Builder, x: Any, like: Any) -> Any:
    squares = op.ReduceSum(op.Mul(x, x), [-1], keepdims=1)
    return op.Div(x, op.Sqrt(op.Add(squares, op.number(1e-6, like))))


def _log_decay(
    op: Builder, decay: Any, a_log: Any, dt_bias: Any, activation: str, bound: float
) -> Any:
    """The logarithm of the factor that a state keeps: (..., heads)"""
    if activation == "none":
        return decay
    if size(decay, -1) != size(a_log, 0) or rank(dt_bias) != 1:
        raise Unreadable("expected one decay for each head")
    x = op.Add(decay, dt_bias)
    if activation in ("softplus", "qwen"):
        return op.Neg(op.Mul(op.Exp(a_log), op.Softplus(x)))
    if activation in ("sigmoid", "kda"):
        held = op.Sigmoid(op.Mul(op.Exp(a_log), x))
        return op.Mul(held, np.array(bound, np.float32))
    raise Unreadable(f"expected a gate of 'softplus' or 'sigmoid', got {activation!r}")
