"""Shape transfer functions over any kind of size: numbers, `Size`, nodes to unify.

Axes count from the end where they are negative; None: the operands do not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

T = TypeVar("T")


def transposed(shape: Sequence[T], order: Sequence[int]) -> list[T] | None:
    """The axes in another order."""
    if sorted(order) != list(range(len(shape))):
        return None
    return [shape[axis] for axis in order]


def squeezed(shape: Sequence[T], axes: Collection[int]) -> list[T]:
    """Without the axes that are removed, by Squeeze or by a reduction."""
    gone = _places(axes, len(shape))
    return [size for i, size in enumerate(shape) if i not in gone]


def replaced(
    shape: Sequence[T], axes: Collection[int], size: Callable[[int], T]
) -> list[T]:
    """With other sizes for some axes, such as 1 for those that were reduced."""
    changed = _places(axes, len(shape))
    return [size(i) if i in changed else old for i, old in enumerate(shape)]


def unsqueezed(
    shape: Sequence[T], axes: Collection[int], one: Callable[[], T]
) -> list[T] | None:
    """With axes of size 1 inserted, counted in the result's axes."""
    rank = len(shape) + len(axes)
    added = _places(axes, rank)
    if len(added) < len(axes):
        return None
    rest = iter(shape)
    return [one() if i in added else next(rest) for i in range(rank)]


def broadcast(shapes: Sequence[Sequence[T]], join: Callable[[list[T]], T]) -> list[T]:
    """NumPy's rule: shapes are aligned at their last axes; join: the sizes of one."""
    rank = max(map(len, shapes), default=0)
    aligned = [
        [shape[i] for shape in shapes if -i <= len(shape)] for i in range(-rank, 0)
    ]
    return [join(sizes) for sizes in aligned]


def _places(axes: Collection[int], rank: int) -> set[int]:
    return {axis % max(rank, 1) for axis in axes}
