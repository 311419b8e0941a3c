"""A matrix plus a product of two thin ones: LoRA's weight."""

from __future__ import annotations

from burnish.backend import Array, namespace
from burnish.operator import memory_bound, operator
from burnish.ops._shapes import cast


@memory_bound
@operator
def low_rank_add(x, b, a, *, scale: float = 1.0) -> Array:
    """x + scale * (b @ a), in x's dtype; x (rows, ...), b (rows, r), a (r, columns)

    The axes of x behind the first count as one.
    """
    change = b @ a
    change *= scale
    return namespace(x).add(x, change.reshape(x.shape)).astype(x.dtype, copy=False)


@low_rank_add.vjp("x")
def _(g, y, x, b, a, *, scale):
    return g


@low_rank_add.vjp("b")
def _(g, y, x, b, a, *, scale):
    return _matrix(g, b) @ a.T * scale


@low_rank_add.vjp("a")
def _(g, y, x, b, a, *, scale):
    return b.T @ _matrix(g, b) * scale


def _matrix(g, like):
    return cast(g.reshape(g.shape[0], -1), dtype=like.dtype)
