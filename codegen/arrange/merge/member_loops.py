"""Members with counted names, or items of a list, are made and called by loops.

`denselayer1` to `denselayer24` keep their names, which are those of their weights; a
person writes `{f"denselayer{i + 1}": DenseLayer(64 + 32 * i) for i in range(24)}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from burnish.codegen.arrange.merge.progressions import progression
from burnish.codegen.arrange.rerolling.members import (
    Row,
    looped,
    looped_in_part,
    looped_together,
    on_demand,
)
from burnish.codegen.arrange.scopes.group_kind import singular
from burnish.codegen.errors import Explain
from burnish.codegen.program import (
    Assign,
    BinOp,
    Block,
    Call,
    ClassPlan,
    Expression,
    Keyed,
    ListOrTuple,
    Literal,
    Loop,
    Method,
    ModuleCall,
    Name,
    Numbered,
    Repeat,
    SelfAttr,
    callee,
    every_expression,
)

_COUNTED = re.compile(r"([A-Za-z_][\w-]*?)(\d+)", re.ASCII)
_FEW_LAYERS = 4
"""Fewer layers of the library, one line each, read better written out."""


@dataclass(frozen=True)
class _Family:
    """Members in order: their names' stem and first number, or a list's name and -1.

    item: the constructor of each, in terms of its number; of a list whose items are
    made unlike each other, the first one's.
    """

    stem: str
    first: int
    paths: tuple[tuple[str | int, ...], ...]
    item: Expression
    alike: bool = True

    def made(self) -> Repeat:
        """The constructor of all members."""
        name = None if self.first < 0 else numbered(self.stem, self.first)
        return Repeat(self.item, Literal(len(self.paths)), name)


def numbered(stem: str, first: int) -> Numbered:
    """`f"stem{i}"`, where numbers start at 0, else `f"stem{i + 1}"`."""
    index: Expression = Name("i")
    return Numbered(stem, BinOp("+", index, Literal(first)) if first else index)


def with_loops(plan: ClassPlan, explain: Explain) -> ClassPlan:
    """The class with loops over members that are made and called alike."""
    whole = _whole(plan)
    left: list[_Family] = []
    for family in [*_lists(plan), *([whole] if whole else [])]:
        block = None
        if len(family.paths) >= _least(family.item):
            block = looped(plan.block, [_row(family)])
            if block is None and family.first < 0:
                block = looped(on_demand(plan.block), [_row(family)])
        if block is None:
            left.append(family)
            continue
        explain(
            f"class {plan.name}: {len(family.paths)} parts named {family.stem}"
            " run alike: one loop"
        )
        plan = replace(plan, block=block)
        if family is whole:
            begin = Method(Name("super()"), "__init__", (family.made(),))
            plan = replace(plan, base="nn.ModuleDict", members=[("", begin)])
        else:
            plan = _made(plan, family)
    return _with_parts(*_with_pairs(plan, left, explain))


def _with_pairs(
    plan: ClassPlan, families: list[_Family], explain: Explain
) -> tuple[ClassPlan, list[_Family]]:
    """The class with loops over several lists at once, and the families left over."""
    rows = {family.stem: _row(family) for family in families if family.first < 0}
    known = {family.stem: family for family in families}
    while len(rows) > 1 and (found := looped_together(plan.block, [*rows.values()])):
        block, used = found
        plan = replace(plan, block=block)
        for name in [name for name, row in rows.items() if row in used]:
            plan = _made(plan, known.pop(name))
            del rows[name]
            if name in _counted(block):
                plan = _fixed(plan, name)
        names = ", ".join(str(row.paths[0][0]) for row in used)
        explain(f"class {plan.name}: {names} run alike: one loop")
    return plan, [*known.values()]


def _with_parts(plan: ClassPlan, families: list[_Family]) -> ClassPlan:
    """The class with loops over parts of lists; other items are called one by one."""
    for family in families:
        block = None
        if family.first < 0:
            block = looped_in_part(plan.block, _row(family))
        if block is not None:
            plan = replace(_made(plan, family), block=block)
        plan = _fixed(plan, family.stem)
    return plan


def _row(family: _Family) -> Row:
    return Row(family.paths, _each(family), singular(family.stem))


def _made(plan: ClassPlan, family: _Family) -> ClassPlan:
    """The class whose list is made by one expression, where it can be."""
    made = family.made()
    return plan.changed(family.stem, lambda _: made) if family.alike else plan


def as_sequential(plan: ClassPlan) -> Call | None:
    """The Sequential that replaces a class which only chains its members."""
    if plan.base != "nn.ModuleDict" or len(plan.inputs) != 1 or len(plan.members) != 1:
        return None
    match plan.block.statements:
        case [
            Loop(
                carried=(x,),
                initial=(first,),
                index=part,
                body=Block(statements=[Assign(expression=ModuleCall() as call)]),
            ) as loop
        ]:
            calls = call.target is part and call.inputs == (x,)
            plain = first is plan.inputs[0] and plan.block.results == [loop.targets[0]]
            begin = plan.members[0][1]
            if calls and plain and isinstance(begin, Method):
                return Call("nn.Sequential", begin.args)
    return None


def counted(made: Expression) -> Expression:
    """The constructor with comprehensions for dicts with counted names."""
    made = made.rebuilt(counted)
    if not isinstance(made, Keyed):
        return made
    names = [name for name, _ in made.items]
    found = _numbers(names)
    item = progression([part for _, part in made.items])
    if found is None or item is None or len(names) < _least(item):
        return made
    return Repeat(item, Literal(len(names)), numbered(*found))


def _each(family: _Family) -> Expression:
    """The iterable of a loop over the family."""
    if family.first < 0:
        return SelfAttr((family.stem,))
    return Method(Name("self"), "values")


def _lists(plan: ClassPlan) -> Iterator[_Family]:
    for name, made in plan.members:
        items: tuple[Expression, ...] = ()
        match made:
            case ListOrTuple(items=items):
                pass
            case Repeat(item=item, count=Literal(value=int() as count)):
                items = (item,) * count if name in _counted(plan.block) else ()
        if len(items) < 2:
            continue
        paths = tuple((name, place) for place in range(len(items)))
        found = progression(items)
        if found is not None:
            yield _Family(name, -1, paths, found)
        elif all(map(_is_own, items)):
            yield _Family(name, -1, paths, items[0], alike=False)


def _counted(block: Block) -> set[str | int]:
    """The lists whose items are called by index."""
    own = (e for e in every_expression(block) if isinstance(e, SelfAttr))
    return {e.path[0] for e in own if len(e.path) > 1}


def _fixed(plan: ClassPlan, name: str) -> ClassPlan:
    """The class with a list's length as fixed: its items are called one by one."""
    return plan.changed(
        name, lambda m: replace(m, fixed=True) if isinstance(m, Repeat) else m
    )


def _whole(plan: ClassPlan) -> _Family | None:
    """The family of all members of a class; None where they are several."""
    names = [name for name, _ in plan.members]
    found = _numbers(names) if len(names) > 1 else None
    item = progression([made for _, made in plan.members]) if found else None
    if found is None or item is None or len(names) < _least(item):
        return None
    return _Family(*found, tuple((name,) for name in names), item)


def _least(item: Expression) -> int:
    return 2 if _is_own(item) else _FEW_LAYERS


def _is_own(item: Expression) -> bool:
    """Whether it is a module of a class of the model's own."""
    return bool(callee(item)) and not callee(item).startswith("nn.")


def _numbers(names: Sequence[str]) -> tuple[str, int] | None:
    """The stem and the first number of names that count up from 0 or 1."""
    matches = [_COUNTED.fullmatch(name) for name in names]
    if not matches or matches[0] is None:
        return None
    stem, first = matches[0][1], int(matches[0][2])
    wanted = [f"{stem}{first + i}" for i in range(len(names))]
    return (stem, first) if first in (0, 1) and wanted == list(names) else None
