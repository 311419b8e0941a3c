"""A class while it is built: members, labels of layers, statements, notes."""

from __future__ import annotations

from dataclasses import dataclass, field

from burnish.codegen.arrange.classes.as_layer import Note
from burnish.codegen.arrange.classes.members import Members
from burnish.codegen.arrange.scopes.grouping import Group, scope_of
from burnish.codegen.program import Block, Value, Weight


@dataclass
class Labels:
    """What scopes say of the layers that one class calls itself, by their ids.

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
