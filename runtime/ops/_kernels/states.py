"""Shared parts of gradients of whole recurrent sequences; axis T comes first."""

from __future__ import annotations

from typing import Any

from burnish.ops.arrays.shape import concat
from burnish.ops.elementwise.compare import where


def before(first: Any, states: Any, reverse: bool) -> Any:
    """The state that each step began with."""
    if reverse:
        return concat([states[1:], first[None]], axis=0)
    return concat([first[None], states[:-1]], axis=0)


def added(part: Any, g: Any, t: int) -> Any:
    """The gradient from the next step plus the result's own at `t`, if any."""
    if g is None:
        return part
    return g[t] if part is None else part + g[t]


def alive(live: Any, values: Any, otherwise: float = 0) -> Any:
    """Values (T, N, ...) of the steps that examples have, something else behind them.

    live: (T, N, 1), or None: all have all.
    """
    if live is None:
        return values
    count, n, _ = live.shape
    return where(
        live.reshape(count, n, *(1 for _ in values.shape[2:])), values, otherwise
    )
