"""Program: what will be written, in the runtime's and Python's words.

Nothing here knows ONNX. Expressions are trees whose leaves are values, weights and
literals; a statement gives names to an expression's results; a block is a list of
statements and what it hands back. Values are single-assignment; their names are made
when the source is rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

Dim: TypeAlias = int | str | None
Shape: TypeAlias = tuple[Dim, ...]


Change: TypeAlias = "Callable[[Expression], Expression]"


class Expression:
    """Base of everything that has a value."""

    dtype: str | None = None
    shape: Shape | None = None

    def children(self) -> tuple[Expression, ...]:
        return ()

    def rebuilt(self, change: Change) -> Expression:
        """The same expression over changed children."""
        return self

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)


@dataclass(eq=False)
class Value(Expression):
    """The result of one statement, or an input. `hint` is the file's name for it.

    natural: a number of the host that is never negative, such as a size.
    """

    hint: str = ""
    dtype: str | None = None
    shape: Shape | None = None
    host: bool = False
    natural: bool = False


@dataclass(eq=False)
class Weight(Expression):
    """A tensor from the model file that the module owns.

    read: the array, brought to the layout that the module has.
    trained: a Param (else a Buffer). path: what the file calls it.
    """

    path: str
    dtype: str = field()
    shape: tuple[int, ...] = field()
    read: Callable[[], np.ndarray] = field()
    trained: bool = True
    shared: bool = False

    def changed(self, shape: tuple[int, ...], how: Callable[..., Any]) -> Weight:
        """The same weight stored in another layout."""
        return replace(self, shape=shape, read=lambda: how(self.read()))

    @property
    def array(self) -> np.ndarray:
        return self.read()


@dataclass(frozen=True, eq=False)
class Literal(Expression):
    """A Python constant: number, string, None, or lists and tuples of them."""

    value: Any


@dataclass(frozen=True, eq=False)
class Name(Expression):
    """A name that the source gives, such as `self.device`; never a file's text."""

    text: str


@dataclass(frozen=True, eq=False)
class Constant(Expression):
    """An array that is known while generating and is not a weight."""

    array: np.ndarray

    @property
    def dtype(self) -> str:  # type: ignore[override]
        return self.array.dtype.name

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.array.shape


@dataclass(frozen=True, eq=False)
class Host(Expression):
    """Numbers that Python computes while the model runs: sizes, indices, scalars.

    array: an object array of expressions; its shape is what ONNX says it is.
    """

    array: np.ndarray
    dtype: str | None = "int64"

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.array.shape

    def children(self) -> tuple[Expression, ...]:
        return tuple(self.array.ravel())

    def rebuilt(self, change: Change) -> Expression:
        changed = np.empty(self.array.shape, object)
        for i, item in np.ndenumerate(self.array):
            changed[i] = change(item)
        return Host(changed, self.dtype)


@dataclass(frozen=True, eq=False)
class Call(Expression):
    """`function(*args, **options)`; the function is a dotted name: "ops.relu", "len"."""

    function: str
    args: tuple[Expression, ...] = ()
    options: tuple[tuple[str, Expression], ...] = ()

    def children(self) -> tuple[Expression, ...]:
        return self.args + tuple(value for _, value in self.options)

    def rebuilt(self, change: Change) -> Expression:
        options = tuple((name, change(value)) for name, value in self.options)
        return replace(self, args=tuple(map(change, self.args)), options=options)


@dataclass(frozen=True, eq=False)
class Method(Expression):
    """`target.name(*args, **options)`"""

    target: Expression
    name: str
    args: tuple[Expression, ...] = ()
    options: tuple[tuple[str, Expression], ...] = ()

    def children(self) -> tuple[Expression, ...]:
        return (self.target, *self.args, *(value for _, value in self.options))

    def rebuilt(self, change: Change) -> Expression:
        options = tuple((name, change(value)) for name, value in self.options)
        args = tuple(map(change, self.args))
        return replace(self, target=change(self.target), args=args, options=options)


@dataclass(frozen=True, eq=False)
class Attribute(Expression):
    """`target.name`"""

    target: Expression
    name: str

    def children(self) -> tuple[Expression, ...]:
        return (self.target,)

    def rebuilt(self, change: Change) -> Expression:
        return replace(self, target=change(self.target))


