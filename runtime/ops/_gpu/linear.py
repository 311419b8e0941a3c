"""Products of matrices, linear layers and their gradients."""

from __future__ import annotations

from math import prod

from burnish.backend.cuda import layout
from burnish.backend.cuda.calls import once
from burnish.backend.cuda.norms import rows
from burnish.backend.cuda.products import cublaslt, matrices
from burnish.ops._gpu.call import together
from burnish.ops._shapes import unbroadcast
from burnish.ops.linalg import linear

linear.linear.prepared(cublaslt.prepared_linear)
linear.matmul.prepared(cublaslt.prepared)


@linear.matmul.prepared_vjp
def _(g, y, a, b, *, needed):
    if a.ndim < 2 or b.ndim < 2 or not g.size:
        return None
    is_copied = matrices.described(g, g.shape[:-2]) is None
    slope = type(g)(g.shape, g.dtype) if is_copied else g  # one copy for both

    def to_a():
        run = cublaslt.prepared(slope, b.mT)
        return run and (lambda g, y, a, b: _summed(run(g, b.mT), a))

    def to_b():
        if b.ndim == 2:
            product = once(cublaslt.prepared_slopes)
            return lambda g, y, a, b: product(_matrix(a), _matrix(g))
        run = cublaslt.prepared(a.mT, slope)
        return run and (lambda g, y, a, b: _summed(run(a.mT, g), b))

    pulled = together(needed, to_a, to_b)
    if pulled is None or not is_copied:
        return pulled
    return lambda g, *others: pulled(layout.contiguous(g), *others)


def _summed(part, x):
    return part if part is None else unbroadcast(part, x)


@linear.linear.prepared_vjp
def _(g, y, x, weight, bias=None, *, needed):
    is_tidy = g._c_contiguous
    slope = g if is_tidy else type(g)(g.shape, g.dtype)  # one copy for all three

    def to_x():
        run = cublaslt.prepared(slope, weight)
        return run and (lambda g, y, x, weight, bias=None: run(g, weight))

    def to_weight():
        if g.ndim < 2 or not g.size:
            return None
        run = once(cublaslt.prepared_slopes)
        if g.ndim == 2:
            return lambda g, y, x, weight, bias=None: run(g, x)
        g_shape, x_shape = ((prod(a.shape[:-1]), a.shape[-1]) for a in (g, x))
        turned = layout.prepared_reshape(x, x_shape)
        return lambda g, y, x, weight, bias=None: run(g.reshape(g_shape), turned(x))

    def to_bias():
        if g.shape[-1:] != bias.shape or not g.size:
            return None
        run = rows.prepared_channel_sums(slope, g.size // len(bias), len(bias), 1)
        return run and (lambda g, y, x, weight, bias: run(g))

    pulled = together(needed, to_x, to_weight, to_bias)
    if is_tidy or pulled is None:
        return pulled
    return lambda g, *others: pulled(layout.contiguous(g), *others)


def _matrix(x):
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])
