"""Shape transfer of operators, each declared once for any kind of size.

`Sizes` is a kind's arithmetic: `Known` ones are evaluated, `Checked` ones noted where
they must be equal, those of a union-find unified. Axes count from the end where they
are negative; None: the operands do not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
Shape = Sequence[T]


class Sizes(Protocol[T]):
    """Arithmetic of sizes; those that must be equal and are not fit no operator."""

    def new(self, number: int | None = None, /) -> T:
        """A number as a size; without one a size of which nothing is known."""

    def same(self, one: T, other: T, /) -> T:
        """The size that both are."""

    def spread(self, sizes: Sequence[T], /) -> T:
        """The size that they broadcast to."""

    def total(self, parts: Sequence[T], /) -> T:
        """The sum."""

    def times(self, size: T, count: int, /) -> T:
        """The multiple."""


def transposed(shape: Shape[T], order: Sequence[int]) -> list[T] | None:
    """The axes in another order."""
    if sorted(order) != list(range(len(shape))):
        return None
    return [shape[axis] for axis in order]


def squeezed(shape: Shape[T], axes: Collection[int]) -> list[T]:
    """Without the axes that are removed, by Squeeze or by a reduction."""
    gone = _places(axes, len(shape))
    return [size for i, size in enumerate(shape) if i not in gone]


def replaced(
    shape: Shape[T], axes: Collection[int], size: Callable[[int], T]
) -> list[T]:
    """With other sizes for some axes, such as 1 for those that were reduced."""
    changed = _places(axes, len(shape))
    return [size(i) if i in changed else old for i, old in enumerate(shape)]


def unsqueezed(
    shape: Shape[T], axes: Collection[int], one: Callable[[], T]
) -> list[T] | None:
    """With axes of size 1 inserted, counted in the result's axes."""
    rank = len(shape) + len(axes)
    added = _places(axes, rank)
    if len(added) < len(axes):
        return None
    rest = iter(shape)
    return [one() if i in added else next(rest) for i in range(rank)]


def broadcast(shapes: Sequence[Shape[T]], join: Callable[[list[T]], T]) -> list[T]:
    """NumPy's rule: shapes are aligned at their last axes; join: the sizes of one."""
    rank = max(map(len, shapes), default=0)
    aligned = [
        [shape[i] for shape in shapes if -i <= len(shape)] for i in range(-rank, 0)
    ]
    return [join(sizes) for sizes in aligned]


def matmul(a: Shape[T], b: Shape[T], sizes: Sizes[T]) -> list[T] | None:
    """(..., n, k) and (..., k, m) -> (..., n, m); vectors have no n, or no m."""
    if not a or not b:
        return None
    sizes.same(a[-1], b[-2:][0])
    lead = broadcast([a[:-2], b[:-2]], sizes.spread)
    return [*lead, *a[-2:-1], *(b[-1:] if len(b) > 1 else ())]


def conv(
    x: Shape[T],
    weight: Shape[T],
    groups: int,
    sides: Shape[T],
    sizes: Sizes[T],
) -> list[T] | None:
    """x (n, c, ...) and weight (d, c // groups, ...) -> (n, d, *sides)."""
    if min(len(x), len(weight)) < 2:
        return None
    sizes.same(x[1], sizes.times(weight[1], groups))
    return [x[0], weight[0], *sides]


def concat(shapes: Sequence[Shape[T]], axis: int, sizes: Sizes[T]) -> list[T] | None:
    """One axis is the sum of all; the others are equal."""
    rank = len(shapes[0])
    if not -rank <= axis < rank or any(len(shape) != rank for shape in shapes):
        return None
    first, *others = ([*s[: axis % rank], *s[axis % rank + 1 :]] for s in shapes)
    for other in others:
        first = [sizes.same(a, b) for a, b in zip(first, other, strict=True)]
    first.insert(axis % rank, sizes.total([shape[axis] for shape in shapes]))
    return first


def split(
    whole: Shape[T], axis: int, parts: Sequence[T], sizes: Sizes[T]
) -> list[list[T]] | None:
    """Each part has the other axes of the whole; along one, the parts add up to it."""
    if not -len(whole) <= axis < len(whole):
        return None
    sizes.same(whole[axis], sizes.total(parts))
    place = axis % len(whole)
    return [[*whole[:place], part, *whole[place + 1 :]] for part in parts]


def gather(data: Shape[T], at: Shape[T], axis: int) -> list[T]:
    """One axis is that of the places."""
    place = axis % max(len(data), 1)
    return [*data[:place], *at, *data[place + 1 :]]


def gather_nd(data: Shape[T], at: Shape[T], depth: int) -> list[T]:
    """Each row along the last axis of `at` is a place in the first `depth` axes."""
    return [*at[:-1], *data[depth:]]


def index(data: Shape[T], places: Sequence[Shape[T]], sizes: Sizes[T]) -> list[T]:
    """One tensor of places for each of the first axes."""
    return [*broadcast(places, sizes.spread), *data[len(places) :]]


def attention(q: Shape[T], k: Shape[T], v: Shape[T], sizes: Sizes[T]) -> list[T] | None:
    """q (..., n, e), k (..., s, e), v (..., s, d) -> (..., n, d)."""
    if min(map(len, (q, k, v))) < 2:
        return None
    sizes.same(q[-1], k[-1])
    sizes.same(k[-2], v[-2])
    return [*q[:-1], v[-1]]


def _places(axes: Collection[int], rank: int) -> set[int]:
    return {axis % max(rank, 1) for axis in axes}
