"""Rows of a table by number, and their sums by number; each is the other's gradient."""

from __future__ import annotations

from burnish.backend import namespace
from burnish.errors import InputError
from burnish.operator import operator


@operator
def embedding(weight, ids, *, padding_idx: int | None = None):
    """weight (rows, dim), ids (...) -> (..., dim); no gradient to row padding_idx"""
    try:
        return weight[ids]
    except IndexError:
        raise InputError(
            f"embedding: expected ids from 0 to {len(weight) - 1}, "
            f"got {ids.min()} to {ids.max()}"
        ) from None


@embedding.vjp("weight")
def _(g, y, weight, ids, *, padding_idx):
    if padding_idx is not None:
        padding_idx %= weight.shape[0]
        g = g * (ids != padding_idx)[..., None].astype(g.dtype)
    return sum_rows(g, ids, rows=weight.shape[0])


@operator
def sum_rows(x, ids, *, rows: int):
    """x (..., dim) summed by ids (...): (rows, dim), row i the sum where ids is i"""
    xp = namespace(x)
    dim = x.shape[-1]
    out = xp.zeros((rows, dim), x.dtype)
    flat = ids.reshape(-1) % rows
    if flat.size == 0:
        return out
    order = flat.argsort(kind="stable")
    flat = flat[order]
    starts = xp.flatnonzero(xp.append(True, flat[1:] != flat[:-1]))
    out[flat[starts]] = xp.add.reduceat(x.reshape(-1, dim)[order], starts, axis=0)
    return out


@sum_rows.on("cupy")
def _(x, ids, *, rows):
    xp = namespace(x)
    dim = x.shape[-1]
    out = xp.zeros((rows, dim), x.dtype)
    xp.add.at(out, ids.reshape(-1), x.reshape(-1, dim))
    return out


@sum_rows.vjp("x")
def _(g, y, x, ids, *, rows):
    return embedding(g, ids)
