"""Convert between channels-last images and ONNX's channels-first ones."""

from __future__ import annotations

from typing import Any

from burnish.codegen.readers.microsoft.shared.bodies import Builder


def to_channels_first(op: Builder, x: Any, axes: int) -> Any:
    """(N, ..., C) as (N, C, ...), of so many axes; as it is where they are 0."""
    if not axes:
        return x
    return op.Transpose(x, perm=[0, axes - 1, *range(1, axes - 1)])


def to_channels_last(op: Builder, y: Any, axes: int) -> Any:
    """(N, C, ...) as (N, ..., C), of so many axes; as it is where they are 0."""
    if not axes:
        return y
    return op.Transpose(y, perm=[0, *range(2, axes), 1])
