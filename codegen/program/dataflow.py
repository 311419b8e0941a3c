"""Data flow: definitions, reads, last uses, and the order of demand."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

from burnish.codegen.program.leaves import Expression, Value, walk
from burnish.codegen.program.statements import Block, Loop, Statement, every_expression

T = TypeVar("T", bound=Hashable)


def values_in(expressions: Iterable[Expression]) -> Iterator[Value]:
    """The values that expressions read: `state` of `state[0]`; with repeats."""
    parts = chain.from_iterable(map(walk, expressions))
    return (part for part in parts if isinstance(part, Value))


def reads(of: Block | Statement) -> Iterator[Value]:
    """The values that a block or a statement reads, its own too; with repeats."""
    return (part for part in every_expression(of) if isinstance(part, Value))


def defined(of: Block | Statement) -> Iterator[Value]:
    """Every value that a block or a statement defines, for itself or for others."""
    waiting = [of]
    while waiting:
        at = waiting.pop()
        if isinstance(at, Block):
            waiting += reversed(at.statements)
            continue
        yield from at.targets
        if isinstance(at, Loop):
            beside = (item for item, _ in at.beside)
            own = (at.index, *beside, at.going, *at.carried)
            yield from (v for v in own if v is not None)
        waiting += reversed(at.blocks())


def operands(of: Block | Statement) -> Iterator[Value]:
    """The values that it reads and does not define; with repeats."""
    own = set(defined(of))
    return (value for value in reads(of) if value not in own)


def last_uses(block: Block) -> dict[Value, int]:
    """The index of the statement that reads each value last; results: behind all."""
    last: dict[Value, int] = {}
    for place, statement in enumerate(block.statements):
        last.update(dict.fromkeys(reads(statement), place))
    last.update(dict.fromkeys(values_in(block.results), len(block.statements)))
    return last


def demand_order(ends: Iterable[T], needs: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """Depth-first post-order: each node once, behind what it needs, from `ends` on.

    A topological order in which each definition comes just before its first reader;
    `graphlib` orders by depth instead. In a cycle the node met first comes last.
    """
    opened: set[T] = set()
    waiting = [(end, False) for end in reversed([*ends])]
    while waiting:
        node, is_ready = waiting.pop()
        if is_ready:
            yield node
        elif node not in opened:
            opened.add(node)
            waiting.append((node, True))
            waiting += [(inner, False) for inner in reversed([*needs(node)])]


class Flow:
    """Who makes and who reads each value of a block.

    reads: operands of each statement, without repeats. results: what the block returns.
    """

    def __init__(self, block: Block):
        self.results = set(values_in(block.results))
        self.reads = {s: list(dict.fromkeys(operands(s))) for s in block.statements}
        self.maker = {t: s for s in block.statements for t in s.targets}
        self.readers: dict[Value, list[Statement]] = {}
        for statement, read in self.reads.items():
            for value in read:
                self.readers.setdefault(value, []).append(statement)

    def makers(self, statement: Statement) -> list[Statement]:
        """The statements that make a statement's operands, in the order of reading."""
        made = (self.maker.get(value) for value in self.reads[statement])
        return [maker for maker in made if maker is not None]

    def readers_of(self, statement: Statement) -> list[Statement]:
        """The statements that read what a statement defines."""
        return [r for target in statement.targets for r in self.readers.get(target, ())]

    def only_reader(self, statement: Statement) -> Statement | None:
        """The one statement that reads what a statement defines, and nothing else."""
        readers = {*self.readers_of(statement)}
        ends = not self.results.isdisjoint(statement.targets)
        return readers.pop() if len(readers) == 1 and not ends else None

    def is_read_outside(self, value: Value, inside: set[Statement]) -> bool:
        """Whether a value is a result, or read by a statement that is not `inside`."""
        readers = self.readers.get(value, ())
        return value in self.results or any(r not in inside for r in readers)
