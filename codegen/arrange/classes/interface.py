"""Interfaces of groups: which values and sizes a class takes, and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from burnish.codegen.arrange.analysis.shape_contracts import sizes_of, symbol
from burnish.codegen.arrange.classes.as_layer import Submodule
from burnish.codegen.arrange.classes.sequence_axes import number_of_places
from burnish.codegen.arrange.scopes.grouping import (
    Group,
    leaves,
    operands_of,
    statements_of,
    targets_of,
)
from burnish.codegen.program import Assign, Block, Expression, Flow, Layer, Value


@dataclass(frozen=True)
class Interfaces:
    """The interfaces of a program's groups, by its data flow.

    symbols: the names of sizes that the program reads. places: ranges 0, 1, 2, ... with
    the size that says how long they are.
    """

    flow: Flow
    symbols: dict[Value, str] = field(default_factory=dict)
    places: dict[Value, tuple[Value, Expression]] = field(default_factory=dict)

    @classmethod
    def of(cls, block: Block) -> Interfaces:
        made = cls(Flow(block))
        for statement in block.statements:
            if not isinstance(statement, Assign):
                continue
            if size := symbol(statement.expression):
                made.symbols[statement.targets[0]] = size
            if number := number_of_places(statement):
                made.places[statement.targets[0]] = number, statement.expression
        return made

    def inside(self, block: Block) -> Interfaces:
        """Those of the groups in a block of one of the statements."""
        return replace(self, flow=Flow(block))

    def outputs(self, group: Group) -> list[Value]:
        """The values of a group that are read outside of it."""
        inside = set(statements_of(group))
        return [v for v in targets_of(group) if self.flow.is_read_outside(v, inside)]

    def inputs(self, group: Group) -> tuple[list[Value], dict[Value, Expression]]:
        """The inputs of a class: tensors, then numbers that are no size of a tensor.

        What layers read comes first, masks and the like behind. The second result says
        how the class finds the other sizes itself, and places 0, 1, 2, ... along an
        axis that a tensor has.
        """
        main = {v for e in leaves(group) if isinstance(e, Layer) for v in e.inputs}
        read = list(dict.fromkeys(operands_of(group)))
        read.sort(key=lambda value: (value.host, value not in main))
        tensors = [v for v in read if not v.host and v not in self.places]
        numbers = dict.fromkeys(self.places.get(value, (value,))[0] for value in read)
        local = sizes_of(tensors, {v: self.symbols.get(v, "") for v in numbers})
        for value in read:
            number, made = self.places.get(value, (value, None))
            if made is not None and number in local:
                local[value] = made
        return [value for value in read if value not in local], local

    def is_row(self, children: Sequence[Group]) -> bool:
        """Whether each takes exactly one value, the result of the one before."""
        for child, following in pairwise(children):
            given, (taken, _) = self.outputs(child), self.inputs(following)
            if len(given) != 1 or given != taken:
                return False
            if self.flow.is_read_outside(given[0], set(statements_of(following))):
                return False
        return True

    def is_chain(self, parts: Sequence[Submodule]) -> bool:
        """Whether each part's only result is read by the next part alone."""
        for part, following in pairwise(parts):
            if len(part.outputs) != 1 or part.outputs[0] not in following.inputs:
                return False
            if self.flow.is_read_outside(part.outputs[0], following.statements):
                return False
        return len(parts[-1].outputs) == 1
