"""Convert onnxruntime's attention masks to additive ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    rank,
    size,
)


def hidden(
    op: Builder, q: Any, k: Any, mask: Any, low: float, bias: Any, causal: bool
) -> Any:
    """The additive mask of the scores, or None; booleans if only `causal` hides keys.

    mask: numbers of keys that count, (batch,); where they start behind those,
    (2 * batch,); or 1 for every key that counts, (batch, keys) or (batch, time, keys).
    Later keys score the lowest finite number, and the bias: they count where a mask or
    a bias hides all earlier ones.
    """
    made = None
    if mask is not None:
        made = _added(op, q, k, mask, low, q if q.dtype is not None else bias)
    if causal:
        seen = triangle(op, q, k)
        if made is None and bias is None:
            return seen
        zero = _number(op, 0.0, q if q.dtype is not None else bias)
        made = op.Where(seen, zero if made is None else made, op.lowest(q))
    if made is None or bias is None:
        return bias if made is None else made
    return op.Add(bias, made)


def _added(op: Builder, q: Any, k: Any, mask: Any, low: float, like: Any) -> Any:
    """An additive mask, made once for all nodes that have as many keys."""
    keys = None if k.shape is None else k.shape[2]
    known = isinstance(keys, int) or (keys is not None and keys.value is not None)
    key = (mask, str(keys) if known else k, low, None if like is None else like.dtype)
    if key not in op.shared:
        keep = _kept(op, q, k, mask)
        zero, filled = (_number(op, n, like) for n in (0.0, low))
        op.shared[key] = op.Where(keep, zero, filled)
    return op.shared[key]


def _number(op: Builder, number: float, like: Any) -> Any:
    if like is None or like.dtype is None:
        return op.value(np.array(number, np.float32))
    return op.number(number, like)


def _kept(op: Builder, q: Any, k: Any, mask: Any) -> Any:
    """Which keys count: (batch, 1, 1 or time, keys)"""
    axes = rank(mask)
    if axes in (2, 3):
        boolean = op.Cast(mask, to=ir.DataType.BOOL)
        return op.Unsqueeze(boolean, [1, 2] if axes == 2 else [1])
    if axes != 1:
        raise Unreadable(f"expected a mask of up to three axes, got {axes}")
    places = op.Cast(op.places(k, 2), to=ir.DataType.INT32)
    batch, count = size(q, 0), size(mask, 0)
    if batch is not None and count is not None and count == 2 * batch > batch:
        ends, starts = op.split(mask, 0, [batch, batch])
        keep = op.And(
            op.Less(places, op.Unsqueeze(ends, [1])),
            op.GreaterOrEqual(places, op.Unsqueeze(starts, [1])),
        )
    else:
        keep = op.Less(places, op.Unsqueeze(mask, [1]))
    return op.Unsqueeze(keep, [1, 2])


def triangle(op: Builder, q: Any, k: Any, window: int = -1) -> Any:
    """Which keys each query sees, the last one all of them: (time, keys)

    window: so many keys at most, its own among them.
    """
    keys = op.places(k, 2)
    time, count = op.length(q, 2), op.length(k, 2)
    rows = op.Unsqueeze(op.Range(op.Sub(count, time), count, 1), [1])
    seen = op.LessOrEqual(keys, rows)
    if window > 0:
        near = op.Greater(keys, op.Sub(rows, window))
        seen = op.And(seen, near)
    return seen
