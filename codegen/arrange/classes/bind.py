"""A class while it is built: its layers and weights become attributes."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from burnish.codegen.arrange.classes.as_layer import Note
from burnish.codegen.arrange.classes.members import (
    Members,
    constructor,
    layer_name,
    stored,
    weight_name,
)
from burnish.codegen.arrange.scopes.group_kind import free_weights
from burnish.codegen.arrange.scopes.grouping import (
    Group,
    is_number,
    module_of,
    scope_of,
)
from burnish.codegen.program import (
    Block,
    Expression,
    Layer,
    Level,
    ModuleCall,
    Scope,
    Statement,
    Value,
    Weight,
)

Path = tuple[str, ...]
_TINY = 64
"""Elements of a constant that a caller gives; more are a table."""


def homes_of(statements: Iterable[Statement]) -> dict[Weight, Path]:
    """The modules that own the free weights which modules around them read too.

    A weight's name says which module is its own, and the module reads it as well.
    """
    readers: dict[Weight, set[Path]] = defaultdict(set)
    for statement in statements:
        for weight in free_weights([statement]):
            if weight.source is not None:
                readers[weight].add(path_of(statement.scope))
    homes = {weight: module_of(weight) for weight in readers}
    return {
        weight: homes[weight]
        for weight, paths in readers.items()
        if homes[weight] in paths
        and all(homes[weight][: len(path)] == path for path in paths)
        and len(paths) > 1
    }


def handed_of(statements: Iterable[Statement]) -> dict[Weight, Path]:
    """Constants that differ between the calls of a module, and the module's path.

    An exporter writes what a caller computes from numbers alone, such as the time of
    each step, into the module that reads it.
    """
    read: dict[tuple[Level, ...], dict[int, list[Weight]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for statement in statements:
        scope = statement.scope
        for depth, level in enumerate(scope):
            module = (*scope[:depth], replace(level, call=0))
            read[module][level.call] += filter(_is_made, free_weights([statement]))
    found: dict[Weight, Path] = {}
    for module, calls in read.items():
        if len({len(held) for held in calls.values()}) == 1 < len(calls):
            for places in zip(*calls.values(), strict=True):
                if len(set(map(_contents, places))) > 1:
                    for weight in places:
                        found.setdefault(weight, path_of(module))
    return found


def _is_made(weight: Weight) -> bool:
    """Whether it is a small constant that no author named."""
    is_named = weight.source is not None and weight.source.named
    return not (weight.trained or is_named) and math.prod(weight.shape) <= _TINY


def _contents(weight: Weight) -> Hashable:
    return weight.dtype, weight.shape, weight.array.tobytes()


def path_of(scope: Scope) -> Path:
    """The names of a scope's modules, also where one level joins several."""
    return tuple(name for level in scope for name in level.name.split("."))


@dataclass
class Hints:
    """Facts on the whole program that all its classes share.

    weight_uses: how often each free weight is read in all; roles: what for. homes: the
    modules that own those which the modules around them read too. handed: constants
    that callers of a module give it, and the module. names: what the recovered
    structure calls layers, by their ids. tied: the ids of weights that different layers
    share.
    """

    weight_uses: Counter[Weight]
    homes: dict[Weight, Path] = field(default_factory=dict)
    handed: dict[Weight, Path] = field(default_factory=dict)
    roles: dict[Weight, str] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    tied: set[int] = field(default_factory=set)


@dataclass
class Labels:
    """Names from scopes for the layers that one class calls itself, by their ids.

    names: the attribute, "" for what the class extends. places: a list and the number.
    """

    names: dict[int, str] = field(default_factory=dict)
    places: dict[int, tuple[str, int]] = field(default_factory=dict)


@dataclass
class Body:
    """A class while it is built: its parts, and its statements calling them.

    outside: weights that it takes as arguments. notes: decisions on the scopes inside.
    """

    members: Members = field(default_factory=Members)
    labels: Labels = field(default_factory=Labels)
    notes: list[Note] = field(default_factory=list)
    block: Block = field(default_factory=lambda: Block([], []))
    outside: dict[Weight, Value] = field(default_factory=dict)

    def decide(self, words: str, group: Group) -> None:
        """Note a decision on a group."""
        self.notes.append(Note("decide", words, scope_of(group)))


@dataclass(eq=False)
class Owner:
    """Replaces layers and weights by the attributes that hold them."""

    hints: Hints
    labels: Labels
    members: Members
    uses: Counter[Weight]
    sizes: dict[Value, Value]
    home: Path | None
    attributes: dict[Hashable, Expression] = field(default_factory=dict)
    outside: dict[Weight, Value] = field(default_factory=dict)

    def __call__(self, expression: Expression) -> Expression:
        if isinstance(expression, Layer):
            inputs = tuple(map(self, expression.inputs))
            made, weights = constructor(expression), [*expression.weights.items()]
            if place := self.labels.places.get(id(expression)):
                own = self.members.place(*place, made, weights)
            else:
                hint = self.hints.names.get(id(expression))
                name = self.labels.names.get(id(expression), hint)
                name = layer_name(expression) if name is None else name
                own = self.members.add(name, made, weights)
            return ModuleCall(own, inputs) if inputs else own
        if isinstance(expression, Weight):
            return self._weight(expression)
        if isinstance(expression, Value):
            return self.sizes.get(expression, expression)
        return expression.rebuilt(self)

    def _weight(self, weight: Weight) -> Expression:
        name = weight_name(weight, self.hints.roles.get(weight, ""))
        if self._is_given(weight):
            value = Value(name, weight.dtype, weight.shape)
            return self.outside.setdefault(weight, value)
        key = _contents(weight) if weight in self.hints.handed else weight
        if key not in self.attributes:
            inside = self.members.path_of(weight)
            self.attributes[key] = inside or self._owned(weight, name)
        return self.attributes[key]

    def _is_given(self, weight: Weight) -> bool:
        """Whether the module takes it as an argument."""
        module = self.hints.handed.get(weight)
        if module is not None and self.home is not None:
            return self.home[: len(module)] == module
        is_shared = self.uses[weight] < self.hints.weight_uses[weight]
        return is_shared and self.hints.homes.get(weight) != self.home

    def _owned(self, weight: Weight, name: str) -> Expression:
        """An attribute; a weight with a number for a name is in a list."""
        members, made = self.members, stored(weight)
        outer = weight.path.split(".")[-2:-1]
        if not is_number(name) or not outer:
            return members.add(name, made, [("", weight)])
        listed = members.list_of(outer[0])
        return members.place(listed, int(name), made, [("", weight)])
