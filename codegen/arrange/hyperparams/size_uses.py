"""Every use of a size in all classes, by equivalence class, with the names chosen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from burnish.codegen.arrange.analysis.holes import Slot
from burnish.codegen.arrange.hyperparams.propagate import read
from burnish.codegen.arrange.hyperparams.size_classes import Node
from burnish.codegen.program import ClassPlan, called_by, demand_order
from burnish.codegen.symbolic.terms import Term

FEATURES = frozenset(
    ("in_features", "out_features", "normalized_shape", "embedding_dim")
)
_CHANNELS = frozenset(("in_channels", "out_channels"))


@dataclass(frozen=True)
class Use:
    """A size in its place."""

    plan: ClassPlan
    slot: Slot


class SizeUses:
    """Sizes by their union-find root, and the names chosen so far.

    values: the arguments' values. terms: the term of each size. uses: the slots of each
    size; beside: the other sizes of the same reshape. by_number: equal numbers of
    features are one size; used where no data flow shows which are equal.
    """

    def __init__(self, classes: list[ClassPlan], by_number: bool):
        self.classes = classes
        self.ties = read(classes)
        self.values: dict[str, int] = {}
        self.terms: dict[Node, Term] = {}
        self.uses: dict[Node, list[Use]] = defaultdict(list)
        self.beside: dict[tuple[str, int], list[Node]] = defaultdict(list)
        opened = self.ties.opened
        holes = [(plan, hole) for plan in classes for hole in opened[plan.name][1]]
        first: dict[int, Node] = {}
        for _, hole in holes if by_number else ():
            if hole.slot.parameter in FEATURES:
                self.ties.same(first.setdefault(hole.value, hole), hole)
        for plan, hole in holes:
            root = self.ties.find(hole)
            self.uses[root].append(Use(plan, hole.slot))
            self.beside[plan.name, hole.slot.call].append(root)

    @cached_property
    def towers(self) -> dict[str, str]:
        """The first word of the model's attribute that holds a class; "" for two."""
        calls = {plan.name: plan.calls() for plan in self.classes}
        words: dict[str, str] = {}
        for attribute, made in self.classes[-1].members:
            inner = demand_order(called_by([made]), lambda name: calls.get(name, ()))
            word = attribute.partition("_")[0]
            words.update({name: "" if name in words else word for name in inner})
        return words

    def call(self, root: Node, name: str) -> None:
        """Give a size a name, unless the name has another number."""
        number = self.number(root)
        if self.values.setdefault(name, number) == number:
            self.terms[self.ties.find(root)] = Term((name,))

    def roots(self) -> Iterator[tuple[Node, list[Use], int]]:
        """Roots without a name, with their uses and numbers."""
        for root, uses in self.uses.items():
            number = self.ties.of(root)
            if self.ties.find(root) == root and root not in self.terms and number:
                yield root, uses, number

    def of_one_number(self, fits: Callable[[list[Use], int], bool]) -> list[Node]:
        """The sizes without a name that fit, where they all have one number."""
        found = {root: size for root, uses, size in self.roots() if fits(uses, size)}
        return list(found) if len(set(found.values())) == 1 else []

    def number(self, node: Node) -> int:
        """The number of a size that is known to have one."""
        number = self.ties.of(node)
        assert number is not None
        return number

    def join(self, one: Node, other: Node) -> None:
        """Two sizes are one from now on."""
        uses = self.uses.pop(other, [])
        self.ties.same(one, other)
        self.uses[one] += uses

    def may_be(self, uses: list[Use], dim: Node) -> bool:
        """Whether a size with the width's number is the width: not beside it."""
        calls = {(use.plan.name, use.slot.call) for use in uses if use.slot.call}
        return not any(
            self.ties.find(root) == dim for call in calls for root in self.beside[call]
        ) and all(
            use.slot.parameter in FEATURES | _CHANNELS
            or (use.slot.parameter == "reshape" and not use.slot.attribute)
            or (use.slot.parameter == "size" and use.slot.place > 0)
            for use in uses
        )

    def is_embedded(self, root: Node) -> bool:
        """Whether an embedding is so wide."""
        return any(use.slot.parameter == "embedding_dim" for use in self.uses[root])
