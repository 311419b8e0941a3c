"""Sizes that tie a whole model together become arguments, from the model down.

dim, depth, heads, hidden, vocab, classes: what people call them, with the file's values
as the model's defaults.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from burnish.codegen.arrange.contracts import contract
from burnish.codegen.arrange.dims import Node, Sizes
from burnish.codegen.arrange.heads import Split, by_heads, splits
from burnish.codegen.arrange.slots import Slot, changed, slots_of
from burnish.codegen.errors import Explain
from burnish.codegen.program import (
    Call,
    ClassPlan,
    Expression,
    Infix,
    Literal,
    Name,
    Own,
    Repeat,
    Value,
    walk,
)

_ORDER = ("dim", "depth", "heads", "hidden", "vocab", "classes", "outputs")
_FEATURES = frozenset(
    ("in_features", "out_features", "normalized_shape", "embedding_dim")
)
_WIDTH = frozenset(("normalized_shape", "embedding_dim"))
_CLASSES = re.compile("logit|class|prob|score")
_WORDS = re.compile("word|tok|wte|^embed")
_HEAD = re.compile("(.*_)?(head|fc|classifier|logits)$")
_UNTOLD = re.compile(r"(out|output|result|y)?s?[\d_.]*$")
_LEAST = 4
"""A size is the width of a model where it stands in so many places."""


@dataclass(frozen=True)
class _Use:
    plan: ClassPlan
    place: int
    slot: Slot


def with_arguments(
    classes: list[ClassPlan],
    outputs: list[str],
    explain: Explain,
    by_number: bool = False,
) -> None:
    """Give the classes arguments for the sizes that tie them together, in place.

    outputs: what the file calls the model's results. by_number: features of one number
    are the same size, where no data flow tells which are.
    """
    _Arguments(classes, outputs, by_number).run(explain)


class _Arguments:
    def __init__(self, classes: list[ClassPlan], outputs: list[str], by_number: bool):
        self.classes = classes
        self.tells_apart = any(_CLASSES.search(name.lower()) for name in outputs)
        self.untold = any(_UNTOLD.match(name.lower()) for name in outputs)
        self.sizes = Sizes(classes)
        self.parameters = self.sizes.parameters
        self.values: dict[str, int] = {}
        self.named: dict[Node, str] = {}
        self.uses: dict[Node, list[_Use]] = defaultdict(list)
        self.beside: dict[tuple[str, int], list[Node]] = defaultdict(list)
        if by_number:
            self._tie()
        for plan in classes:
            for place, (slot, _) in enumerate(slots_of(plan, self.parameters)):
                root = self.sizes.find(("slot", plan.name, place))
                self.uses[root].append(_Use(plan, place, slot))
                self.beside[plan.name, slot.call].append(root)
        self.splits: dict[str, list[Split]] = {}
        self.depths = list(self._repeats())

    def _tie(self) -> None:
        """Let features of one number be one size."""
        first: dict[int, Node] = {}
        for plan in self.classes:
            for place, (slot, size) in enumerate(slots_of(plan, self.parameters)):
                if slot.parameter in _FEATURES:
                    node = ("slot", plan.name, place)
                    self.sizes.same(first.setdefault(size, node), node)

    def run(self, explain: Explain) -> None:
        self._width()
        self._vocabulary()
        self._results()
        told = any("depth" in plan.parameters for plan in self.classes)
        if len(self.depths) == 1 and "dim" in self.values and not told:
            self.values["depth"] = self.depths[0]
        if not self.values:
            return
        counts = dict.fromkeys(self.values, 0)
        for root, name in self.named.items():
            counts[name] = counts.get(name, 0) + len(self.uses[root])
        needed: dict[str, list[str]] = {}
        for plan in self.classes:
            needed[plan.name] = self._given(plan, needed)
        for name in sorted(self.values, key=_ORDER.index):
            where = f", in {counts[name]} places" if counts.get(name) else ""
            explain(f"argument {name}={self.values[name]}{where}")

    # --- which sizes have a name ---

    def _call(self, root: Node, name: str) -> None:
        self.named[root] = name
        self.values[name] = self.sizes.number[root]

    def _roots(self) -> Iterator[tuple[Node, list[_Use], int]]:
        for root, uses in self.uses.items():
            if root not in self.named and root in self.sizes.number:
                yield root, uses, self.sizes.number[root]

    def _width(self) -> None:
        """The size of the features that norms and embeddings have, and what follows."""
        wide = [
            (sum(u.slot.parameter in _FEATURES for u in uses), root)
            for root, uses, _ in self._roots()
            if any(u.slot.parameter in _WIDTH for u in uses)
        ]
        wide.sort(key=lambda each: -each[0])
        if not wide or wide[0][0] < _LEAST:
            return
        if len(wide) > 1 and 2 * wide[1][0] >= wide[0][0]:
            return  # stages, each of a width of its own
        dim = wide[0][1]
        number = self.sizes.number[dim]
        for root, uses, size in list(self._roots()):
            if size == number and root != dim and self._may_be(uses, dim):
                self.sizes.same(dim, root)
                self.named[root] = "dim"
        self._call(dim, "dim")
        self._hidden(number)
        self._heads(number)

    def _may_be(self, uses: list[_Use], dim: Node) -> bool:
        """Whether a size with the width's number is the width: not beside it."""
        calls = {(u.plan.name, u.slot.call) for u in uses if u.slot.call}
        return not any(dim in self.beside[call] for call in calls) and all(
            u.slot.parameter in _FEATURES
            or (u.slot.parameter == "reshape" and not u.slot.attribute)
            or (u.slot.parameter == "size" and u.slot.place > 0)
            for u in uses
        )

    def _hidden(self, dim: int) -> None:
        """What a layer widens to and the next one takes."""
        found: dict[int, list[Node]] = defaultdict(list)
        for root, uses, size in self._roots():
            kinds = {u.slot.parameter for u in uses}
            if kinds == {"in_features", "out_features"} and size != dim:
                found[size].append(root)
        if len(found) == 1:
            for root in next(iter(found.values())):
                self._call(root, "hidden")

    def _heads(self, dim: int) -> None:
        """How many parts attention cuts the width into."""
        found = {plan.name: list(splits(plan, dim)) for plan in self.classes}
        counts = {split.heads for each in found.values() for split in each}
        if len(counts) == 1 and (heads := counts.pop()) > 1:
            self.splits = found
            self.values["heads"] = heads

    def _vocabulary(self) -> None:
        """How many ids an embedding knows, where it is none of positions or types."""
        found = [
            (root, size, any(_WORDS.search(u.slot.attribute) for u in uses))
            for root, uses, size in self._roots()
            if any(_is_vocabulary(u.slot) for u in uses)
        ]
        if len(found) > 1:
            found = [each for each in found if each[2]]
        if len(found) != 1:
            return
        root, vocab, _ = found[0]
        for other, uses, size in list(self._roots()):
            if size == vocab and {u.slot.parameter for u in uses} <= {"out_features"}:
                self.named[other] = "vocab"
        self._call(root, "vocab")

    def _results(self) -> None:
        """How many classes the last layer tells apart, or how many numbers it gives."""
        _, results = self.sizes.outlines[self.classes[-1].name]
        ends = {self.sizes.find(dims[-1]) for dims in results if dims}
        for root, uses, _ in list(self._roots()):
            kinds = {u.slot.parameter for u in uses}
            told = self.tells_apart or all(_HEAD.match(u.slot.attribute) for u in uses)
            if {root} == ends and kinds == {"out_features"} and told:
                classes = self.tells_apart or self.untold
                self._call(root, "classes" if classes else "outputs")

    def _repeats(self) -> Iterator[int]:
        for plan in self.classes:
            for _, made in plan.members:
                for part in walk(made):
                    if isinstance(part, Repeat) and isinstance(part.count, Literal):
                        yield part.count.value

    # --- classes with arguments ---

    def _given(self, plan: ClassPlan, needed: dict[str, list[str]]) -> list[str]:
        """Write the class with its arguments; their names."""
        own: set[str] = set()
        held: set[str] = set()
        places = count()

        def size(slot: Slot, number: int) -> Expression:
            name, times = self._name(("slot", plan.name, next(places)), slot, number)
            clash = not slot.attribute and name in attributes
            if name is None or name in plan.parameters or clash:
                return Literal(number)
            own.add(name)
            if not slot.attribute:
                held.add(name)
            said: Expression = Name(name) if slot.attribute else Own((name,))
            return said if times == 1 else Infix("*", Literal(times), said)

        def deep(made: Expression) -> Expression:
            made = made.rebuilt(deep)
            if not isinstance(made, Repeat) or not isinstance(made.count, Literal):
                return made
            if "depth" not in self.values:
                return made
            own.add("depth")
            return replace(made, count=Name("depth"))

        attributes = {attribute for attribute, _ in plan.members}
        taken = attributes & {"heads", "head_dim"}
        cut = [] if taken else self.splits.get(plan.name, [])
        made = changed(plan, self.parameters, size)
        members: list[tuple[str, Expression]] = []
        if cut and "heads" in self.values:
            own.add("heads")
            held.add("heads")
            made.block = by_heads(made.block, cut)
            if any(split.is_open for split in cut):
                own.add("dim")
                members.append(("head_dim", Infix("//", Name("dim"), Name("heads"))))
        for name, part in made.members:
            members.append((name, _passed_on(deep(part), needed, own)))
        names = sorted(own, key=_ORDER.index)
        self._contract(plan)
        kept = sorted(held, key=_ORDER.index)
        plan.members = [*((name, Name(name)) for name in kept), *members]
        plan.block = made.block
        plan.parameters = [*names, *plan.parameters]
        if plan is self.classes[-1]:
            plan.defaults = {n: self.values[n] for n in names} | plan.defaults
        return names

    def _name(self, node: Node, slot: Slot, number: int) -> tuple[str | None, int]:
        """The argument that a size is, and how often."""
        name = self.named.get(self.sizes.find(node))
        dim = self.values.get("dim")
        if name is None and dim and number == 3 * dim and slot.parameter in _FEATURES:
            return "dim", 3
        return name, 1

    def _contract(self, plan: ClassPlan) -> None:
        """The class's contract, with arguments where it had their numbers."""
        results = [value for value in plan.block.results if isinstance(value, Value)]
        usual = contract(plan.inputs, results)
        if plan.contract != usual or len(results) < len(plan.block.results):
            return
        plan.contract = contract(map(self._told, plan.inputs), map(self._told, results))

    def _told(self, value: Value) -> Value:
        if value.shape is None:
            return value
        shape = tuple(
            self.named.get(self.sizes.find(("dim", id(value), axis)), size)
            for axis, size in enumerate(value.shape)
        )
        return replace(value, shape=shape)


def _is_vocabulary(slot: Slot) -> bool:
    words = ("pos", "type", "segment", "bias")
    return slot.parameter == "num_embeddings" and not any(
        word in slot.attribute.lower() for word in words
    )


def _passed_on(
    made: Expression, needed: dict[str, list[str]], own: set[str]
) -> Expression:
    """A constructor that hands on what the classes inside it need."""
    made = made.rebuilt(lambda child: _passed_on(child, needed, own))
    if isinstance(made, Call) and (names := needed.get(made.function)):
        own.update(names)
        return replace(made, args=(*map(Name, names), *made.args))
    return made
