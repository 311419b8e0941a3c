"""Rotary positions: pairs of columns turned by an angle of the place."""

from __future__ import annotations

from typing import Any

from burnish.errors import InputError
from burnish.ops.shape import concat, reshape, stack


def rotary_embedding(x: Any, cos: Any, sin: Any, *, interleaved: bool = False) -> Any:
    """x (..., T, D), its first n columns turned by angles; cos, sin (..., T, n)

    A pair (a, b) becomes (a cos - b sin, b cos + a sin). Pairs are columns i and
    i + n / 2, or neighbours where they are interleaved; columns from n on stay.
    https://arxiv.org/abs/2104.09864

    Raises InputError unless cos and sin have one even number of columns, at most D.
    """
    n, d = cos.shape[-1], x.shape[-1]
    if n % 2 or n > d or sin.shape[-1] != n:
        raise InputError(
            "rotary_embedding: expected cos and sin (..., T, n), n even and at most "
            f"the {d} columns of x {x.shape}; got {cos.shape} and {sin.shape}"
        )
    turned = x if n == d else x[..., :n]
    turned = turned * cos + _quarter(turned, n, interleaved) * sin
    if n == d:
        return turned
    return concat(turned, x[..., n:], axis=-1)


def _quarter(x: Any, n: int, interleaved: bool) -> Any:
    """Every pair (a, b) as (-b, a): turned by a quarter."""
    if interleaved:
        return reshape(stack(-x[..., 1::2], x[..., ::2], axis=-1), shape=x.shape)
    return concat(-x[..., n // 2 :], x[..., : n // 2], axis=-1)
