"""Rotary positions, of one stream and of three."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
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
        raise Unreadable("expected rows of a batch, and places that are not scaled")
    x = _by_head(op, input_, num_heads, size(cos_cache, 1))
    if rank(position_ids) == 1:
        time = op.Squeeze(op.Shape(x, start=2, end=3), [0])
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
        raise Unreadable("expected rows of a batch, places that are not scaled")
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
