"""Attention in its common form; every other form is expanded to its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops.rule import costs
from burnish.codegen.ops.rule.expressions import call, method, tensor
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE, SAME_SHAPE, UNBOUNDED
from burnish.codegen.ops.rule.words import at, named, size
from burnish.codegen.ops.shapes import layers
from burnish.codegen.program import Call, Expression, Literal, Method


def _common(node: ir.Node) -> bool:
    """Whether attention has no cache, window or precision, and one output."""
    q, k, _, mask, *others = [*node.inputs, None, None][: max(4, len(node.inputs))]
    if any(value is not None for value in others):
        return False
    if any(value.name for value in node.outputs[1:]):
        return False
    windows = (f"{side}_window_size" for side in ("left", "right"))
    if any(node.attributes.get_int(name, -1) != -1 for name in windows):
        return False
    if q is None or q.shape is None or "softmax_precision" in node.attributes:
        return False
    return mask is None or not _shorter(mask.shape, k)


def _shorter(mask: ir.Shape | None, k: ir.Value | None) -> bool:
    """A mask that ends before the keys do: the rest of them is masked."""
    if mask is None or k is None or k.shape is None:
        return True
    if len(mask) < 1 or len(k.shape) < 2:
        return True
    seen, keys = mask[-1], k.shape[-2]
    return isinstance(seen, int) and isinstance(keys, int) and seen not in (1, keys)


def _attended(
    q: Expression,
    k: Expression,
    v: Expression,
    mask: Expression | None,
    *,
    is_causal: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
) -> Call:
    return call(
        "scaled_dot_product_attention",
        *(q, k, v),
        attn_mask=mask if mask is None else tensor(mask),
        is_causal=is_causal,
        scale=None if _is_usual(scale, q) else scale,
        softcap=softcap,
    )


def _is_usual(scale: float | None, q: Expression) -> bool:
    """Whether a scale is attention's default."""
    width = q.shape[-1] if q.shape else None
    if scale is None or not isinstance(width, int) or width == 0:
        return False
    return bool(np.float32(scale) == np.float32(width**-0.5))


@onnx_op(
    "Attention",
    since=23,
    when=_common,
    traits=OWN_SHAPE | UNBOUNDED,
    shapes=layers.attention,
    macs=costs.attention,
    options=_attended,
)
def attention(
    Q: Expression,
    K: Expression,
    V: Expression,
    attn_mask: Expression | None = None,
    past_key: Expression | None = None,
    past_value: Expression | None = None,
    nonpad_kv_seqlen: Expression | None = None,
    *,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    softmax_precision: int | None = None,
    **options: Any,
) -> Result:
    if Q.rank != 3:
        return _attended(Q, K, V, attn_mask, **options)
    batch, time = size(Q, 0), size(Q, 1)
    q, k, v = (
        _by_head(x, heads)
        for x, heads in ((Q, q_num_heads), (K, kv_num_heads), (V, kv_num_heads))
    )
    y = _attended(q, k, v, attn_mask, **options)
    moved = Method(y, "transpose", tuple(map(Literal, (0, 2, 1, 3))))
    return Method(moved, "reshape", (batch, time, Literal(-1)))


def _by_head(x: Expression, heads: int | None) -> Expression:
    """(B, T, H * D) -> (B, H, T, D)"""
    parts = method(x, "reshape", size(x, 0), size(x, 1), heads, -1)
    return Method(parts, "transpose", tuple(map(Literal, (0, 2, 1, 3))))


@onnx_op(
    "Attention",
    domain="burnish",
    traits=OWN_SHAPE | UNBOUNDED,
    shapes=layers.attention,
    argument_roles={0: "q", 1: "k", 2: "v", "attn_mask": "mask"},
    options=_attended,
)
def scaled_dot_product_attention(
    q: Expression,
    k: Expression,
    v: Expression,
    mask: Expression | None = None,
    **options: Any,
) -> Result:
    """Attention over any number of axes: q (..., T, D), k (..., S, D), v (..., S, E)"""
    return _attended(q, k, v, mask, **options)


def _of_known_rank(node: ir.Node) -> bool:
    """Heads apart or in a row; cos and sin with the axes that are specified."""
    x, cos, sin = (None if value is None else value.shape for value in node.inputs[:3])
    rank = 3 if len(node.inputs) < 4 or node.inputs[3] is None else 2
    tables = all(table is not None and len(table) == rank for table in (cos, sin))
    return tables and x is not None and len(x) in (3, 4)


@onnx_op(
    "RotaryEmbedding",
    since=23,
    when=_of_known_rank,
    traits=SAME_SHAPE,
    argument_roles={1: "cos", 2: "sin"},
)
def rotary_embedding(
    X: Expression,
    cos_cache: Expression,
    sin_cache: Expression,
    position_ids: Expression | None = None,
    *,
    interleaved: int = 0,
    num_heads: int | None = None,
    rotary_embedding_dim: int = 0,
    node: NodeContext,
) -> Result:
    """The number of columns of cos and sin is half the number of rotated ones of X."""
    options = {"interleaved": bool(interleaved), "per_pair": True}
    flat = X.rank == 3
    cos, sin = (
        _of_heads(table, position_ids, 2 if flat else 1)
        for table in (cos_cache, sin_cache)
    )
    if not flat:
        return call("rotary_embedding", X, cos, sin, **options)
    x = named(node, method(X, "reshape", size(X, 0), size(X, 1), num_heads, -1), "x")
    y = named(node, call("rotary_embedding", x, cos, sin, **options), "y")
    return method(y, "reshape", size(X, 0), size(X, 1), -1)


def _of_heads(
    table: Expression, position_ids: Expression | None, axis: int
) -> Expression:
    """The numbers of every place, (B, T, n / 2), with an axis for the heads."""
    if position_ids is not None:
        table = at(table, 0, tensor(position_ids))
    elif axis == 1 and table.shape is not None and table.shape[0] == 1:
        return table
    return method(table, "unsqueeze", axis)


@onnx_op("RotaryEmbedding", domain="burnish", traits=SAME_SHAPE)
def rotary_embedding_of_columns(
    x: Expression, cos: Expression, sin: Expression, *, interleaved: int
) -> Result:
    """With a number of cos and sin for each column; ONNX's has one for each pair."""
    return call("rotary_embedding", x, cos, sin, interleaved=bool(interleaved))
