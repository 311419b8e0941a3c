"""Structural hash of statements and classes: equal where the same is computed.

One canonical traversal, in the order of the nodes' fields: values are numbered by
first use, scopes and names of values do not count.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields

import numpy as np

from burnish.codegen.arrange.analysis.holes import Switch
from burnish.codegen.program import (
    Block,
    ClassPlan,
    Constant,
    Expression,
    Layer,
    Literal,
    Statement,
    Value,
    Weight,
)

Numbers = dict[Value, int]


def signature(plan: ClassPlan) -> str:
    """Text that is equal for plans that say the same, whatever values are called."""
    walk = _Traversal({})
    inputs = walk.parts(plan.inputs)
    members = walk.parts(plan.members)
    return repr(
        (plan.base, inputs, members, walk.parts(plan.shared), walk.part(plan.block))
    )


def expression_hash(expression: Expression, numbers: Numbers | None = None) -> Hashable:
    """A structural hash of one expression.

    numbers: of the values in all expressions that are compared, where only the same
    values are equal; without them `x.shape[0]` has the hash of `z.shape[0]`.
    """
    return _Traversal({} if numbers is None else numbers).part(expression)


def hash_under(
    part: Statement | list[Expression], known: Mapping[Value, Value], *, mine: bool
) -> Hashable:
    """A structural hash of statements or results, comparable between two classes.

    known: what values of the one class are in the other. mine: the part is of the one.
    """
    places: Numbers = {}
    for theirs in known.values():
        places.setdefault(theirs, len(places))
    numbers = {one: places[two] for one, two in known.items()} if mine else places
    while len(numbers) < len(known):
        numbers[Value()] = -1
    return _Traversal(numbers).part(part)


def outline(statements: Iterable[Statement]) -> tuple[str, list[Value]]:
    """Text that is equal where the same is done, and the values by first use."""
    numbers: Numbers = {}
    text = repr(_Traversal(numbers).parts(statements))
    return text, list(numbers)


def outline_of_any_size(statements: Iterable[Statement]) -> Hashable:
    """Equal where the same is done, whatever the sizes and the weights."""
    return _OfAnySize({}).parts(statements)


def outline_of_any_weights(
    statements: Iterable[Statement], *ends: Iterable[Value]
) -> Hashable:
    """Equal where the same is done to values that are alike, with weights alike.

    ends: values in order, such as inputs and results.
    """
    walk = _OfAnyWeights({})
    done = walk.parts((tuple(statements), *map(tuple, ends)))
    return done, tuple((value.dtype, value.shape) for value in walk.numbers)


class _Traversal:
    """The canonical traversal. numbers: of the values that have been met."""

    def __init__(self, numbers: Numbers):
        self.numbers = numbers

    def parts(self, parts: Iterable[object]) -> tuple[Hashable, ...]:
        return tuple(map(self.part, parts))

    def part(self, part: object) -> Hashable:
        match part:
            case Value():
                number = self.numbers.setdefault(part, len(self.numbers))
                return number, part.host
            case Literal(value=value):
                return self.plain(value)
            case Switch():
                return "switch", id(part)
            case Statement() | Expression() | Block():
                return self.node(part)
            case tuple() | list():
                return self.parts(part)
            case np.ndarray():
                return self.array(part)
        return self.plain(part)

    def node(self, node: Statement | Expression | Block) -> Hashable:
        names = (entry.name for entry in fields(node) if entry.name != "scope")  # type: ignore[arg-type]
        return type(node).__name__, *(self.part(getattr(node, n)) for n in names)

    def array(self, array: np.ndarray) -> Hashable:
        if array.dtype == object:
            return array.shape, *self.parts(array.ravel())
        return array.dtype.name, array.shape, array.tobytes()

    def plain(self, value: object) -> Hashable:
        """A leaf that is not a node: an operator, a number."""
        return repr(value)


class _OfAnyWeights(_Traversal):
    """The traversal to which all weights of one dtype and shape are alike."""

    def node(self, node: Statement | Expression | Block) -> Hashable:
        match node:
            case Weight(trained=trained, dtype=dtype, shape=shape):
                return "weight", trained, dtype, shape
            case Layer(kind=kind, args=args, options=options, weights=weights):
                held = tuple((name, self.part(w)) for name, w in weights.items())
                return kind, repr((args, options)), held, self.parts(node.inputs)
        return super().node(node)


class _OfAnySize(_Traversal):
    """The traversal to which all integers are alike, and all weights of one rank."""

    def node(self, node: Statement | Expression | Block) -> Hashable:
        match node:
            case Weight(trained=trained, shape=shape):
                return "weight", trained, len(shape)
            case Layer(kind=kind, options=options, weights=weights, inputs=inputs):
                fixed = [(n, self.plain(v)) for n, v in options.items() if not _size(v)]
                held = tuple(n for n in weights if not n.startswith("on_input"))
                return kind, tuple(fixed), held, self.parts(inputs)
            case Constant(array=array) if array.dtype.kind != "f" or array.size != 1:
                return "constant", array.dtype.name, array.ndim
        return super().node(node)

    def array(self, array: np.ndarray) -> Hashable:
        own = self.parts(array.ravel()) if array.dtype == object else (array.item(),)
        return array.dtype.name, array.ndim, *own

    def plain(self, value: object) -> Hashable:
        if isinstance(value, tuple | list):
            return tuple(map(self.plain, value))
        return "size" if _size(value) else repr(value)


def _size(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_size, value))
    return type(value) is int
