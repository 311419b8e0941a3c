"""A class while it is built: its layers and weights become attributes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from burnish.codegen.arrange.classes.as_layer import Note
from burnish.codegen.arrange.classes.members import (
    Members,
    constructor,
    layer_name,
    layer_weights,
    stored,
    weight_name,
)
from burnish.codegen.arrange.scopes.grouping import Group, is_number, scope_of
from burnish.codegen.program import Block, Expression, Layer, ModuleCall, Value, Weight


@dataclass
class Hints:
    """Facts on the whole program that all its classes share.

    weight_uses: how often each free weight is read in all; roles: what for. names: what
    the recovered structure calls layers, by their ids. tied: the ids of weights that
    different layers share.
    """

    weight_uses: Counter[Weight]
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


class Owner:
    """Replaces layers and weights by the attributes that hold them."""

    def __init__(
        self,
        hints: Hints,
        labels: Labels,
        members: Members,
        uses: Counter[Weight],
        sizes: dict[Value, Value],
    ):
        self.hints = hints
        self.labels = labels
        self.members = members
        self.uses = uses
        self.sizes = sizes
        self.attributes: dict[Weight, Expression] = {}
        self.outside: dict[Weight, Value] = {}

    def __call__(self, expression: Expression) -> Expression:
        if isinstance(expression, Layer):
            inputs = tuple(map(self, expression.inputs))
            made, weights = constructor(expression), layer_weights(expression)
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
        if self.uses[weight] < self.hints.weight_uses[weight]:
            value = Value(name, weight.dtype, weight.shape)
            return self.outside.setdefault(weight, value)
        if weight not in self.attributes:
            self.attributes[weight] = self._owned(weight, name)
        return self.attributes[weight]

    def _owned(self, weight: Weight, name: str) -> Expression:
        """An attribute; a weight with a number for a name is in a list."""
        members, made = self.members, stored(weight)
        outer = weight.path.split(".")[-2:-1]
        if not is_number(name) or not outer:
            return members.add(name, made, [("", weight)])
        listed = members.list_of(outer[0])
        return members.place(listed, int(name), made, [("", weight)])
