"""Assignments, branches and loops, in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from burnish.codegen.program.expressions import SelfAttr
from burnish.codegen.program.leaves import Change, Expression, Literal, Value, walk


@dataclass(frozen=True)
class Level:
    """One level of the author's module tree: attribute name and, if known, class.

    call: which call of the module it is, where it is called several times.
    """

    name: str
    kind: str = ""
    call: int = 0


Scope: TypeAlias = tuple[Level, ...]


def level_names(scope: Scope) -> tuple[str, ...]:
    """The path of a scope's module: the names of its levels."""
    return tuple(level.name for level in scope)


@dataclass(eq=False)
class Block:
    """Statements, and the expressions that they hand back."""

    statements: list[Statement]
    results: list[Expression]

    def rebuilt(self, change: Change) -> Block:
        """The same block over changed expressions."""
        return Block(
            [statement.rebuilt(change) for statement in self.statements],
            [change(result) for result in self.results],
        )


@dataclass(eq=False)
class Statement:
    """Base of the statements; `targets` are the values it defines."""

    targets: tuple[Value, ...]
    scope: Scope = ()

    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that it evaluates itself, outside its blocks."""
        return ()

    def blocks(self) -> tuple[Block, ...]:
        return ()

    def rebuilt(self, change: Change) -> Statement:
        """The same statement over changed expressions, in its blocks too."""
        return self


@dataclass(eq=False)
class Assign(Statement):
    """`targets = expression`"""

    expression: Expression = field(default_factory=lambda: Literal(None))

    def expressions(self) -> tuple[Expression, ...]:
        return (self.expression,)

    def rebuilt(self, change: Change) -> Statement:
        return replace(self, expression=change(self.expression))


@dataclass(eq=False)
class If(Statement):
    """`if condition: ... else: ...`; each block's results become the targets."""

    condition: Expression = field(default_factory=lambda: Literal(True))
    then: Block = field(default_factory=lambda: Block([], []))
    otherwise: Block = field(default_factory=lambda: Block([], []))

    def expressions(self) -> tuple[Expression, ...]:
        return (self.condition,)

    def blocks(self) -> tuple[Block, ...]:
        return self.then, self.otherwise

    def rebuilt(self, change: Change) -> Statement:
        return replace(
            self,
            condition=change(self.condition),
            then=self.then.rebuilt(change),
            otherwise=self.otherwise.rebuilt(change),
        )


@dataclass(eq=False)
class Loop(Statement):
    """A `for` (over `items`, an iterable, or counting `count` times) or a `while`.

    carried: the body's names for the values that go round; they start as `initial`.
    index: the value that counts or runs over the items. beside: further values, each
    with the iterable that it runs over at the same time, as `zip` pairs them. The
    body's results are: the condition (when `condition` is given), the carried values,
    then one element for each of `collected`, lists that are appended to. targets: the
    carried values after the loop, then the collected lists.
    """

    count: Expression | None = None
    items: Expression | None = None
    condition: Expression | None = None
    going: Value | None = None
    index: Value | None = None
    beside: tuple[tuple[Value, Expression], ...] = ()
    carried: tuple[Value, ...] = ()
    initial: tuple[Expression, ...] = ()
    collected: int = 0
    body: Block = field(default_factory=lambda: Block([], []))

    def expressions(self) -> tuple[Expression, ...]:
        beside = (items for _, items in self.beside)
        given = (self.count, self.items, *beside, self.condition, *self.initial)
        return tuple(e for e in given if e is not None)

    def iterables(self) -> tuple[tuple[Value, Expression], ...]:
        """The values that run over items, each with its iterable."""
        if self.items is None or self.index is None:
            return ()
        return ((self.index, self.items), *self.beside)

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def rebuilt(self, change: Change) -> Statement:
        def maybe(expression: Expression | None) -> Expression | None:
            return None if expression is None else change(expression)

        return replace(
            self,
            count=maybe(self.count),
            items=maybe(self.items),
            beside=tuple((item, change(items)) for item, items in self.beside),
            condition=maybe(self.condition),
            initial=tuple(map(change, self.initial)),
            body=self.body.rebuilt(change),
        )


def every_expression(of: Block | Statement) -> Iterator[Expression]:
    """Every expression of a block or statement and of the blocks inside, with parts."""
    return walk(*_roots(of))


def attributes_used(block: Block) -> Iterator[str]:
    """The module's attributes in the order in which operations take them.

    A weight is read by its operation, after the operation's other operands.
    """
    return (name for root in _roots(block) for name in _taken(root))


def _roots(of: Block | Statement) -> list[Expression]:
    """The whole expressions, in the order of the statements."""
    found: list[Expression] = []
    for statement in of.statements if isinstance(of, Block) else (of,):
        found += statement.expressions()
        for block in statement.blocks():
            found += _roots(block)
    if isinstance(of, Block):
        found += of.results
    return found


def _taken(expression: Expression) -> Iterator[str]:
    if isinstance(expression, SelfAttr):
        yield str(expression.path[0])
        return
    parts = expression.children()
    for child in parts:
        if not isinstance(child, SelfAttr):
            yield from _taken(child)
    for child in parts:
        if isinstance(child, SelfAttr):
            yield from _taken(child)