@dataclass(frozen=True, eq=False)
class Infix(Expression):
    """`left operator right`"""

    operator: str
    left: Expression
    right: Expression

    def children(self) -> tuple[Expression, ...]:
        return self.left, self.right

    def rebuilt(self, change: Change) -> Expression:
        return replace(self, left=change(self.left), right=change(self.right))


@dataclass(frozen=True, eq=False)
class Prefix(Expression):
    """`operator operand`: "-", "~", "not " """

    operator: str
    operand: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def rebuilt(self, change: Change) -> Expression:
        return replace(self, operand=change(self.operand))


@dataclass(frozen=True, eq=False)
class Conditional(Expression):
    """`then if condition else otherwise`"""

    then: Expression
    condition: Expression
    otherwise: Expression

    def children(self) -> tuple[Expression, ...]:
        return self.then, self.condition, self.otherwise

    def rebuilt(self, change: Change) -> Expression:
        return Conditional(*map(change, self.children()))


@dataclass(frozen=True, eq=False)
class Display(Expression):
    """A list `[a, b]` or tuple `(a, b)`."""

    items: tuple[Expression, ...]
    brackets: str = "[]"

    def children(self) -> tuple[Expression, ...]:
        return self.items

    def rebuilt(self, change: Change) -> Expression:
        return replace(self, items=tuple(map(change, self.items)))


@dataclass(frozen=True, eq=False)
class Slice(Expression):
    """`start:stop:step` inside an Item."""

    start: Expression | None = None
    stop: Expression | None = None
    step: Expression | None = None

    def children(self) -> tuple[Expression, ...]:
        return tuple(p for p in (self.start, self.stop, self.step) if p is not None)

    def rebuilt(self, change: Change) -> Expression:
        parts = (self.start, self.stop, self.step)
        return Slice(*(None if p is None else change(p) for p in parts))


@dataclass(frozen=True, eq=False)
class Item(Expression):
    """`target[keys]`"""

    target: Expression
    keys: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        return (self.target, *self.keys)

    def rebuilt(self, change: Change) -> Expression:
        return Item(change(self.target), tuple(map(change, self.keys)))


@dataclass(frozen=True, eq=False)
class Layer(Expression):
    """A call of a layer that the module owns: `self.name(*inputs)`.

    kind: the class in `burnish.nn`; args and options: its constructor's, plain values;
    weights: its parameters by name.
    """

    kind: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    weights: dict[str, Weight]
    inputs: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        return self.inputs

    def rebuilt(self, change: Change) -> Expression:
        return replace(self, inputs=tuple(map(change, self.inputs)))


@dataclass(frozen=True, eq=False)
class Own(Expression):
    """Something of the module's own: `self.conv1`, `self.layers[0]`."""

    path: tuple[str | int, ...]


@dataclass(frozen=True, eq=False)
class Apply(Expression):
    """`target(*inputs)`, where the target is a module."""

    target: Expression
    inputs: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        return (self.target, *self.inputs)

    def rebuilt(self, change: Change) -> Expression:
        return Apply(change(self.target), tuple(map(change, self.inputs)))


@dataclass(frozen=True, eq=False)
class Repeat(Expression):
    """`[item for _ in range(count)]`"""

    item: Expression
    count: int

    def children(self) -> tuple[Expression, ...]:
        return (self.item,)

    def rebuilt(self, change: Change) -> Expression:
        return Repeat(change(self.item), self.count)


@dataclass(frozen=True)
class Level:
    """One level of the author's module tree: attribute name and, if known, class."""

    name: str
    kind: str = ""


