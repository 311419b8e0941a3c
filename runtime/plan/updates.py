"""Updates: what optimizers' records read and write, in each run of a step's plan.

A record writes a parameter's new values over the old ones. An array that was read never
changes: where anybody else has it, or a part of it, the record gets a copy. Until it is
done, others who ask for the parameter wait.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from burnish.backend import Array
from burnish.backend.cuda.graphs.live import value_of
from burnish.kernels.direct import address
from burnish.kernels.records import BY_NAME, WORDS
from burnish.kernels.same import is_cpython
from burnish.nn.core.param import Param
from burnish.optim.rates import rates_of
from burnish.plan.cpu.updates import Update


class Updates:
    """The updates of a plan; records: its table, whose numbers each run writes."""

    def __init__(self, made: Sequence[Update], steps: Sequence[Any], records: Array):
        rows = {id(step): row for row, step in enumerate(steps)}
        self._made = [(rows[id(each.step)], each) for each in made]
        self._rules = {id(u.rule): (u.rule, u.rule.slots()) for u in made}
        self._words = records.view(np.int64).reshape(-1, WORDS)
        self._reals = records.view(np.float64).reshape(-1, WORDS)

    @property
    def are_current(self) -> bool:
        """Whether the rules still have the kernels and the state of the plan."""
        return all(
            rule.has_records and rule.slots() == slots
            for rule, slots in self._rules.values()
        )

    def within(self, first: int, behind: int) -> list[tuple[int, Update]]:
        """The updates among these records, each with its own."""
        return [(row, each) for row, each in self._made if first <= row < behind]

    def begin(
        self,
        some: Sequence[tuple[int, Update]],
        values: Sequence[Any],
        pointers: Array,
        alive: dict[int, Any],
    ) -> Updating:
        """Let the records of some updates have their arrays and numbers."""
        rates = _rates(each for _, each in some)
        updating = Updating()
        try:
            self._point(some, values, pointers, alive, rates, updating)
        except BaseException:
            updating.take_back()
            raise
        return updating

    def _point(
        self,
        some: Sequence[tuple[int, Update]],
        values: Sequence[Any],
        pointers: Array,
        alive: dict[int, Any],
        rates: dict[Any, Any],
        updating: Updating,
    ) -> None:
        numbers: dict[Any, Any] = {}
        rows: dict[int, list[int]] = {}
        slots, addresses = [], []
        for row, each in some:
            param: Param = values[each.place]
            slot = each.weight.root.buffer.slot
            alive.pop(slot, None)
            array = alive[slot] = updating.take(param)
            rate = rates[id(each.rate), id(each.module)][each.path]
            state, now = each.rule.begun(each.path, param, array, rate, numbers)
            rows.setdefault(id(now), []).append(row)
            slots.append(slot)
            addresses.append(address(array))
            for name, spot in each.slots.items():
                slots.append(spot.buffer.slot)
                alive[spot.buffer.slot] = state[name]
                addresses.append(address(state[name]))
        pointers[slots] = addresses
        kernels = {row: each.step.kind for row, each in some}
        for now in numbers.values():
            self._write(kernels[rows[id(now)][0]], rows[id(now)], now)

    def _write(self, kernel: str, rows: list[int], numbers: dict[str, Any]) -> None:
        """Numbers of records that are of one kernel."""
        record = BY_NAME[kernel]
        for column, field in enumerate(record.fields, 2):
            if field in record.references or field == "count":
                continue
            table = self._reals if field in record.reals else self._words
            table[rows, column] = numbers[field]


class Updating:
    """Parameters that records write to: who asks for one meanwhile waits."""

    def __init__(self) -> None:
        self._taken: dict[int, tuple[Param, Array, Array]] = {}  # with the old values
        self._is_done = threading.Event()

    def take(self, param: Param) -> Array:
        """The values of a parameter in memory that nobody else has."""
        key = id(param)
        if key in self._taken:  # of an update before, in the same records
            return self._taken[key][2]
        held = [param.data]

        def values(*_: Any) -> Array:
            self._is_done.wait()
            return self._taken[key][2]

        param.lend(values)  # whoever read it before is seen now, and no one later
        try:
            array = _own(held)
        except BaseException:
            param.assign(held[0])
            raise
        self._taken[key] = param, held.pop(), array
        return array

    def end(self) -> None:
        """Give the parameters their new values."""
        for param, _, array in self._taken.values():
            param.assign(array)
        self._is_done.set()

    def take_back(self) -> None:
        """Give the parameters the values that they had."""
        for key, (param, value, _) in self._taken.items():
            param.assign(value)
            self._taken[key] = param, value, value
        self._is_done.set()


def _rates(updates: Iterable[Update]) -> dict[tuple[int, int], Any]:
    """The rates of all paths, by the `id` of the rate and of the module."""
    paths: dict[tuple[int, int], list[Update]] = {}
    for each in updates:
        paths.setdefault((id(each.rate), id(each.module)), []).append(each)
    return {
        key: rates_of(value_of(some[0].rate), some[0].module, [u.path for u in some])
        for key, some in paths.items()
    }


def _own(held: list[Array]) -> Array:
    """An array as one whose memory nobody else has; held: the one place that has it."""
    value = held[0]
    base = value.base
    is_whole = (
        type(base) is np.ndarray
        and base.flags.owndata
        and base.nbytes == value.nbytes
        and value.dtype == np.float32
        and value.flags.c_contiguous
        and value.flags.writeable
    )
    del value, base
    if is_whole and is_cpython() and _holders(held) == _ALONE:
        return held[0].view()
    return np.array(held[0], np.float32, order="C").view()


def _holders(held: list[Array]) -> tuple[int, int]:
    """How many references there are to an array, and to its memory."""
    value = held[0]
    return sys.getrefcount(value), sys.getrefcount(value.base)


_ALONE = _holders([np.zeros(1, np.float32).view()])
