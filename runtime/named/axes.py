"""Check and align named axes; errors for those that do not match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from burnish.errors import InputError

Names = Sequence[str]
Sizes = Mapping[str, int]


def different(names: Names) -> bool:
    """Whether these are words, none of them twice."""
    return all(isinstance(n, str) for n in names) and len({*names}) == len(names)


def axis(sizes: Sizes, name: str, where: str) -> int:
    """The place of a name."""
    if name not in sizes:
        raise InputError(
            f"{where}: expected a name out of {listed(sizes)}, got {name!r}"
        )
    return [*sizes].index(name)


def axes(sizes: Sizes, names: Names, where: str) -> tuple[int, ...]:
    """The places of different names."""
    if not different(names):
        raise InputError(f"{where}: expected different names, got {listed(names)}")
    return tuple(axis(sizes, name, where) for name in names)


def check_sizes(left: Sizes, right: Sizes, where: str) -> None:
    """Raise InputError where a name that both have has two sizes."""
    for name, size in left.items():
        if right.get(name, size) != size:
            raise InputError(
                f"{where}: expected one size of {name!r}, got {listed_sizes(left)} and "
                f"{listed_sizes(right)}"
            )


def common(left: Sizes, right: Sizes, where: str) -> Names:
    """The names of a result: the longer side's, among which all others have to be."""
    few, many = sorted((left, right), key=len)
    if extra := [name for name in few if name not in many]:
        raise InputError(
            f"{where}: expected the names of one side among the other's, got "
            f"{listed_sizes(left)} and {listed_sizes(right)}; "
            f"{listed(extra)} is not among {listed(many)}"
        )
    check_sizes(left, right, where)
    return [*left] if len(left) == len(many) else [*many]


def listed(names: Iterable[Any]) -> str:
    """Names in a message."""
    return ", ".join(map(repr, names)) or "none"


def listed_sizes(sizes: Sizes) -> str:
    """Names with their sizes in a message."""
    return f"({', '.join(f'{name} {size}' for name, size in sizes.items())})"
