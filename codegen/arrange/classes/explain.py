"""Reasons for `--explain`: why classes, lists and loops were formed or not."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from burnish.codegen.account import few
from burnish.codegen.arrange.classes.as_layer import Declined, Note, Submodule
from burnish.codegen.names.identifier import plain
from burnish.codegen.program import (
    Attribute,
    BinOp,
    Block,
    Call,
    ClassPlan,
    Expression,
    Literal,
    Method,
    ModuleCall,
    Scope,
    SelfAttr,
    callee,
    every_expression,
    walk,
)

_CLASS = re.compile(r"\w+#\d+", re.ASCII)
_ABOUT = re.compile(r"class (\w+#\d+): ", re.ASCII)
_COMPARED = 20
"""At most this many classes of its kind are compared with a class."""


@dataclass
class Reasons:
    """Decisions on scopes, kept until all classes have their names.

    formed: the scopes of each class as it is made, in their order.
    """

    formed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    little: list[str] = field(default_factory=list)
    decided: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def record(self, note: Note) -> None:
        """Record a decision of the builder."""
        match note.kind:
            case "is_class":  # new or known
                self.formed[note.words].append(_path(note.scope))
            case "is_branch":  # its If says it
                pass
            case "is_little":  # too small for a class
                self.little.append(_path(note.scope))
            case _:
                self.decide(note.words, note.scope)

    def decide(self, words: str, scope: Scope) -> None:
        """Record another decision; equal lines are printed once, with all scopes."""
        self.decided[words].append(_path(scope))

    def rename(self, names: Mapping[str, str]) -> None:
        """Know classes by new names; names: by the old ones."""
        for old, new in names.items():
            if old in self.formed:
                self.formed[new] = self.formed.pop(old)

    def lines(
        self, classes: Sequence[ClassPlan], names: Mapping[str, str], merged: list[str]
    ) -> Iterator[str]:
        """The lines: classes, small to large, then scopes without a class.

        names: final names by first names; merged: lines of the merging phase.
        """
        yield from self._classes(classes, names, merged)
        if self.little:
            yield f"no class, at most one layer: {_places(self.little)}"
        for words, paths in self.decided.items():
            yield f"{_places(paths)}: {words}"

    def _classes(
        self, classes: Sequence[ClassPlan], names: Mapping[str, str], merged: list[str]
    ) -> Iterator[str]:
        """Lines on classes: their scopes, merged classes, the most similar class."""
        made = {new: old for old, new in names.items()}
        by_class: dict[str, list[str]] = defaultdict(list)
        for line in merged:
            found = _ABOUT.match(line)
            by_class[found[1] if found else ""].append(line)
        kinds: dict[str, list[ClassPlan]] = defaultdict(list)
        for plan in classes:
            own = made.get(plan.name, "")
            scopes, lines = self.formed.get(own, []), by_class.pop(own, [])
            same = kinds[_base(plan.name)]
            if scopes or lines or same:
                yield f"class {plan.name}" + (f": {_places(scopes)}" if scopes else "")
            for line in lines:
                yield f"  {self._renamed(line.partition(': ')[2], names)}"
            if same:
                twin = _nearest(plan, same[:_COMPARED])
                yield f"  not {twin.name}: {difference(plan, twin)}"
            same.append(plan)
        for line in (line for lines in by_class.values() for line in lines):
            yield self._renamed(line, names)

    def _renamed(self, line: str, names: Mapping[str, str]) -> str:
        """A line with final names; a merged class is named by its scopes."""

        def name(found: re.Match[str]) -> str:
            old = found[0]
            if old in names:
                return names[old]
            scopes = self.formed.get(old)
            return _places(scopes) if scopes else f"another {old.partition('#')[0]}"

        return _CLASS.sub(name, line)


def _path(scope: Scope) -> str:
    return ".".join(plain(level.name) for level in scope)


def _places(paths: Sequence[str]) -> str:
    """`layers.*.attention (12 times)`: paths that differ in numbers alone are one."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        parts = path.split(".")
        kinds[".".join("*" if p.isdigit() else p for p in parts)].append(path)
    words = [
        f"{kind} ({len(found)} times)" if len(found) > 1 else found[0]
        for kind, found in kinds.items()
    ]
    return few(words)


# --- classes that stay apart ---


def _nearest(plan: ClassPlan, others: Sequence[ClassPlan]) -> ClassPlan:
    """The class that has most members in common with this one."""
    own = {name for name, _ in plan.members}
    return min(others, key=lambda other: len(own ^ {name for name, _ in other.members}))


def _base(name: str) -> str:
    return name.rstrip("0123456789_")


def difference(one: ClassPlan, other: ClassPlan) -> str:
    """The first difference of two classes: members, inputs, constructors, forward."""
    (mine, theirs), inputs = (dict(p.members) for p in (one, other)), len(other.inputs)
    if apart := _apart(list(mine), list(theirs)):
        return apart
    if len(one.inputs) != inputs:
        return f"takes {len(one.inputs)} inputs, not {inputs}"
    for name, made in mine.items():
        if apart := _apart(_built(made), _built(theirs[name])):
            return f"{name} {apart}"
    for listed in (_operators, _numbers):
        if apart := _apart(listed(one.block), listed(other.block)):
            return f"its forward {apart}"
    return "the order of what its forward does"


def _apart(mine: list[str], theirs: list[str]) -> str:
    """`has a, b and lacks c`, or nothing for equals."""
    parts = []
    for word, some, others in (("has", mine, theirs), ("lacks", theirs, mine)):
        if extra := list(Counter(some) - Counter(others)):
            parts.append(f"{word} {few(extra)}")
    return " and ".join(parts)


def _built(made: Expression) -> list[str]:
    """A constructor's calls, and their options other than sizes."""
    calls = [part for part in walk(made) if isinstance(part, Call)]
    return [word for call in calls for word in (call.function, *_options(call))]


def _options(call: Call) -> list[str]:
    return [
        f"{name}={value.value!r}"
        for name, value in call.options
        if isinstance(value, Literal) and type(value.value) is not int
    ]


def _operators(block: Block) -> list[str]:
    """A forward's calls, methods and operators."""
    words = []
    for part in every_expression(block):
        match part:
            case ModuleCall(target=SelfAttr(path=path)):
                words.append("self." + ".".join(map(str, path)))
            case Call(function=name):
                words += [name, *_options(part)]
            case Method(name=name) | Attribute(name=name):
                words.append(f".{name}")
            case BinOp(operator=sign):
                words.append(sign)
    return words


def _numbers(block: Block) -> list[str]:
    """A forward's literals."""
    parts = every_expression(block)
    return [repr(part.value) for part in parts if isinstance(part, Literal)]


# --- lists ---


def no_chain(parts: Mapping[int, Submodule | Declined]) -> str:
    """Why numbered modules are called one by one."""
    for number, part in parts.items():
        if isinstance(part, Declined):
            return f"called one by one: {number} {part.reason}"
        if len(part.outputs) != 1:
            return f"called one by one: {number} gives {len(part.outputs)} values"
    return "called one by one: what one gives is read by others than the next"


def no_loop(parts: Mapping[int, Submodule]) -> str:
    """Why modules that follow each other are not one loop."""
    if list(parts) != list(range(len(parts))):
        return "some numbers are missing or out of order"
    first, *others = parts.items()
    for number, part in others:
        kinds = {callee(first[1].constructor), callee(part.constructor)}
        if len(kinds) > 1 and "" not in kinds:
            return f"{first[0]} and {number} are not alike"
    if callee(first[1].constructor).startswith("nn."):
        return "they are single layers"
    return "they are not given the same"
