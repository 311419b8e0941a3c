"""Rotary position embedding: pairs of columns rotated by an angle of the position."""

from __future__ import annotations

from typing import Any

from burnish.backend import Array
from burnish.errors import InputError
from burnish.operator import composed
from burnish.ops._shapes import ranked
from burnish.ops.arrays.shape import concat, reshape, stack


@composed
def rotary_embedding(
    x: Any, cos: Any, sin: Any, *, interleaved: bool = False, per_pair: bool = False
) -> Array:
    """x (..., T, D), its first n columns turned by angles; cos, sin (..., T, n)

    A pair (a, b) becomes (a cos - b sin, b cos + a sin). Pairs are columns i and
    i + n / 2, or neighbours where they are interleaved; columns from n on stay.
    per_pair: cos and sin are (..., T, n / 2), as both of a pair turn alike.
    https://arxiv.org/abs/2104.09864

    Raises InputError unless cos and sin have one even number of columns, at most D;
    per_pair, one number of columns, at most D / 2.
    """
    for name, part in (("x", x), ("cos", cos), ("sin", sin)):
        ranked(f"rotary_embedding: {name}", part, -1)
    if per_pair:
        _check(x, cos, sin, "n / 2", 2 * cos.shape[-1])
        cos, sin = (_of_columns(part, interleaved) for part in (cos, sin))
    n, d = cos.shape[-1], x.shape[-1]
    _check(x, cos, sin, "n", n)
    turned: Any = x if n == d else x[..., :n]
    turned = turned * cos + _quarter(turned, n, interleaved) * sin
    if n < d:
        turned = concat([turned, x[..., n:]], axis=-1)
    return turned


def _check(x: Any, cos: Any, sin: Any, columns: str, n: int) -> None:
    d = x.shape[-1]
    if n % 2 or n > d or sin.shape[-1] != cos.shape[-1]:
        raise InputError(
            f"rotary_embedding: expected cos and sin (..., T, {columns}), n even and "
            f"at most the {d} columns of x {x.shape}; got {cos.shape} and {sin.shape}"
        )


def _of_columns(part: Any, interleaved: bool) -> Any:
    """(..., T, n / 2) -> (..., T, n)"""
    if not interleaved:
        return concat([part, part], axis=-1)
    shape = (*part.shape[:-1], 2 * part.shape[-1])
    return reshape(stack([part, part], axis=-1), shape=shape)


def _quarter(x: Any, n: int, interleaved: bool) -> Any:
    """Every pair (a, b) as (-b, a): turned by a quarter."""
    if interleaved:
        return reshape(stack([-x[..., 1::2], x[..., ::2]], axis=-1), shape=x.shape)
    return concat([-x[..., n // 2 :], x[..., : n // 2]], axis=-1)
