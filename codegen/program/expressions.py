"""Calls, operators, indexing, layers: trees over the leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from burnish.codegen.program.leaves import Change, Expression, Weight


@dataclass(frozen=True, eq=False)
class Call(Expression):
    """`function(*args, **options)`; the function is a dotted name: "ops.relu"."""

    function: str
    args: tuple[Expression, ...] = ()
    options: tuple[tuple[str, Expression], ...] = ()

    def children(self) -> tuple[Expression, ...]:
        return self.args + tuple(value for _, value in self.options)

    def rebuilt(self, change: Change) -> Expression:
        options = tuple((name, change(value)) for name, value in self.options)
        return replace(self, args=tuple(map(change, self.args)), options=options)


@dataclass(frozen=True, eq=False)
class Unwritten(Call):
    """`self.unknown_foo(*args, **options)`: a method to be filled in.

    operator: the unsupported ONNX operator. gives, takes: the annotations of its
    results and of its arguments: "Tensor", "list[Tensor]", "Tensor | None".
    """

    operator: str = ""
    gives: tuple[str, ...] = ("Tensor",)
    takes: tuple[str, ...] = ()


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
class BinOp(Expression):
    """`left operator right`"""

    operator: str
    left: Expression
    right: Expression

    def children(self) -> tuple[Expression, ...]:
        return self.left, self.right

    def rebuilt(self, change: Change) -> Expression:
        return replace(self, left=change(self.left), right=change(self.right))


@dataclass(frozen=True, eq=False)
class UnaryOp(Expression):
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
class ListOrTuple(Expression):
    """A list `[a, b]` or tuple `(a, b)`."""

    items: tuple[Expression, ...]
    brackets: str = "[]"

    def children(self) -> tuple[Expression, ...]:
        return self.items

    def rebuilt(self, change: Change) -> Expression:
        return replace(self, items=tuple(map(change, self.items)))


@dataclass(frozen=True, eq=False)
class Keyed(Expression):
    """A dict with strings for keys: `{"a": b}`."""

    items: tuple[tuple[str, Expression], ...]

    def children(self) -> tuple[Expression, ...]:
        return tuple(value for _, value in self.items)

    def rebuilt(self, change: Change) -> Expression:
        return Keyed(tuple((key, change(value)) for key, value in self.items))


@dataclass(frozen=True, eq=False)
class Slice(Expression):
    """`start:stop:step` inside an Subscript."""

    start: Expression | None = None
    stop: Expression | None = None
    step: Expression | None = None

    def children(self) -> tuple[Expression, ...]:
        return tuple(p for p in (self.start, self.stop, self.step) if p is not None)

    def rebuilt(self, change: Change) -> Expression:
        parts = (self.start, self.stop, self.step)
        return Slice(*(None if p is None else change(p) for p in parts))


@dataclass(frozen=True, eq=False)
class Subscript(Expression):
    """`target[keys]`"""

    target: Expression
    keys: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        return (self.target, *self.keys)

    def rebuilt(self, change: Change) -> Expression:
        return Subscript(change(self.target), tuple(map(change, self.keys)))


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
class SelfAttr(Expression):
    """Something of the module's own: `self.conv1`, `self.layers[0]`."""

    path: tuple[str | int, ...]


@dataclass(frozen=True, eq=False)
class ModuleCall(Expression):
    """`target(*inputs, **options)`, where the target is a module."""

    target: Expression
    inputs: tuple[Expression, ...]
    options: tuple[tuple[str, Expression], ...] = ()

    def children(self) -> tuple[Expression, ...]:
        return (self.target, *self.inputs, *(value for _, value in self.options))

    def rebuilt(self, change: Change) -> Expression:
        options = tuple((name, change(value)) for name, value in self.options)
        return ModuleCall(change(self.target), tuple(map(change, self.inputs)), options)


@dataclass(frozen=True, eq=False)
class Numbered(Expression):
    """`f"layer{index}"`: a name that counts."""

    stem: str
    index: Expression

    def children(self) -> tuple[Expression, ...]:
        return (self.index,)

    def rebuilt(self, change: Change) -> Expression:
        return Numbered(self.stem, change(self.index))


@dataclass(frozen=True, eq=False)
class Repeat(Expression):
    """`[item for _ in range(count)]`, or `{name: item for i in range(count)}`

    The item and the name may read the number: `Name("i")`. fixed: its parts are called
    one by one, so that there is no other count.
    """

    item: Expression
    count: Expression
    name: Numbered | None = None
    fixed: bool = False

    def children(self) -> tuple[Expression, ...]:
        return (self.item, self.count)

    def rebuilt(self, change: Change) -> Expression:
        return replace(self, item=change(self.item), count=change(self.count))