Scope: TypeAlias = tuple[Level, ...]


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
    index: the value that counts or runs over the items. The body's results are: the
    condition (when `condition` is given), the carried values, then one element for each
    of `collected`, lists that are appended to. targets: the carried values after the
    loop, then the collected lists.
    """

    count: Expression | None = None
    items: Expression | None = None
    condition: Expression | None = None
    going: Value | None = None
    index: Value | None = None
    carried: tuple[Value, ...] = ()
    initial: tuple[Expression, ...] = ()
    collected: int = 0
    body: Block = field(default_factory=lambda: Block([], []))

    def expressions(self) -> tuple[Expression, ...]:
        given = (self.count, self.items, self.condition, *self.initial)
        return tuple(e for e in given if e is not None)

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def rebuilt(self, change: Change) -> Statement:
        def maybe(expression: Expression | None) -> Expression | None:
            return None if expression is None else change(expression)

        return replace(
            self,
            count=maybe(self.count),
            items=maybe(self.items),
            condition=maybe(self.condition),
            initial=tuple(map(change, self.initial)),
            body=self.body.rebuilt(change),
        )


@dataclass(eq=False)
class Program:
    """A whole model: its inputs in order, its body, and what is told of it."""

    inputs: list[Value]
    optional: dict[Value, Any]
    body: Block
    output_names: list[str]
    outputs: list[tuple[str | None, Shape | None]]


@dataclass(eq=False)
class ClassPlan:
    """One class of the source: what it owns and what it computes.

    members: attribute and constructor, in order; parameters: the constructor's own.
    inputs and `block.results` are what `forward` takes and returns.
    """

    name: str
    members: list[tuple[str, Expression]]
    inputs: list[Value]
    block: Block
    contract: str = ""
    parameters: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Plan:
    """The classes, small to large, the model last, and where its weights belong."""

    classes: list[ClassPlan]
    weights: list[tuple[str, Weight]]


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it."""
    yield expression
    for child in expression.children():
        yield from walk(child)


def every_expression(block: Block) -> Iterator[Expression]:
    """Every expression of a block and of the blocks inside it, with their parts."""
    for statement in block.statements:
        for expression in statement.expressions():
            yield from walk(expression)
        for inner in statement.blocks():
            yield from every_expression(inner)
    for result in block.results:
        yield from walk(result)


def pruned(block: Block) -> Block:
    """The block without what nothing reads, in inner blocks too."""
    return _pruned(block, set())


def _pruned(block: Block, needed: set[Expression]) -> Block:
    """`needed`: what is read later; it grows by what the kept statements read."""
    for result in block.results:
        needed.update(walk(result))
    kept: list[Statement] = []
    for statement in reversed(block.statements):
        if needed.isdisjoint(statement.targets):
            continue
        if isinstance(statement, If):
            statement = _pruned_if(statement, needed)
        elif isinstance(statement, Loop):
            statement = _pruned_loop(statement, needed)
        for expression in statement.expressions():
            needed.update(walk(expression))
        kept.append(statement)
    return Block(kept[::-1], block.results)


def _pruned_if(statement: If, needed: set[Expression]) -> If:
    places = [i for i, target in enumerate(statement.targets) if target in needed]
    then, otherwise = (
        _pruned(Block(b.statements, [b.results[i] for i in places]), needed)
        for b in statement.blocks()
    )
    targets = tuple(statement.targets[i] for i in places)
    return replace(statement, targets=targets, then=then, otherwise=otherwise)


def _pruned_loop(loop: Loop, needed: set[Expression]) -> Loop:
    """Without lists that nobody reads, and without what goes round for nothing."""
    states, offset = len(loop.carried), 0 if loop.going is None else 1
    first, targets = offset + states, loop.targets
    lists = [i for i in range(loop.collected) if targets[states + i] in needed]
    kept = {i for i in range(states) if targets[i] in needed}
    while True:
        places = [*range(offset), *(offset + i for i in sorted(kept))]
        results = [loop.body.results[i] for i in (*places, *(first + i for i in lists))]
        read: set[Expression] = set()
        body = _pruned(Block(loop.body.statements, results), read)
        grown = kept | {i for i, value in enumerate(loop.carried) if value in read}
        if grown == kept:
            break
        kept = grown
    needed |= read
    chosen = sorted(kept)
    return replace(
        loop,
        targets=tuple(targets[i] for i in (*chosen, *(states + i for i in lists))),
        carried=tuple(loop.carried[i] for i in chosen),
        initial=tuple(loop.initial[i] for i in chosen),
        index=loop.index if loop.index in read else None,
        collected=len(lists),
        body=body,
    )
