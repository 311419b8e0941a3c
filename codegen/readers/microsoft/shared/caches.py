"""Key-value caches of a batch whose sequences have different lengths."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.shared.bodies import Builder, Unreadable, float32


class Cache:
    """New keys and values of each row behind those that it has already.

    past: (batch, heads, room, size). lengths + missing: the numbers of keys that rows
    have then, (batch,); total: the greatest of them. A past with less room grows.
    """

    def __init__(
        self,
        op: Builder,
        q: Any,
        lengths: Any,
        total: Any,
        *,
        missing: int = 0,
    ):
        self.op = op
        self.total = op.Cast(op.Reshape(total, [1]), to=ir.DataType.INT64)
        key = ("places", lengths, _time(q))
        if key not in op.shared:
            op.shared[key] = self._places(q, lengths, missing)
        self.places = op.shared[key]  #: of the new keys: (batch, time)
        self._index: Any = None

    def _places(self, q: Any, lengths: Any, missing: int) -> Any:
        op = self.op
        time = op.length(q, 2)
        ends = op.Cast(op.Reshape(lengths, [-1]), to=ir.DataType.INT64)
        before = op.Max(op.Add(ends, op.Sub(missing, time)), 0)
        return op.Add(op.Unsqueeze(before, [1]), op.Range(0, time, 1))

    def with_new(self, past: Any, new: Any) -> Any:
        """The past with the new ones of each row behind its own; all of one shape."""
        op = self.op
        if self._index is None:
            self._index = op.Expand(op.Unsqueeze(self.places, [1, 3]), op.Shape(new))
        more = op.Max(op.Sub(self.total, op.Shape(past, start=2, end=3)), 0)
        room = op.Pad(past, op.Concat([0] * 6, more, [0], axis=0))
        made = op.ScatterElements(room, self._index, new, axis=2)
        made.dtype = past.dtype
        return made

    def seen(self, whole: Any) -> Any:
        """The cache up to the longest row, without the unused rest."""
        return self.op.Slice(whole, [0], self.total, [2])

    def mask(self, window: int = -1) -> Any:
        """Which keys each new one sees: (batch, 1, time, total)"""
        op = self.op
        keys = op.Range(0, op.Squeeze(self.total, [0]), 1)
        rows = op.Unsqueeze(self.places, [1, 3])
        seen = op.LessOrEqual(keys, rows)
        if window > 0:
            seen = op.And(seen, op.Greater(keys, op.Sub(rows, window)))
        return seen

    def in_blocks(self, blocks: Any, size: int) -> Any:
        """Which keys each sees by a table of blocks: (batch, heads, time, total)

        blocks: (heads, blocks of new keys, blocks of keys).
        """
        op = self.op
        keys = op.Range(0, op.Squeeze(self.total, [0]), 1)
        rows = op.Gather(blocks, op.Div(self.places, size), axis=1)
        seen = op.Gather(rows, op.Div(keys, size), axis=3)
        return op.Transpose(seen, perm=[1, 0, 2, 3])


# --- caches in whole numbers ---


class Step(NamedTuple):
    """What one step of a cache's numbers is worth, and how many bits each has."""

    scale: Any
    bits: int


def cache_step(
    op: Builder, past: Any, scale: Any, kind: str, bits: int, heads: int
) -> Step | None:
    """None for a cache of floats.

    kind: "PER_TENSOR", or "PER_CHANNEL" with a scale (heads * size,).
    """
    if kind == "NONE":
        return None
    bits = bits or 8
    wanted = {8: ir.DataType.INT8, 4: ir.DataType.UINT8}.get(bits)
    if past is None or past.dtype != wanted:
        raise Unreadable(
            "expected a quantized cache to be of int8, or of uint8 with two numbers of "
            "4 bits each"
        )
    shape = [1, heads, 1, -1] if kind == "PER_CHANNEL" else [1]
    return Step(op.Reshape(scale, shape), bits)


def stored(op: Builder, new: Any, step: Step | None) -> Any:
    """New keys or values as the cache holds them."""
    if step is None:
        return new
    least = -(1 << (step.bits - 1))
    whole = op.Round(op.Div(new, step.scale))
    codes = op.Clip(whole, float32(least), float32(-least - 1))
    if step.bits == 8:
        return op.Cast(codes, to=ir.DataType.INT8)
    pairs = op.Reshape(op.Sub(codes, float32(least)), [0, 0, 0, -1, 2])
    packed = op.ReduceSum(
        op.Mul(pairs, np.array([1, 16], np.float32)), [-1], keepdims=0
    )
    return op.Cast(packed, to=ir.DataType.UINT8)


def restored(op: Builder, seen: Any, step: Step | None) -> Any:
    """What the cache holds as floats."""
    if step is None:
        return seen
    codes = seen
    if step.bits == 4:  # the low bits are the first of two numbers
        low = op.BitwiseAnd(seen, np.array(15, np.uint8))
        high = op.BitShift(seen, np.array(4, np.uint8), direction="RIGHT")
        pairs = op.Concat(*(op.Unsqueeze(x, [-1]) for x in (low, high)), axis=-1)
        codes = op.Reshape(pairs, [0, 0, 0, -1])
    whole = op.Cast(codes, to=ir.DataType.FLOAT)
    if step.bits == 4:
        whole = op.Sub(whole, float32(8))
    made = op.Mul(whole, step.scale)
    made.dtype = ir.DataType.FLOAT
    return made


def _time(q: Any) -> Any:
    """The number of new keys: the dimension if it is static, else its value."""
    dim = None if q.shape is None else q.shape[2]
    known = isinstance(dim, int) or (dim is not None and dim.value is not None)
    return str(dim) if known else q
