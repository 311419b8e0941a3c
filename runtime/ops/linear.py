"""Matrix products."""

from __future__ import annotations

from burnish.operator import operator
from burnish.ops._shapes import unbroadcast


@operator
def matmul(a, b):
    """a @ b as NumPy has it: (..., n, k) @ (..., k, m) -> (..., n, m); vectors too."""
    return a @ b


@matmul.vjp("a")
def _(g, y, a, b):
    if len(b.shape) == 1:
        g, b = g[..., None], b[:, None]
    if len(a.shape) == 1:
        return unbroadcast((g[..., None, :] @ b.mT)[..., 0, :], a)
    return unbroadcast(g @ b.mT, a)


@matmul.vjp("b")
def _(g, y, a, b):
    if len(a.shape) == 1:
        g, a = g[..., None, :], a[None, :]
    if len(b.shape) == 1:
        return unbroadcast((a.mT @ g[..., None])[..., 0], b)
    return unbroadcast(a.mT @ g, b)


@operator
def linear(x, weight, bias=None):
    """x @ weight.T + bias; x (..., k), weight (m, k), bias (m,) or None -> (..., m)"""
    y = x @ weight.T
    return y if bias is None else y + bias


@linear.vjp("x")
def _(g, y, x, weight, bias=None):
    return g @ weight


@linear.vjp("weight")
def _(g, y, x, weight, bias=None):
    rows = g.reshape(-1, g.shape[-1])
    return rows.T @ x.reshape(-1, x.shape[-1])


@linear.vjp("bias")
def _(g, y, x, weight, bias):
    return unbroadcast(g, bias)
