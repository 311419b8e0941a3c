"""Arithmetic of known sizes, for shape transfer: evaluated, and checked."""

from __future__ import annotations

from collections.abc import Sequence

from burnish.codegen.symbolic.sizes import ONE, Size


class Known:
    """Sizes as far as they are known; None is one that is not."""

    def new(self, number: int | None = None, /) -> Size | None:
        return None if number is None else Size.number(number)

    def same(self, one: Size | None, other: Size | None, /) -> Size | None:
        """A number if one of them is, else the first name."""
        if one is None or (one.value is None and other and other.value is not None):
            return other
        return one

    def spread(self, sizes: Sequence[Size | None], /) -> Size | None:
        """Two names that differ leave the size open, one may be 1."""
        others = [size for size in sizes if size != ONE]
        for size in others:
            if size is not None and (size.value or 0) > 1:
                return size
        if not others:
            return ONE
        return others[0] if all(size == others[0] for size in others) else None

    def total(self, parts: Sequence[Size | None], /) -> Size | None:
        known = [part for part in parts if part is not None]
        return sum(known, Size.number(0)) if len(known) == len(parts) else None

    def times(self, size: Size | None, count: int, /) -> Size | None:
        return None if size is None else size * Size.number(count)


KNOWN = Known()


class Checked(Known):
    """Known sizes, and the pairs of them that must be equal."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Size | None, Size | None]] = []

    def same(self, one: Size | None, other: Size | None, /) -> Size | None:
        self.pairs.append((one, other))
        return super().same(one, other)

    def spread(self, sizes: Sequence[Size | None], /) -> Size | None:
        wide = [size for size in sizes if size != ONE]
        self.pairs += [(wide[0], other) for other in wide[1:]]
        return super().spread(sizes)
