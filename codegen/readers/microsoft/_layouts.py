"""Images with their channels in the last axis."""

from __future__ import annotations

from typing import Any

from burnish.codegen.readers.microsoft._bodies import Builder, rank


def to_channels_first(op: Builder, x: Any, moved: int) -> Any:
    """(N, ..., C) as (N, C, ...), where moved."""
    if not moved:
        return x
    axes = list(range(rank(x)))
    return op.Transpose(x, perm=[0, axes[-1], *axes[1:-1]])


def to_channels_last(op: Builder, y: Any, x: Any, moved: int) -> Any:
    """(N, C, ...) as (N, ..., C), where moved; x has as many axes."""
    if not moved:
        return y
    return op.Transpose(y, perm=[0, *range(2, rank(x)), 1])
