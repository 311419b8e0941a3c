"""Reverse-mode differentiation over recorded operators; it names no operator.

An operator with a recorded argument leaves a `Node` behind its results. `backward`
walks the nodes from the newest to the oldest and asks each operator's rules for the
gradients of its arguments. Nodes hold plain arrays, so a parameter that is given a new
value after the forward pass does not disturb the gradient, and no cycle keeps memory.

With `create_graph=True` the rules run on variables instead of arrays: what they compute
is recorded too, which gives derivatives of any order.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self

from burnish.backend import Array, Device
from burnish.backend.sums import added, ones_like
from burnish.errors import GradientError

_order = itertools.count()


class Recording(threading.local):
    """Whether operators are recorded now, in this thread.

    missed: an operator was not recorded that would have been. replaying: what is
    computed was computed before; effects on modules are not to happen again.
    tape: what writes every call down for a program; see `burnish.capture`.
    """

    paused = False
    missed = False
    replaying = False
    tape: Any = None


recording = Recording()


@contextlib.contextmanager
def no_grad() -> Iterator[None]:
    """Nothing in the `with` block is recorded, also on an autodiff device."""
    before = recording.paused
    recording.paused = True
    try:
        yield
    finally:
        recording.paused = before


class Node:
    """One recorded call: who computed what from which arguments.

    `parents[i]` is None where argument i needs no gradient, else the variable that the
    argument was, as (its node, its place among that node's results).
    """

    __slots__ = (
        "__weakref__",
        "args",
        "operator",
        "options",
        "order",
        "parents",
        "values",
    )

    def __init__(
        self,
        operator: Any = None,
        args: tuple[Any, ...] = (),
        options: dict[str, Any] | None = None,
        parents: tuple[tuple[Node, int] | None, ...] = (),
        values: Any = None,
    ):
        self.operator = operator
        self.args = args
        self.options = options or {}
        self.parents = parents
        self.values = values
        self.order = next(_order)

    def inputs(self) -> tuple[Any, ...]:
        """The arguments' arrays."""
        return self.args

    def outputs(self) -> Any:
        """The array, or the tuple of arrays, that the operator gave."""
        return self.values

    def forget(self) -> None:
        """Let go of what can be computed again."""

    def pull(
        self, incoming: dict[int, Any], like: Variable | None
    ) -> Iterable[tuple[tuple[Node, int] | None, Any]]:
        """The gradients that this node passes on, each with the parent it goes to.

        Either is None where nothing goes. incoming: the gradients of the results, by
        their places. like: None computes on arrays; a variable makes the rules run on
        variables of its kind.
        """
        args, values = self.inputs(), self.outputs()
        gradient = incoming.get(0)
        if isinstance(values, tuple):
            gradient = tuple(map(incoming.get, range(len(values))))
        if like is not None:
            args = tuple(
                like.wrap(arg, _device(arg, like), *parent) if parent else arg
                for arg, parent in zip(args, self.parents, strict=True)
            )
            values = _rewrap(like, self, values)
        needed = [parent is not None for parent in self.parents]
        parts = self.operator.pull(gradient, values, args, self.options, needed)
        return zip(self.parents, parts, strict=True)


class Variable:
    """An array, the device it is on, and the node that recorded it (or None)."""

    __slots__ = ("__weakref__", "data", "device", "index", "node")

    data: Any  #: an Array; packed and derived data are computed when read
    device: Device
    node: Node | None
    index: int

    derived: ClassVar[bool] = False
    """Whether `resolve` has to be asked for the variable that this one represents."""

    def resolve(self) -> Variable:
        """The variable that operators work on instead of this one."""
        return self

    @classmethod
    def wrap(
        cls, data: Array, device: Device, node: Node | None = None, index: int = 0
    ) -> Self:
        """A variable around `data` as it is; no conversion, no copy."""
        made: Self = wrapped(cls.result_type(), data, device, node, index)
        return made

    @classmethod
    def result_type(cls) -> Any:
        """The class that operators on this class return."""
        return cls

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> Any:
        return self.data.dtype


def wrapped(
    kind: Any, data: Array, device: Device, node: Node | None = None, index: int = 0
) -> Any:
    """A variable of a kind that operators return, around `data` as it is."""
    made = object.__new__(kind)
    made.data = data
    made.device = device
    made.node = node
    made.index = index
    return made


class Gradients:
    """The gradients that one `backward()` found, by the tensor they belong to."""

    def __init__(self) -> None:
        self._found: dict[Node, Any] = {}

    def get(self, variable: Variable) -> Any:
        """The gradient of `variable`, or None when the loss does not depend on it."""
        return self._found.get(variable.node) if variable.node else None

    def set(self, variable: Variable, gradient: Any) -> None:
        """Replace the gradient of `variable`, for example by a clipped one.

        Raises GradientError when the variable was not recorded or has another shape.
        """
        if variable.node is None:
            raise GradientError("gradient: the tensor was not recorded")
        if not isinstance(gradient, Variable):
            array = variable.device.put(gradient, variable.dtype)
            gradient = variable.wrap(array, variable.device)
        if tuple(gradient.shape) != tuple(variable.shape):
            raise GradientError(
                f"gradient: expected shape {tuple(variable.shape)}, "
                f"got {tuple(gradient.shape)}"
            )
        self._found[variable.node] = gradient

    def change(self, made: Any) -> None:
        """Replace all gradients: made(arrays) gives as many, in their order."""
        held = self._found
        arrays = made([found.data for found in held.values()])
        for (node, old), array in zip([*held.items()], arrays, strict=True):
            held[node] = old.wrap(array, old.device)

    def replace(self, made: Any) -> None:
        """Replace each gradient by made(gradient)."""
        self._found = {node: made(found) for node, found in self._found.items()}

    def __contains__(self, variable: object) -> bool:
        return isinstance(variable, Variable) and variable.node in self._found

    def remove(self, variable: Variable) -> Any:
        """Take the gradient of `variable` out of the container and return it."""
        return self._found.pop(variable.node, None) if variable.node else None

    def __len__(self) -> int:
        return len(self._found)


def backward(
    output: Variable, gradient: Any = None, *, create_graph: bool = False
) -> Gradients:
    """Gradients of `output` with respect to every leaf it was computed from.

    gradient: what `output`'s own gradient is, same shape; 1 for a single element.
    create_graph: record the computation of the gradients, to differentiate them again.

    Raises GradientError when nothing was recorded, when `output` has more than one
    element and no `gradient` is given, or when an operator on the way has none.
    """
    if recording.tape is not None:
        return recording.tape.backward(output, gradient, create_graph)
    if output.node is None:
        raise GradientError(_unrecorded(output))
    if gradient is None:
        if output.data.size != 1:
            raise GradientError(
                f"backward: expected one element or a gradient of shape "
                f"{output.shape}, got a tensor of shape {output.shape} alone"
            )
        with output.device.computing():
            gradient = ones_like(output.data)
    elif isinstance(gradient, Variable) and not create_graph:
        gradient = gradient.data
    if create_graph and not isinstance(gradient, Variable):
        gradient = output.wrap(gradient, output.device)
    with output.device.computing():
        return _walk(output, gradient, create_graph)


def _walk(output: Variable, gradient: Any, create_graph: bool) -> Gradients:
    assert output.node is not None
    like = output if create_graph else None
    pending: dict[Node, dict[int, Any]] = {}
    queue: list[tuple[int, Node]] = []
    leaves: list[Node] = []

    def passed(source: Node, index: int, part: Any) -> None:
        waiting = pending.get(source)
        if waiting is None:
            pending[source] = {index: part}
            if source.operator is None:
                leaves.append(source)
            else:
                heapq.heappush(queue, (-source.order, source))
        elif index in waiting:
            waiting[index] = added(waiting[index], part)
        else:
            waiting[index] = part

    passed(output.node, output.index, gradient)
    while queue:
        _, node = heapq.heappop(queue)
        for parent, part in node.pull(pending.pop(node), like):
            if parent is not None and part is not None:
                passed(*parent, part)
        node.forget()
    found = Gradients()
    for leaf in sorted(leaves, key=_age):
        part = pending[leaf][0]
        if not isinstance(part, Variable):
            part = output.wrap(part, _device(part, output))
        found._found[leaf] = part
    return found


def _age(node: Node) -> int:
    """The newest first: an order that does not depend on what was computed."""
    return -node.order


def _rewrap(like: Variable, node: Node, values: Any) -> Any:
    if isinstance(values, tuple):
        return tuple(
            like.wrap(value, _device(value, like), node, i)
            for i, value in enumerate(values)
        )
    return like.wrap(values, _device(values, like), node)


def _device(array: Array, like: Variable) -> Device:
    """Where an array of the graph is: with `like`, unless the graph changed devices."""
    if type(array) is type(like.data) and not Device.is_several:
        return like.device
    place = Device.of(array)
    return like.device if place is like.device.inner() else place.autodiff()


def _unrecorded(output: Variable) -> str:
    if output.device.is_autodiff:
        return "backward: no parameter that requires a gradient led to this tensor"
    return (
        f"backward: expected a tensor on an autodiff device, got one on "
        f"'{output.device}'; move the model with .to('{output.device}:autodiff')"
    )
