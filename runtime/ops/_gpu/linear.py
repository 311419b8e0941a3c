"""Products of matrices, linear layers and their gradients."""

from __future__ import annotations

from math import prod

from burnish.backend.cuda.norms import rows
from burnish.backend.cuda.products import cublaslt
from burnish.ops._gpu.call import or_plain
from burnish.ops._shapes import unbroadcast
from burnish.ops.linalg import linear

linear.linear.prepared(cublaslt.prepared_linear)
linear.matmul.prepared(cublaslt.prepared)


@linear.matmul.vjp("a", on="cupy", takes_bfloat16=True)
def _(g, y, a, b):
    if a.ndim < 2 or b.ndim < 2:
        return NotImplemented
    part = cublaslt.matmul(g, b.mT)
    return NotImplemented if part is None else unbroadcast(part, a)


@linear.matmul.vjp("b", on="cupy", takes_bfloat16=True)
def _(g, y, a, b):
    if a.ndim < 2 or b.ndim < 2:
        return NotImplemented
    if b.ndim == 2:
        return or_plain(cublaslt.matmul(_matrix(a).T, _matrix(g)))
    part = cublaslt.matmul(a.mT, g)
    return NotImplemented if part is None else unbroadcast(part, b)


@linear.linear.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x, weight, bias=None):
    return or_plain(cublaslt.matmul(g, weight))


@linear.linear.vjp("weight", on="cupy", takes_bfloat16=True)
def _(g, y, x, weight, bias=None):
    return or_plain(cublaslt.matmul(_matrix(g).T, _matrix(x)))


@linear.linear.vjp("bias", on="cupy", takes_bfloat16=True)
def _(g, y, x, weight, bias):
    if g.shape[-1:] != bias.shape or not g.size:
        return NotImplemented
    return or_plain(rows.channel_sums(g, g.size // len(bias), len(bias), 1))


def _matrix(x):
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])
