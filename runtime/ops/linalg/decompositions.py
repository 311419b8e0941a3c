"""Factorizations, diagonals and angles. Matrices are the last two axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._shapes import axes_of, plain, unbroadcast
from burnish.ops._tables import beside
from burnish.ops.arrays.create import tril, triu
from burnish.ops.arrays.gather import take_along_axis
from burnish.ops.arrays.reduce import norm, reduce_mean, reduce_sum
from burnish.ops.arrays.shape import concat, expand, moveaxis, split
from burnish.ops.elementwise.clip import clip
from burnish.ops.linalg.linear import inverse, matmul

_PANEL = 32  # columns that `lu_factor` takes one by one before a matrix product


# --- diagonals ---


@composed
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of two axes, as the last axis; `offset` counts to the right."""
    first, second = axes_of((axis1, axis2), len(x.shape))
    if first == second:
        raise InputError(f"diagonal: expected two axes, got {axis1} and {axis2}")
    x = moveaxis(x, (first, second), (-2, -1))
    return last_diagonal(x, offset=offset)


@operator
def last_diagonal(x, *, offset: int = 0) -> Array:
    """The diagonal of the last two axes."""
    return x.diagonal(offset, -2, -1)


@last_diagonal.vjp
def _(g, y, x, *, offset):
    return diag_embed(g, offset=offset, shape=tuple(x.shape[-2:]))


@operator
def diag_embed(x, /, offset: int = 0, shape: tuple[int, int] | None = None) -> Array:
    """Matrices with x's last axis on a diagonal, 0 elsewhere.

    shape: theirs; without one they are square and just large enough.
    """
    xp, count = namespace(x), x.shape[-1]
    rows, columns = shape or (count + abs(offset), count + abs(offset))
    y = xp.zeros((*x.shape[:-1], rows, columns), x.dtype)
    along = xp.arange(count)
    y[..., along + max(-offset, 0), along + max(offset, 0)] = x
    return y


@diag_embed.vjp
def _(g, y, x, *, offset, shape):
    return last_diagonal(g, offset=offset)


@composed
def diag(x: Any, k: int = 0) -> Array:
    """The diagonal of a matrix; of a vector the matrix with that diagonal."""
    if len(x.shape) not in (1, 2):
        raise InputError(f"diag: expected a vector or a matrix, got {x.shape}")
    if len(x.shape) == 1:
        return diag_embed(x, offset=k)
    return diagonal(x, offset=k)


@composed
def trace(x: Any) -> Array:
    """The sum of the diagonal: (..., n, m) -> (...)"""
    return reduce_sum(diagonal(x, axis1=-2, axis2=-1), axes=-1)


# --- solving and factoring ---


@operator
def solve(a, b) -> Array:
    """y with a @ y = b: (..., n, n), (..., n, k) -> (..., n, k)"""
    return namespace(a, b).linalg.solve(a, b)


@solve.on("cupy")
def _(a, b):
    xp = namespace(a, b)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # CuPy does not broadcast
    a = xp.broadcast_to(a, (*lead, *a.shape[-2:]))
    return xp.linalg.solve(a, xp.broadcast_to(b, (*lead, *b.shape[-2:])))


@solve.vjp("a", "b")
def _(g, y, a, b):
    part = solve(a.mT, g)
    return unbroadcast(-part @ y.mT, a), unbroadcast(part, b)


@composed
def lu(x: Any) -> tuple[Array, Array, Array]:
    """P, L, U with P @ L @ U = x (..., n, m); L has ones on its diagonal.

    P (..., n, n) exchanges rows, so that no element of L is greater than 1.
    """
    factors, pivots = lu_factor(x)
    n, count = x.shape[-2], pivots.shape[-1]
    p = permutation_matrix(pivots, rows=n, dtype=factors.dtype)
    ones = beside(factors, np.eye(n, count, dtype=factors.dtype))
    lower = tril(factors[..., :count], k=-1) + ones
    return p, lower, triu(factors[..., :count, :])


