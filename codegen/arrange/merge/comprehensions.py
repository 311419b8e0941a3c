"""Equal constructors in a row become a comprehension: `*[Block(64) for _ in range(5)]`.

The last phase: the phases before it read every part as an expression of its own.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from burnish.codegen.arrange.merge.progressions import progression
from burnish.codegen.program import (
    BinOp,
    Call,
    Expression,
    ListOrTuple,
    Literal,
    Method,
    Name,
    Repeat,
    UnaryOp,
    callee,
    walk,
)

_EQUAL = 3
_GROWING = 4
"""Shorter runs are written out: a loop over two items reads worse than both."""
_ASKED = frozenset(("==", ">"))


def with_runs(made: Expression) -> Expression:
    """The constructor with comprehensions for equal parts in a row."""
    made = made.rebuilt(with_runs)
    match made:
        case Call(function="nn.Sequential", args=parts):
            return replace(made, args=_rolled(parts))
        case Method(target=Name(text="super()"), args=parts):
            return replace(made, args=_rolled(parts))
        case ListOrTuple(items=parts, brackets="[]"):
            rolled = _rolled(parts)
            if len(rolled) == 1 and isinstance(rolled[0], UnaryOp):
                return rolled[0].operand
            return replace(made, items=rolled)
    return made


def _rolled(parts: tuple[Expression, ...]) -> tuple[Expression, ...]:
    words = [repr(part) for part in parts]
    rolled: list[Expression] = []
    start = 0
    while start < len(parts):
        end = start + 1
        while end < len(parts) and words[end] == words[start]:
            end += 1
        item: Expression | None = parts[start] if end - start >= _EQUAL else None
        if item is None:
            end, item = _growing(parts, start)
        if item is None or not isinstance(item, Call):
            rolled.append(parts[start])
            start += 1
        else:
            rolled.append(UnaryOp("*", Repeat(item, Literal(end - start))))
            start = end
    return tuple(rolled)


def _growing(
    parts: tuple[Expression, ...], start: int
) -> tuple[int, Expression | None]:
    """The end of the longest run from `start` whose sizes grow, and its constructor.

    All parts of one class are tried at its first: sizes may start again within them.
    Where every few parts in a row grow alike, all of them do.
    """
    if start == 0 or callee(parts[start - 1]) != callee(parts[start]):
        alike = itertools.takewhile(
            lambda part: callee(part) == callee(parts[start]), parts[start:]
        )
        whole = tuple(alike)
        if len(whole) >= _GROWING and _grow(whole):
            return start + len(whole), progression(whole)
    end = start + _GROWING
    while end <= len(parts) and _grow(parts[end - _GROWING : end]):
        end += 1
    if end == start + _GROWING:
        return start, None
    return end - 1, progression(parts[start : end - 1])


def _grow(parts: tuple[Expression, ...]) -> bool:
    item = progression(parts)
    return item is not None and not any(
        isinstance(e, BinOp) and e.operator in _ASKED for e in walk(item)
    )
