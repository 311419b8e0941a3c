"""Partial dead code elimination: compute only the parts of values that are read.

A walk forward finds values that are zero beside a part, a walk backward values that are
read in part alone; then the calls are written anew. `unread_rows` and `unread_queries`
say which operators compute a part of their result of parts of their arguments.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from burnish.capture import Program
from burnish.capture.line import refs
from burnish.capture.ref import Ref
from burnish.capture.tape import Call
from burnish.operator import Operator
from burnish.ops.arrays.index import getitem, put_at

UNARY = {
    *("gelu", "relu", "swish", "sigmoid", "tanh", "erf", "hard_swish", "leaky_relu"),
    *("softplus", "neg", "square", "exp", "abs_"),
}

BINARY = {"add", "sub", "mul", "div", "dropped"}


class Part(Protocol):
    """A part of values; of one value, equal parts have the same elements.

    cuts: the index that reads it.
    """

    @property
    def cuts(self) -> tuple[int | slice, ...]: ...

    def shape(self, whole: tuple[int, ...]) -> tuple[int, ...]:
        """That of the part of a value of the shape `whole`."""


P = TypeVar("P", bound=Part)


class Rows(NamedTuple):
    """The rows that an index reads, of values of the shape `lead` and a last axis."""

    cuts: tuple[int | slice, ...]
    lead: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        return np.broadcast_to(np.False_, self.lead)[self.cuts].shape

    def shape(self, whole: tuple[int, ...]) -> tuple[int, ...]:
        return (*self.kept, whole[-1])

    def holds(self, item: Any) -> bool:
        """Whether a value has these rows."""
        return isinstance(item, Ref) and item.shape[:-1] == self.lead != item.shape


class Uses(ABC, Generic[P]):
    """How a program's values are used.

    sparse: by place, the part beside which a value is zero. read: the part that is read
    of a value; None where all of it is.
    """

    def __init__(self, program: Program):
        self.fixed = program.fixed
        self.sparse: dict[int, P] = {}
        self.read: dict[int, P | None] = {}
        calls = [line.call for line in program.lines]
        for i, call in enumerate(calls):
            self.find_zeros(i, call)
        for ref in refs(program.results):
            self.read[ref.place] = None
        for i, call in reversed([*enumerate(calls)]):
            self.find_read(i, call)

    @abstractmethod
    def find_zeros(self, i: int, call: Call) -> None:
        """Note whether the results of the call of this index are zero beside a part."""

    @abstractmethod
    def find_read(self, i: int, call: Call) -> None:
        """Note which parts it reads of its arguments."""

    def note(self, ref: Ref, part: P | None) -> None:
        """Note that a part of a value is read; None: all of it."""
        if self.read.setdefault(ref.place, part) != part:
            self.read[ref.place] = None


class Written(Generic[P]):
    """Calls as they are written anew.

    places: how many places of values there are.
    """

    def __init__(self, uses: Uses[P], program: Program):
        self.calls: list[Call] = []
        self.places = program.places
        self._sparse = uses.sparse
        self._some: dict[tuple[int, str], Ref] = {}  # of a value and a part
        self._whole: set[int] = set()  # places of values with zeros that are made

    def known(self, ref: Ref, part: P) -> Ref | None:
        """This part of a value, where there is one."""
        return self._some.get((ref.place, str(part)))

    def know(self, ref: Ref, part: P, some: Ref) -> None:
        """Note that `some` is this part of a value."""
        self._some[ref.place, str(part)] = some

    def part(self, ref: Ref, part: P) -> Ref:
        """This part of a value, read where that has not been done."""
        some = self.known(ref, part)
        if some is None:
            self.fill(ref)
            some = self.new(part.shape(ref.shape), ref.dtype)
            self.calls.append(call_of(getitem, ref, {"index": part.cuts}, some))
            self.know(ref, part, some)
        return some

    def fill(self, value: Any) -> None:
        """Write the values with zeros among these where that has not been done."""
        for ref in refs(value):
            part = self._sparse.get(ref.place)
            if part is not None and ref.place not in self._whole:
                self._whole.add(ref.place)
                options = {"index": part.cuts, "shape": ref.shape}
                self.calls.append(call_of(put_at, self.part(ref, part), options, ref))

    def new(self, shape: tuple[int, ...], dtype: Any) -> Ref:
        self.places += 1
        return Ref(self.places - 1, shape, dtype)


def call_of(function: Any, arg: Ref, options: dict[str, Any], result: Ref) -> Call:
    return Call(function, (arg,), options, result, paused=False, always=False)


def name_of(call: Call) -> str:
    return str(getattr(call.function, "name", ""))


def few_rows(call: Call, name: str) -> Rows | None:
    """The rows that a `getitem` reads, or that a `put_at` gives, if they are few."""
    if not isinstance(call.function, Operator) or call.function.name != name:
        return None
    index = call.options.get("index")
    items = index if isinstance(index, tuple) else (index,)
    given = call.args[0]
    if not isinstance(given, Ref) or not all(map(_is_known, items)):
        return None
    shape = tuple(call.options["shape"]) if name == "put_at" else given.shape
    if not 0 < len(items) < len(shape):
        return None
    rows = Rows(items, shape[:-1])
    few = 0 < 2 * math.prod(rows.kept) <= math.prod(rows.lead)
    return rows if few and rows.kept else None


def _is_known(item: Any) -> bool:
    """Whether a part of an index is a number, or a slice between such."""
    parts = (item.start, item.stop, item.step) if isinstance(item, slice) else (item,)
    return all(type(part) is int or (part is None and len(parts) > 1) for part in parts)