@operator
def permutation_matrix(pivots, *, rows: int, dtype: Any) -> Array:
    """The exchanges that `lu_factor` made, undone by a matrix (..., rows, rows)."""
    order = _order(pivots, rows)[..., None, :]
    return (order == namespace(pivots).arange(rows)[:, None]).astype(dtype)


@operator
def lu_factor(x) -> tuple[Array, Array]:
    """L and U in one matrix (..., n, m), and LAPACK's pivots (..., min(n, m)) int32.

    Row i was exchanged with row pivots[i] - 1, one after the other. L's diagonal of
    ones is left out. Panels of columns, a product of matrices behind each.
    """
    xp = namespace(x)
    *lead, n, m = x.shape
    a = x.reshape(math.prod(lead), n, m)
    a = a.copy() if x.dtype.kind == "f" else a.astype(np.float64)
    count = min(n, m)
    pivots = xp.zeros((len(a), count), xp.int32)
    eliminate = _eliminate_alone if xp is np and len(a) == 1 else _eliminate
    for start in range(0, count, _PANEL):
        stop = min(start + _PANEL, count)
        for j in range(start, stop):
            pivots[:, j] = eliminate(xp, a, j, stop)
        if stop < m:
            left = xp.tril(a[:, start:stop, start:stop], -1)
            left += xp.eye(stop - start, dtype=a.dtype)
            top = xp.linalg.solve(left, a[:, start:stop, stop:])
            a[:, start:stop, stop:] = top
            a[:, stop:, stop:] -= a[:, stop:, start:stop] @ top
    return a.reshape(x.shape), pivots.reshape(*lead, count)


def _eliminate(xp: Any, a: Array, j: int, stop: int) -> Array:
    """Column j below its pivot, in all matrices, up to column `stop`; the pivots."""
    each = xp.arange(len(a))
    best = j + abs(a[:, j:, j]).argmax(axis=1)
    chosen = a[each, best].copy()
    a[each, best] = a[:, j]
    a[:, j] = chosen
    pivot = chosen[:, j, None]
    a[:, j + 1 :, j] /= xp.where(pivot == 0, 1, pivot)
    below = a[:, j + 1 :, j, None] * a[:, None, j, j + 1 : stop]
    a[:, j + 1 :, j + 1 : stop] -= below
    return best + 1


def _eliminate_alone(xp: Any, a: Array, j: int, stop: int) -> int:
    """The same for one matrix; every part is a view of it."""
    x = a[0]
    best = j + int(abs(x[j:, j]).argmax())
    if best != j:
        chosen = x[best].copy()
        x[best] = x[j]
        x[j] = chosen
    if pivot := x[j, j]:
        x[j + 1 :, j] /= pivot
    x[j + 1 :, j + 1 : stop] -= x[j + 1 :, j, None] * x[j, j + 1 : stop]
    return best + 1


def _order(pivots: Array, n: int) -> Array:
    """Which row of the matrix each row of L @ U is: (..., n)"""
    xp = namespace(pivots)
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1]) - 1
    order = xp.tile(xp.arange(n), (len(flat), 1))
    each = xp.arange(len(flat))
    for j in range(flat.shape[1]):
        chosen = order[each, flat[:, j]].copy()
        order[each, flat[:, j]] = order[:, j]
        order[:, j] = chosen
    return order.reshape(*pivots.shape[:-1], n)


@lu_factor.vjp
def _(g, y, x):
    # With x1 the leading square of the exchanged x, inv(L1) dx1 inv(U1) holds L's part
    # below its diagonal and U's above; what sticks out of the square follows from it.
    g, (factors, pivots) = g[0], y
    n, m = x.shape[-2:]
    count = min(n, m)
    square, g_square = factors[..., :count, :count], g[..., :count, :count]
    below, g_below = factors[..., count:, :count], g[..., count:, :count]
    right, g_right = factors[..., :count, count:], g[..., :count, count:]
    ones = beside(square, np.eye(count, dtype=x.dtype))
    lower, upper = tril(square, k=-1) + ones, triu(square)
    low = lower.mT @ tril(g_square, k=-1) - g_right @ right.mT
    up = triu(g_square) @ upper.mT - below.mT @ g_below
    back = inverse(upper).mT
    part = solve(lower.mT, (tril(low, k=-1) + triu(up)) @ back)
    if n > m:
        part = concat([part, g_below @ back], axis=-2)
    if m > n:
        part = concat([part, solve(lower.mT, g_right)], axis=-1)
    order = _order(plain(pivots), n)
    places = namespace(order).argsort(order, -1)
    return take_along_axis(part, places[..., None], axis=-2)


