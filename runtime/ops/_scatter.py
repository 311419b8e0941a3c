"""Taking from and adding into planes by flat indices; each is the other's gradient."""

from __future__ import annotations

from math import prod

from burnish.backend import namespace
from burnish.operator import operator


@operator
def take_flat(x, indices):
    """x's elements at flat `indices` (over the whole of x); the shape of `indices`."""
    return x.reshape(-1)[indices]


@take_flat.vjp("x")
def _(g, y, x, indices):
    return put_flat(g, indices, shape=x.shape)


@operator
def put_flat(x, indices, *, shape: tuple[int, ...]):
    """Zeros of `shape` with x's elements added at flat `indices`; repeats add up."""
    xp = namespace(x)
    size = prod(shape)
    flat = xp.bincount(indices.reshape(-1), x.reshape(-1), minlength=size)
    return flat.astype(x.dtype).reshape(shape)


@put_flat.vjp("x")
def _(g, y, x, indices, *, shape):
    return take_flat(g, indices)
