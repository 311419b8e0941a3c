"""A plan of a file that is bound to a library and to a model: it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish import ops
from burnish.autodiff import Variable
from burnish.backend import Device
from burnish.kernels import Library, num_threads
from burnish.kernels.direct import address
from burnish.kernels.records import WORDS
from burnish.operator import registry
from burnish.planned import words
from burnish.planned.eager import array_call
from burnish.planned.file import Call, Parts
from burnish.planned.space import Ends, Fault, Fetch, Space, point
from burnish.tensor import Tensor

_CPU = Device("cpu")
_RECORD = 8 * WORDS


def callables() -> dict[str, Any]:
    """The functions that a plan may call, by name: operators, and two more."""
    from burnish.ops._shapes import values

    for name in vars(ops)["__all__"]:
        getattr(ops, name)  # imports its module
    return {**registry, "Tensor.to": Tensor.to, "values": values}


class Ready:
    """Computes what a model gives for arguments of one kind; called with its tensors.

    constants: the bytes of all packed arrays, mapped. held: parameters and buffers of
    the model by path.
    """

    def __init__(
        self, parts: Parts, library: Library, constants: Any, held: dict[str, Any]
    ):
        self.parts, self._library, self._constants = parts, library, constants
        self._records = np.ascontiguousarray(parts.records)
        self._address = address(self._records)
        self._starts = parts.slots[:, 0]
        self._packed = self._starts >= 0
        self._base = address(constants)
        self._held = {place: held[path] for place, path in parts.held.items()}
        self._calls = {
            number: _Bound(segment)
            for number, segment in enumerate(parts.segments)
            if isinstance(segment, Call)
        }
        shares = parts.records[:, 1]
        self._is_split = [
            not isinstance(each, Call) and bool((shares[slice(*each)] > 1).any())
            for each in parts.segments
        ]
        self._folded = {
            place: Tensor.wrap(_array(constants, start, shape, dtype), _CPU)
            for place, start, shape, dtype in parts.folded
        }
        kinds = [parts.kinds[place] for place in parts.takes]
        self._ends = Ends(
            [Fetch(p, slot, 0, kinds[p][1], kinds[p][0]) for p, slot in parts.given],
            parts.fetched,
            parts.outside,
            parts.faults,
            not self._calls,
        )
        result = parts.results
        self._only = result[1] if result[0] == "place" else None
        self._free: list[Space] = []

    def __call__(self, given: list[Any]) -> Any:
        """The results for the program's tensors; raises Fault where it has none."""
        try:
            space = self._free.pop()
        except IndexError:
            space = self._space()
        try:
            return self._run(space, given)
        finally:
            self._free.append(space)

    def _space(self) -> Space:
        made = Space(self.parts.arena, len(self.parts.slots))
        made.pointers[self._packed] = self._base + self._starts[self._packed]
        return self._ends.settle(made)

    def _run(self, space: Space, given: list[Any]) -> Any:
        parts, pointers = self.parts, space.pointers
        alive: dict[int, Any] = {}
        values: dict[int, Any] = {**self._held, **self._folded}
        values.update(enumerate(given))
        self._ends.enter(space, alive, values)
        run, threads = self._library.run, num_threads()
        for number, segment in enumerate(parts.segments):
            if isinstance(segment, Call):
                self._calls[number](values, pointers, alive, parts.slots)
                continue
            first, behind = segment
            start = self._address + first * _RECORD
            count = threads if self._is_split[number] else 1
            run(start, behind - first, space.table, count)
        self._ends.leave(space, alive, values)
        if self._only is not None:
            return values[self._only]
        return words.read(parts.results, values.__getitem__)


class _Bound:
    """A call between records, with the operator that it names."""

    def __init__(self, call: Call):
        self._call, self._function = call, callables()[call.name]
        self._compute: Callable[[list[Any]], Any] | None = None
        with contextlib.suppress(_Within):
            known = [
                None if entry[0] == "place" else words.read(entry, _no_place)
                for entry in call.args[1]
            ]
            options = words.read(call.options, _no_place)
            self._compute = array_call(self._function, known, options)

    def __call__(
        self, values: dict[int, Any], pointers: Any, alive: dict[int, Any], slots: Any
    ) -> None:
        call = self._call
        for fetch in call.fetched:
            values[fetch.place] = fetch.of(alive)
        made = self._made(words.read(call.args, values.__getitem__), values)
        results = made if isinstance(made, tuple | list) else [made]
        for (place, shape), each in zip(call.results, results, strict=True):
            if tuple(each.shape) != shape:
                raise Fault
            values[place] = each
        for place, slot in call.given:
            item = values[place]
            array = item.data if isinstance(item, Variable) else item
            if array.nbytes < slots[slot, 1]:
                raise Fault
            point(pointers, alive, slot, array)

    def _made(self, args: tuple[Any, ...], values: dict[int, Any]) -> Any:
        """The results; an operator that fails is called again to say what was wrong."""
        if self._compute is not None:
            with contextlib.suppress(Exception):
                return self._compute(list(args))
        options = words.read(self._call.options, values.__getitem__)
        return self._function(*args, **options)


class _Within(Exception):
    """A value of the run is within a container, or among options."""


def _no_place(place: int) -> Any:
    raise _Within


def _array(constants: Any, start: int, shape: tuple[int, ...], dtype: Any) -> Any:
    return np.ndarray(shape, dtype, constants, start)