@composed
def qr(x: Any) -> tuple[Array, Array]:
    """Q, R with Q @ R = x (..., n, m): Q's columns are orthonormal, R is upper.

    Q is (..., n, min(n, m)), R (..., min(n, m), m), as PyTorch's "reduced".
    """
    if len(x.shape) < 2:
        raise InputError(f"qr: expected matrices, got {x.shape}")
    n, m = x.shape[-2:]
    if n >= m:
        return tall_qr(x)
    q, r = tall_qr(x[..., :n])
    whole: Any = concat([r, matmul(q.mT, x[..., n:])], axis=-1)
    return q, whole


@operator
def tall_qr(x) -> tuple[Array, Array]:
    """`qr` of matrices with at least as many rows as columns."""
    return tuple(namespace(x).linalg.qr(x))


@tall_qr.vjp
def _(g, y, x):
    # Walter and Lehmann, "Algorithmic differentiation of linear algebra functions"
    g_q, g_r = g
    q, r = y
    turned = 0 if g_r is None else r @ g_r.mT
    spun = 0 if g_q is None else g_q.mT @ q
    m = tril(turned - spun)
    whole = q @ (m + tril(m, k=-1).mT)
    return matmul(whole if g_q is None else g_q + whole, inverse(r).mT)


# --- products and angles ---


@composed
def dot(a: Any, b: Any) -> Array:
    """The sum of the products of two vectors: (n,), (n,) -> ()"""
    if len(a.shape) != 1 or a.shape != b.shape:
        raise InputError(
            f"dot: expected two vectors of one length, got {a.shape} and {b.shape}"
        )
    return matmul(a, b)


@composed
def cross(a: Any, b: Any, axis: int = -1) -> Array:
    """The vector at right angles to both, along an axis of length 3."""
    if any(part.shape[axes_of(axis, len(part.shape))[0]] != 3 for part in (a, b)):
        raise InputError(
            f"cross: expected length 3 along axis {axis}, got {a.shape} and {b.shape}"
        )
    a0, a1, a2 = split(a, num=3, axis=axis)
    b0, b1, b2 = split(b, num=3, axis=axis)
    parts: Any = (a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0)
    return concat(parts, axis=axis)


@composed
def normalize(x: Any, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Array:
    """x divided by its p-norm along an axis, or by eps where that is greater."""
    size = norm(x, p, axis, keepdims=True)
    return x / clip(size, eps)


@composed
def cosine_similarity(a: Any, b: Any, axis: int = 1, eps: float = 1e-8) -> Array:
    """The cosine of the angle between a and b along an axis; norms of at least eps."""
    a = expand(a, shape=b.shape)
    b = expand(b, shape=a.shape)
    a, b = (normalize(part, axis=axis, eps=eps) for part in (a, b))
    return reduce_sum(a * b, axes=axis)


@composed
def cov(x: Any, *, correction: float = 1, axis: int = -1) -> Array:
    """How the rows of a matrix vary together: (n, m) -> (n, n), observations in `axis`

    With axis 0 they are columns: (n, m) -> (m, m). A vector has its variance.
    """
    if len(x.shape) not in (1, 2):
        raise InputError(f"cov: expected a vector or a matrix, got {x.shape}")
    axis = axes_of(axis, len(x.shape))[0]
    away = x - reduce_mean(x, axes=axis, keepdims=True)
    count = x.shape[axis] - correction
    share = 1 / count if count > 0 else math.inf  # of one observation: not a number
    if len(x.shape) == 1:
        return matmul(away, away) * share
    return (away.mT @ away if axis == 0 else away @ away.mT) * share
