"""Level: how many values share a scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from burnish.errors import InputError


@dataclass(frozen=True)
class Level:
    """Which values of an array share one scale.

    Made by `Level.tensor()`, `Level.channel(axis)`, `Level.row()`, `Level.block(size)`.
    """

    kind: str = "tensor"
    sizes: tuple[int, ...] = ()  #: the axis of "channel", the sizes of "block"

    @classmethod
    def tensor(cls) -> Self:
        """All of them."""
        return cls("tensor")

    @classmethod
    def channel(cls, axis: int = 0) -> Self:
        """Those at one place along `axis`: 0 is a Linear's or Conv's output."""
        return cls("channel", (axis,))

    @classmethod
    def row(cls) -> Self:
        """Those that only the last axis tells apart: a token's vector."""
        return cls("row")

    @classmethod
    def block(cls, *sizes: int) -> Self:
        """Blocks of so many along the last axes.

        With one size the axes behind the first count as one, so that a convolution's
        weight has long rows too.
        """
        if not sizes or any(type(size) is not int or size < 1 for size in sizes):
            raise InputError(
                f"Level.block: expected sizes of 1 or more, got {sizes or 'none'}"
            )
        return cls("block", sizes)

    def blocks(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The blocks of an array of this shape, as `ops.quantize_blocks` has them.

        Raises InputError where the array has too few axes.
        """
        rank = len(shape)
        if self.kind == "tensor" or rank == 0:
            return (max(math.prod(shape), 1),)
        if self.kind == "row":
            return (*(1 for _ in shape[1:]), max(shape[-1], 1))
        if self.kind == "channel":
            (axis,) = self.sizes
            if not -rank <= axis < rank:
                raise InputError(
                    f"quantization per channel: expected an axis of shape {shape}, "
                    f"got {axis}"
                )
            at = axis % rank
            return tuple(1 if i == at else max(n, 1) for i, n in enumerate(shape))
        if len(self.sizes) == 1:
            return self.sizes if rank == 1 else (1, *self.sizes)
        if len(self.sizes) > rank:
            raise InputError(
                f"quantization per block: expected at least {len(self.sizes)} axes for "
                f"blocks {self.sizes}, got shape {shape}"
            )
        return (*(1 for _ in shape[len(self.sizes) :]), *self.sizes)

    def counts(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the scales of an array of this shape."""
        blocks = self.blocks(shape)
        kept = len(blocks) - 1
        view = (*shape[:kept], math.prod(shape[kept:]))
        return tuple(-(-n // b) for n, b in zip(view, blocks, strict=True))

    @classmethod
    def from_value(cls, value: Any) -> Self:
        """The inverse of `value()`, checked."""
        kind, *sizes = value
        if kind == "block":
            return cls.block(*sizes)
        if kind == "channel" and len(sizes) == 1 and type(sizes[0]) is int:
            return cls.channel(*sizes)
        if kind in ("tensor", "row") and not sizes:
            return cls(kind)
        raise InputError(f"Level: expected a level, got {value!r}")

    def value(self) -> list[Any]:
        """The level in JSON's words."""
        return [self.kind, *self.sizes]

    def __str__(self) -> str:
        return " ".join(["per", self.kind, *map(str, self.sizes)])
