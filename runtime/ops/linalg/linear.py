"""Matrix products, with bias, and their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.backend.cuda.products import cublaslt
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._shapes import unbroadcast


@operator
def matmul(a, b) -> Array:
    """a @ b as NumPy has it: (..., n, k) @ (..., k, m) -> (..., n, m); vectors too."""
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        raise InputError(
            f"matmul: expected the last axis of a and the last but one of b to be "
            f"equal, got {a.shape} and {b.shape}"
        )
    return _product(a, b)


def _product(a: Array, b: Array, bias: Array | None = None) -> Array:
    """a @ b + bias; all rows of a at once where b is one matrix."""
    if namespace(a) is not np and (y := _on_gpu(a, b, bias)) is not None:
        return y
    y = _rows_times(a, b)
    if bias is None:
        return y
    if y.dtype == bias.dtype and y.shape[-1:] == bias.shape:
        y += bias
        return y
    return y + bias


def _on_gpu(a: Array, b: Array, bias: Array | None) -> Array | None:
    on_cuda = namespace(a).__name__ == "cupy"
    return cublaslt.matmul(a, b, bias) if on_cuda else None


def _rows_times(a: Array, b: Array) -> Array:
    if a.ndim < 3 or b.ndim != 2:
        return a @ b
    return (_rows(a) @ b).reshape(*a.shape[:-1], b.shape[-1])


def _rows(x: Any) -> Any:
    """x (..., k) as a matrix (-1, k)."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


@matmul.vjp("a")
def _(g, y, a, b):
    if len(b.shape) == 1:
        g, b = g[..., None], b[:, None]
    if len(a.shape) == 1:
        return unbroadcast((g[..., None, :] @ b.mT)[..., 0, :], a)
    return unbroadcast(g @ b.mT, a)


@matmul.vjp("b")
def _(g, y, a, b):
    if len(b.shape) == 1:
        if len(a.shape) == 1:
            return g * a
        return unbroadcast((a.mT @ g[..., None])[..., 0], b)
    if len(a.shape) == 1:
        g, a = g[..., None, :], a[None, :]
    if len(b.shape) == 2:
        return _rows(a).T @ _rows(g)
    return unbroadcast(a.mT @ g, b)


@operator
def linear(x, weight, bias=None) -> Array:
    """x @ weight.T + bias; x (..., k), weight (m, k), bias (m,) or None -> (..., m)"""
    if not x.ndim or x.shape[-1] != weight.shape[1]:
        raise InputError(
            f"linear: x {x.shape} has {x.shape[-1] if x.ndim else 'no'} features, but "
            f"weight {weight.shape} takes {weight.shape[1]}"
        )
    return _product(x, weight.T, bias)


@linear.vjp("x")
def _(g, y, x, weight, bias=None):
    return g @ weight


@linear.vjp("weight")
def _(g, y, x, weight, bias=None):
    return _rows(g).T @ _rows(x)


@linear.vjp("bias")
def _(g, y, x, weight, bias):
    return unbroadcast(g, bias)


@composed
def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> Array:
    """alpha * a @ b + beta * c of matrices, a and b transposed on request."""
    y = matmul(a.T if trans_a else a, b.T if trans_b else b)
    y = y if alpha == 1 else alpha * y
    if c is None:
        return y
    return y + (c if beta == 1 else beta * c)


@composed
def outer(a: Any, b: Any) -> Array:
    """Every element of a times every one of b: (n,), (m,) -> (n, m)"""
    return a[:, None] * b[None, :]


def _single(x):
    """float16 as float32: LAPACK has no half precision."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


@operator
def det(x) -> Array:
    """The determinants of (..., n, n) matrices; the gradient needs an inverse."""
    return namespace(x).linalg.det(_single(x)).astype(x.dtype, copy=False)


@det.vjp
def _(g, y, x):
    return (g * y)[..., None, None] * inverse(x).mT


@operator
def inverse(x) -> Array:
    """The inverses of (..., n, n) matrices."""
    return namespace(x).linalg.inv(_single(x)).astype(x.dtype, copy=False)


@inverse.vjp
def _(g, y, x):
    return -(y.mT @ g @ y.mT)
