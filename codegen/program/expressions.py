"""Calls, operators, indexing, layers: trees over the leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from burnish.codegen.program.leaves import Expression, Weight


@dataclass(frozen=True, eq=False)
class Call(Expression):
    """`function(*args, **options)`; the function is a dotted name: "ops.relu"."""

    function: str
    args: tuple[Expression, ...] = ()
    options: tuple[tuple[str, Expression], ...] = ()


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


@dataclass(frozen=True, eq=False)
class Attribute(Expression):
    """`target.name`"""

    target: Expression
    name: str


@dataclass(frozen=True, eq=False)
class BinOp(Expression):
    """`left operator right`"""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, eq=False)
class UnaryOp(Expression):
    """`operator operand`: "-", "~", "not " """

    operator: str
    operand: Expression


@dataclass(frozen=True, eq=False)
class Conditional(Expression):
    """`then if condition else otherwise`"""

    then: Expression
    condition: Expression
    otherwise: Expression


@dataclass(frozen=True, eq=False)
class ListOrTuple(Expression):
    """A list `[a, b]` or tuple `(a, b)`."""

    items: tuple[Expression, ...]
    brackets: str = "[]"


@dataclass(frozen=True, eq=False)
class Keyed(Expression):
    """A dict with strings for keys: `{"a": b}`."""

    items: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, eq=False)
class Slice(Expression):
    """`start:stop:step` inside an Subscript."""

    start: Expression | None = None
    stop: Expression | None = None
    step: Expression | None = None


@dataclass(frozen=True, eq=False)
class Subscript(Expression):
    """`target[keys]`"""

    target: Expression
    keys: tuple[Expression, ...]


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


@dataclass(frozen=True, eq=False)
class Numbered(Expression):
    """`f"layer{index}"`: a name that counts."""

    stem: str
    index: Expression


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
