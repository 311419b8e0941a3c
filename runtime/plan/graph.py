"""The plan's graph: nodes between a captured program and its steps.

A node is one call of the program, or several that a rule has joined. It keeps their
lines: where no rule computes the node, these run eagerly.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish._engine.pytree import mapped
from burnish.autodiff import Variable
from burnish.capture import Program
from burnish.capture.gradients import Pull
from burnish.capture.line import Line, refs
from burnish.capture.ref import Ref
from burnish.capture.step import changes, is_assignment, is_update
from burnish.draws import keep_mask
from burnish.nn.core.param import Stored
from burnish.nn.embedding import from_quantized
from burnish.nn.losses.classification import target_classes
from burnish.nn.lowbit.input_quantizer import calibrated
from burnish.nn.norms.batch_norm import counted, moved_towards
from burnish.operator import Operator
from burnish.ops.arrays.gather import places_along, places_of
from burnish.ops.spatial.grid_sample import grid_sample
from burnish.steps import DRAWS
from burnish.tensor import Tensor

Array = np.ndarray[Any, Any]


STEPS: dict[Callable[..., Any], str] = {
    calibrated: "calibrated",
    counted: "counted",
    from_quantized: "from_quantized",
    grid_sample: "grid_sample",
    keep_mask: "keep_mask",
    places_along: "places_along",
    places_of: "places_of",
    moved_towards: "moved_towards",
    target_classes: "target_classes",
    Tensor.detach: "detach",
    Tensor.astype: "cast",
    Tensor.to: "cast",
}
"""Steps beside operators that kernels may compute, by what nodes call them."""


@dataclasses.dataclass(eq=False, slots=True)
class Value:
    """A tensor of the program: an argument, or a node's result."""

    place: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclasses.dataclass(eq=False, slots=True)
class Constant:
    """An array that parameters alone decide: made once for each of their values.

    stored: the parameter that it is, or that it has the parts of; None for another one.
    """

    make: Callable[[], Array]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sources: tuple[Stored, ...] = ()
    stored: Stored | None = None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.itemsize

    def then(self, change: Callable[..., Array], *others: Constant | None) -> Constant:
        """The constant `change(self, *others)`, computed when asked for."""
        return combined(change, self, *others)


def combined(change: Callable[..., Array], *parts: Constant | None) -> Constant:
    """The constant `change(*parts)`; computed once here to learn its shape."""

    def make() -> Array:
        return change(*(None if part is None else part.make() for part in parts))

    made = make()
    sources = {id(s): s for part in parts if part is not None for s in part.sources}
    return Constant(make, made.shape, made.dtype, tuple(sources.values()))


def constant(array: Any) -> Constant:
    """An array that nothing changes."""
    held = np.asarray(array)
    return Constant(lambda: held, held.shape, held.dtype)


@dataclasses.dataclass(eq=False, slots=True)
class Node:
    """One step: an operator's name, its arguments, and the values that it gives.

    args: Values, Constants, numbers, or None. lines: of the program. act: what is
    applied to the result, a name of records.ACTIVATIONS and its two numbers.
    """

    name: str
    args: list[Any]
    options: dict[str, Any]
    results: list[Value]
    lines: list[Line]
    act: tuple[str, float, float] = ("none", 0.0, 0.0)
    _reads: set[int] | None = None

    @property
    def result(self) -> Value:
        return self.results[0]

    @property
    def reads(self) -> set[int]:
        """The places of all that its lines read and do not give."""
        if self._reads is None:
            given = [line.call for line in self.lines]
            made = {ref.place for call in given for ref in refs(call.results)}
            read = {ref.place for c in given for ref in refs((c.args, c.options))}
            self._reads = read - made
        return self._reads

    def read(self, places: set[int]) -> None:
        """Say what it reads, where that is not what its lines do."""
        self._reads = places

    @property
    def label(self) -> str:
        """The node's functions, in words."""
        return " + ".join(line.label for line in self.lines)


class Graph:
    """The nodes of a program, in order, and who reads which value.

    changed: the places of parameters and buffers that an update gives new values.
    halves: by place, what values outside of records are whose dtype is float16 there.
    """

    def __init__(self, program: Program):
        self.program = program
        self.values: dict[int, Value] = {}
        self.constants: dict[int, Constant] = {}
        self.folded: dict[int, Constant] = {}
        self.halves: dict[int, Value] = {}
        self.changed = {place for line in program.lines for place in changes(line.call)}
        for place, item in program.fixed.items():
            if not item.derived and place not in self.changed:
                self.constants[place] = _held(item)
        self.nodes = [self._node(line) for line in program.lines]
        self.results = {ref.place for ref in refs(program.results)}

    def _node(self, line: Line) -> Node:
        call = line.call
        args = [
            mapped(arg, self._argument)
            if isinstance(arg, dict)
            else self._argument(arg)
            for arg in call.args
        ]
        results = [self.value(ref) for ref in refs(call.results)]
        function = call.function
        known = isinstance(function, Operator) and line.plain and not call.always
        name = function.name if known else _step_name(function)
        defaults = function.defaults if known else {}
        if name == "cast":
            args, defaults = args[:1], {"dtype": results[0].dtype}
        if isinstance(function, Pull):
            name, defaults = function.name, {**function.of.defaults, **function.options}
        if is_update(call):
            name = "update"
        elif is_assignment(call):
            name = "assign"
        if known and not function.variadic:
            args += [None] * (len(function.arguments) - len(args))
        return Node(name, args, {**defaults, **call.options}, results, [line])

    def _argument(self, arg: Any) -> Any:
        if isinstance(arg, Ref):
            return self.constants.get(arg.place) or self.value(arg)
        if isinstance(arg, np.ndarray):
            return constant(arg)
        return arg

    def value(self, ref: Ref) -> Value:
        if ref.place not in self.values:
            value = Value(ref.place, ref.shape, np.dtype(ref.dtype))
            self.values[ref.place] = value
        return self.values[ref.place]

    def readers(self) -> dict[int, list[Node]]:
        """The readers of a value, by its place."""
        found: dict[int, list[Node]] = {}
        for node in self.nodes:
            for place in node.reads:
                found.setdefault(place, []).append(node)
        return found

    def makers(self) -> dict[int, Node]:
        """The producer of a value, by its place."""
        return {value.place: node for node in self.nodes for value in node.results}


def _step_name(function: Callable[..., Any]) -> str:
    return STEPS.get(function) or ("draw" if function in DRAWS else "other")


def changed_by(node: Node) -> list[int]:
    """The places of the parameters and buffers that a node gives new values."""
    return [place for line in node.lines for place in changes(line.call)]


def assigned(program: Program) -> set[int]:
    """The `id` of each parameter and buffer that a program itself gives new values."""
    places = {place for line in program.lines for place in changes(line.call)}
    return {id(program.fixed[place]) for place in places}


def _held(item: Variable) -> Constant:
    shape, dtype = tuple(item.shape), np.dtype(item.dtype)
    if isinstance(item, Stored):
        return Constant(lambda: item.data, shape, dtype, (item,), item)
    array = item.data
    return Constant(lambda: array, shape, dtype)
