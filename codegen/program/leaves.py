"""Leaves of expressions: values, weights, literals; and walking over expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import get_annotations
from typing import Any, ClassVar, TypeAlias

import numpy as np

Dim: TypeAlias = int | str | None
Shape: TypeAlias = tuple[Dim, ...]


Change: TypeAlias = "Callable[[Expression], Expression]"


class Expression:
    """Base of everything that has a value."""

    dtype: str | None = None
    shape: Shape | None = None
    #: The fields with expressions: one, none, a tuple, or pairs of a name and one.
    parts: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = get_annotations(cls).items()
        cls.parts = (*cls.parts, *(name for name, kind in own if "Expression" in kind))

    def children(self) -> tuple[Expression, ...]:
        if not self.parts:  # most are leaves
            return ()
        found: list[Expression] = []
        for name in self.parts:
            held = getattr(self, name)
            if isinstance(held, tuple):
                found += [each[1] if isinstance(each, tuple) else each for each in held]
            elif held is not None:
                found.append(held)
        return tuple(found)

    def rebuilt(self, change: Change) -> Expression:
        """The same expression over changed children."""
        if not self.parts:
            return self
        made = object.__new__(type(self))  # `replace` would look up every field
        made.__dict__.update(self.__dict__)
        for name in self.parts:
            made.__dict__[name] = _changed(self.__dict__[name], change)
        return made

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)


def _changed(held: Any, change: Change) -> Any:
    if isinstance(held, Expression):
        return change(held)
    if isinstance(held, tuple):
        return tuple([_changed(each, change) for each in held])
    return held


@dataclass(eq=False)
class Value(Expression):
    """The result of one statement, or an input. `hint` is the file's name for it.

    nonnegative: a number of the host that is never negative, such as a size.
    """

    hint: str = ""
    dtype: str | None = None
    shape: Shape | None = None
    host: bool = False
    nonnegative: bool = False


@dataclass(eq=False)
class Source:
    """A tensor of the model file.

    size: how many elements it has. named: its author called it so, and it is of no
    layer. apart: no layer owns it, for it is so named, or read in ways that want it in
    several layouts, or outside of layers. transposed: a matrix that its author keeps as
    (in, out).
    """

    size: int
    named: bool = False
    apart: bool = False
    transposed: bool = False

    def __post_init__(self) -> None:
        self.apart = self.apart or self.named


@dataclass(eq=False)
class Weight(Expression):
    """A tensor from the model file that the module owns.

    read: the array, brought to the layout that the module has.
    trained: a Param (else a Buffer). path: what the file calls it.
    source: what it is read from; the same for all weights that are read from there.
    persistent: the original saves it too: its author's, and no constant of the graph.
    """

    path: str
    dtype: str = field()
    shape: tuple[int, ...] = field()
    read: Callable[[], np.ndarray] = field()
    trained: bool = True
    source: Source | None = None
    persistent: bool = True

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


def walk(*expressions: Expression) -> Iterator[Expression]:
    """The expressions and everything below them, each before what it is made of."""
    waiting = [*reversed(expressions)]
    while waiting:
        expression = waiting.pop()
        yield expression
        if below := expression.children():
            waiting += below[::-1]


def exchanged(values: Mapping[Any, Expression]) -> Change:
    """A substitution of values, which may be extended while it is used."""

    def change(expression: Expression) -> Expression:
        if isinstance(expression, Value):
            return values.get(expression, expression)
        return expression.rebuilt(change)

    return change
