"""Recover scopes that an exporter lost, from the modules with names beside them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from burnish.codegen.arrange.recover.segments import Cuts, dense
from burnish.codegen.arrange.recover.structure import scoped, together, units_of
from burnish.codegen.arrange.scopes.grouping import every_weight
from burnish.codegen.errors import Explain
from burnish.codegen.names.identifier import Identifier, Names
from burnish.codegen.program import Block, Flow, Program, Statement

_BESIDE = 8
"""So many layers without names, beside modules with names, may have a structure."""


def structure_beside(program: Program, explain: Explain) -> dict[int, str]:
    """Give scopes to statements without one, beside those of an author's modules.

    Exporters that fold a batch norm into its convolution number the folded weights, and
    keep the names of all others.
    """
    body = program.body
    if _are_few(s for s in body.statements if not s.scope):
        return {}
    flow = Flow(body)
    bare = _outside(body.statements, flow)
    if _are_few(bare):
        return {}
    inside = set(bare)
    made = {t for s in body.statements if s not in inside for t in s.targets}
    escape = [t for s in bare for t in s.targets if flow.is_read_outside(t, inside)]
    level = _levels(body.statements, inside, flow)
    cuts = Cuts(Block(bare, [*escape]), entering=made)
    units = [u for u in units_of(cuts) if len({level[s] for s in u.statements}) == 1]
    names = scoped(cuts, units, explain)
    taken = {name for s in body.statements if s not in inside for name in _module(s)}
    _avoid(Names(taken), bare)
    body.statements = together(body.statements, units, flow)
    return names


def _are_few(statements: Iterable[Statement]) -> bool:
    """Whether few layers are in them whose weights have no names."""
    return sum(dense(s) for s in statements if not _is_named(s)) < _BESIDE


def _outside(statements: Sequence[Statement], flow: Flow) -> list[Statement]:
    """The statements without a scope that are not between two of one module."""
    before: dict[Statement, set[str]] = {}
    behind: dict[Statement, set[str]] = {}
    for statement in statements:
        makers = flow.makers(statement)
        before[statement] = set().union(*(before[m] | _module(m) for m in makers))
    for statement in reversed(statements):
        readers = flow.readers_of(statement)
        behind[statement] = set().union(*(behind[r] | _module(r) for r in readers))
    return [s for s in statements if not s.scope and not before[s] & behind[s]]


def _module(statement: Statement) -> set[str]:
    return {level.name for level in statement.scope[:1]}


def _levels(
    statements: Sequence[Statement], bare: Container[Statement], flow: Flow
) -> dict[Statement, int]:
    """How many modules with names are before each statement, on the longest way.

    What is between two statements of one level has it, too: no module with a name.
    """
    level: dict[Statement, int] = {}
    for statement in statements:
        enters = statement in bare
        level[statement] = max(
            (level[m] + (enters and m not in bare) for m in flow.makers(statement)),
            default=0,
        )
    return level


def _is_named(statement: Statement) -> bool:
    """Whether an author has named what it reads."""
    sources = (w.source for w in every_weight(statement))
    return any(source is not None and source.named for source in sources)


def _avoid(taken: Names, statements: Sequence[Statement]) -> None:
    """Rename the outermost of these modules where a name is taken."""
    known: dict[str, str] = {}
    for statement in statements:
        for first in statement.scope[:1]:
            if first.name not in known:
                known[first.name] = taken.new(Identifier(first.name))
            first = replace(first, name=known[first.name])
            statement.scope = (first, *statement.scope[1:])
