"""Rewrite classes with constructor arguments for sizes, leaf classes first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import lcm

from burnish.codegen.arrange.analysis.holes import Hole, filled
from burnish.codegen.arrange.analysis.shape_contracts import contract
from burnish.codegen.arrange.hyperparams.head_reshapes import by_heads
from burnish.codegen.arrange.hyperparams.names import HALF, HEAD_DIM, ORDER, kind
from burnish.codegen.arrange.hyperparams.scales import scaled
from burnish.codegen.arrange.hyperparams.size_classes import Node, Ties
from burnish.codegen.names.identifier import Identifier, free
from burnish.codegen.program import (
    BinOp,
    Block,
    Call,
    ClassPlan,
    Expression,
    Literal,
    Name,
    SelfAttr,
    Value,
    every_expression,
    walk,
)
from burnish.codegen.symbolic.terms import Term

_DERIVED = BinOp("//", Name("dim"), Name("heads"))
_HALVED = Term((HEAD_DIM,), over=2)


_ABOUT = {
    "dim": "dim features",
    "depth": "depth layers",
    "heads": "heads of attention",
    "kv_heads": "kv_heads of keys and values",
    HEAD_DIM: "head_dim features in each",
    "hidden": "hidden features between",
    "width": "width of an embedding",
    "vocab": "vocab words",
    "positions": "positions at most",
    "classes": "classes",
    "outputs": "outputs",
}


@dataclass
class Arguments:
    """The arguments, the file's values, and their uses.

    terms: the term of each size, by its union-find root in `ties`. needed: the
    arguments of the classes that are written.
    """

    values: dict[str, int]
    terms: dict[Node, Term]
    ties: Ties
    needed: dict[str, list[str]] = field(default_factory=dict)

    def parts(self) -> int:
        """Into how many equal parts the width of a head is cut."""
        return lcm(*(t.over for t in self.terms.values() if t.names == (HEAD_DIM,)))

    def term(self, node: Node) -> Term | None:
        return self.terms.get(self.ties.find(node))


def write(classes: list[ClassPlan], arguments: Arguments) -> None:
    """Give every class the arguments that it and its parts need, in place."""
    for plan in classes:
        _Writer(plan, arguments, plan is classes[-1]).run()


def _place(name: str) -> tuple[int, str]:
    """A sort key for the order of arguments."""
    return ORDER.index(kind(name)), name


def _about(names: Iterable[str]) -> str:
    """Describe arguments in their order: "dim features, depth layers"."""
    kinds = groupby(names, kind)
    return ", ".join(_ABOUT[k].replace(k, " and ".join(each), 1) for k, each in kinds)


class _Writer:
    """Writes one class."""

    def __init__(self, plan: ClassPlan, arguments: Arguments, is_model: bool):
        self.plan = plan
        self.arguments = arguments
        self.is_model = is_model
        self.attributes = {attribute for attribute, _ in plan.members}
        self.own: set[str] = set()
        self.names_of: dict[str, str] = {}

    def run(self) -> None:
        plan = self.plan
        made = filled(self.arguments.ties.opened[plan.name][0], self._size)
        block = scaled(made.block, plan, self.arguments.values, self._held)
        block = by_heads(block, self._attribute(HEAD_DIM), self._count)
        members = [(name, self._passed_on(part)) for name, part in made.members]
        held = self._read(block)
        uses = sum(_is_head_dim(e) for _, part in members for e in walk(part))
        if HEAD_DIM not in held and self._is_derived() and uses + (HALF in held) > 1:
            self._attribute(HEAD_DIM)
            held.append(HEAD_DIM)
        self._contract()
        plan.block = block
        plan.members = [*self._kept(held), *self._spelled_out(members, held)]
        names = sorted(self.own, key=_place)
        plan.parameters = [*names, *plan.parameters]
        self.arguments.needed[plan.name] = names
        if self.is_model:
            values = {name: self.arguments.values[name] for name in names}
            plan.defaults = values | plan.defaults
            plan.about = _about(names) if len(names) > 1 else ""
            cuts = [
                (name, heads, self.arguments.parts())
                for name in names
                if kind(name) == "dim"
                for heads in dict.fromkeys((name.replace("dim", "heads"), "heads"))
            ]
            plan.divided = [
                (whole, by, times)
                for whole, by, times in (*cuts, ("heads", "kv_heads", 1))
                if {whole, by} <= values.keys()
                and values[whole] % (values[by] * times) == 0
            ]

    # --- sizes ---

    def _size(self, hole: Hole) -> Expression:
        """The expression for a hole: a literal, an argument, a product of arguments."""
        term = self.arguments.term(hole)
        if term is None or set(term.names) & set(self.plan.parameters):
            return Literal(hole.value)
        if hole.slot.attribute:
            self.own.update(term.names)
            return term.spelled(Name)
        return self._held(HALF) if term == _HALVED else term.spelled(self._held)

    def _attribute(self, name: str) -> str:
        """The name of the attribute in which the module keeps an argument."""
        if name not in self.names_of:
            self.names_of[name] = free(Identifier(name), self.attributes)
        return self.names_of[name]

    def _held(self, name: str) -> Expression:
        """An argument as the forward reads it."""
        return SelfAttr((self._attribute(name),))

    def _count(self, value: Value, axis: int) -> Expression | None:
        """The argument that says how many heads an axis is."""
        term = self.arguments.term(("dim", id(value), axis))
        heads = (Term(("heads",)), Term(("kv_heads",)))
        return self._held(term.names[0]) if term in heads else None

    def _read(self, block: Block) -> list[str]:
        """The arguments that the forward reads."""
        read = {
            expression.path[0]
            for expression in every_expression(block)
            if isinstance(expression, SelfAttr)
        }
        return [name for name, attribute in self.names_of.items() if attribute in read]

    # --- parts ---

    def _passed_on(self, made: Expression) -> Expression:
        """A constructor call that passes the arguments which inner classes need."""
        made = made.rebuilt(self._passed_on)
        if not isinstance(made, Call):
            return made
        names = self.arguments.needed.get(made.function)
        if not names:
            return made
        self.own.update(names)
        return replace(made, args=(*map(Name, names), *made.args))

    # --- attributes ---

    def _is_derived(self) -> bool:
        """Whether the width of a head is to be worked out here."""
        if HEAD_DIM in self.arguments.values:
            return False
        return self.is_model or bool(self.own & {"dim", "heads"})

    def _kept(self, held: list[str]) -> list[tuple[str, Expression]]:
        """Attributes for the sizes that the forward reads."""
        self.own.update(HEAD_DIM if name == HALF else name for name in held)
        values: dict[str, Expression] = {name: Name(name) for name in held}
        if HEAD_DIM in self.own and self._is_derived():
            self.own -= {HEAD_DIM}
            self.own |= {"dim", "heads"}
            values[HEAD_DIM] = _DERIVED
        if HALF in held:
            whole = self._held(HEAD_DIM) if HEAD_DIM in held else values.get(HEAD_DIM)
            values[HALF] = BinOp("//", whole or Name(HEAD_DIM), Literal(2))
        return [
            (self.names_of[name], values[name]) for name in sorted(held, key=_place)
        ]

    def _spelled_out(
        self, members: list[tuple[str, Expression]], held: list[str]
    ) -> list[tuple[str, Expression]]:
        """Constructors without the width of a head, where that is no argument."""
        if HEAD_DIM in self.own:
            return members
        known = self._held(HEAD_DIM) if HEAD_DIM in held else _DERIVED

        def spelled(made: Expression) -> Expression:
            if _is_head_dim(made):
                return known
            return made.rebuilt(spelled)

        return [(name, spelled(made)) for name, made in members]

    # --- contracts ---

    def _contract(self) -> None:
        """The class's contract, with arguments where it had their numbers."""
        plan = self.plan
        results = [value for value in plan.block.results if isinstance(value, Value)]
        if len(results) == len(plan.block.results):
            before, after = map(self._shaped, plan.inputs), map(self._shaped, results)
            renamed, usual = contract(before, after), contract(plan.inputs, results)
            plan.contract = _replaced(plan.contract, usual, renamed)

    def _shaped(self, value: Value) -> Value:
        """The value with arguments for sizes in its shape."""
        if value.shape is None:
            return value
        terms = (
            (size, self.arguments.term(("dim", id(value), axis)))
            for axis, size in enumerate(value.shape)
        )
        shape = tuple(size if term is None else str(term) for size, term in terms)
        return replace(value, shape=shape)


def _is_head_dim(made: Expression) -> bool:
    return isinstance(made, Name) and made.text == HEAD_DIM


_SIZES = re.compile(r"[^(),]+")


def _replaced(contract: str, usual: str, renamed: str) -> str:
    """The contract with the renamed shapes."""
    if contract == usual:
        return renamed
    sizes, others, names = (_SIZES.findall(t) for t in (contract, usual, renamed))
    if not len(sizes) == len(others) == len(names):
        return contract
    known = iter(
        name if size == other else size
        for size, other, name in zip(sizes, others, names, strict=True)
    )
    return _SIZES.sub(lambda _: next(known), contract)
