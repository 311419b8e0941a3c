"""Embedding lookup: rows of a table by index."""

from __future__ import annotations

from burnish.backend import Array, as_indices, namespace
from burnish.errors import InputError
from burnish.operator import operator
from burnish.ops.arrays.index import put_rows


@operator
def embedding(ids, weight, /, padding_idx: int | None = None) -> Array:
    """ids (...), weight (rows, dim) -> (..., dim); no gradient to row padding_idx"""
    if ids.dtype.kind not in "iu":
        raise InputError(f"embedding: expected ids of integers, got {ids.dtype}")
    try:
        return namespace(weight).take(weight, as_indices(ids), axis=0)
    except IndexError:
        raise InputError(
            f"embedding: expected ids from 0 to {len(weight) - 1}, "
            f"got {ids.min()} to {ids.max()}"
        ) from None


@embedding.vjp("weight")
def _(g, y, ids, weight, *, padding_idx):
    rows, dim = weight.shape
    if padding_idx is not None:
        kept = ids % rows != padding_idx % rows
        g = g * kept[..., None].astype(g.dtype)
    return put_rows(g.reshape(ids.size, dim), ids.reshape(-1), rows=rows)
