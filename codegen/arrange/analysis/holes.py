"""Holes: expression nodes in the places of a class's sizes and switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from burnish.codegen.program import (
    Call,
    ClassPlan,
    Expression,
    ListOrTuple,
    Literal,
    Method,
    Name,
    every_expression,
    walk,
)

Parameters = Mapping[str, list[str]]
"""The constructor's arguments of each class of the source."""

Defaults = Mapping[str, Mapping[str, object]]
"""Defaults of the arguments of generated classes, by class and argument."""


@dataclass(frozen=True)
class Slot:
    """A place of a size: its attribute, and the callee's name for it.

    place: of several under one name, such as a shape's. attribute "": in the forward.
    default: the callee's default. call: which of the forward's reshapes, and
    rank: to how many axes. callee: whose constructor it is.
    """

    attribute: str
    parameter: str
    place: int = 0
    default: object = None
    call: int = 0
    rank: int = 0
    callee: str = ""


@dataclass(frozen=True, eq=False)
class Hole(Expression):
    """A size, switch or function under consideration; two holes are never equal.

    value: what the class has there. is_implied: the callee's default, not written.
    """

    slot: Slot
    value: Any
    is_implied: bool = False


@dataclass(frozen=True, eq=False)
class Switch(Expression):
    """Whether a merged class has an optional part; two switches are never equal."""


@dataclass(frozen=True, eq=False)
class FunctionSwitch(Switch):
    """A layer without weights whose class is under consideration: which activation."""


def holes_in(plan: ClassPlan) -> Iterator[Hole]:
    """The holes of an opened class; in one order for all classes of one structure."""
    for _, made in plan.members:
        yield from (part for part in walk(made) if isinstance(part, Hole))
    inner = every_expression(plan.block)
    yield from (part for part in inner if isinstance(part, Hole))


def filled(plan: ClassPlan, value: Callable[[Hole], Expression]) -> ClassPlan:
    """An opened class with expressions in place of its holes.

    An implied argument that equals the callee's default is left out again.
    """

    def fill(part: Expression) -> Expression:
        if isinstance(part, Hole):
            return value(part)
        made = part.rebuilt(fill)
        match part, made:
            case Call(options=before), Call(options=after):
                return replace(made, options=_written(before, after))
            case Method(options=before), Method(options=after):
                return replace(made, options=_written(before, after))
            case ListOrTuple(items=before, brackets="()"), ListOrTuple(items=after):
                if not _are_literals(before) and _are_literals(after):
                    return Literal(tuple(item.value for item in after))  # type: ignore[attr-defined]
        return made

    members = [(name, fill(made)) for name, made in plan.members]
    return replace(plan, members=members, block=plan.block.rebuilt(fill))


_Options = tuple[tuple[str, Expression], ...]


def _written(before: _Options, after: _Options) -> _Options:
    """The options without implied ones that equal the default."""
    return tuple(
        option
        for (_, hole), option in zip(before, after, strict=True)
        if not (
            isinstance(hole, Hole) and hole.is_implied and _is_default(hole, option)
        )
    )


def _is_default(hole: Hole, option: tuple[str, Expression]) -> bool:
    value = option[1]
    return isinstance(value, Literal) and bool(value.value == hole.slot.default)


def _are_literals(items: tuple[Expression, ...]) -> bool:
    return all(isinstance(item, Literal) for item in items)


def as_expression(value: Any) -> Expression:
    """A size, a switch or the name of a function, as it is written."""
    return Name(value) if isinstance(value, str) else Literal(value)
