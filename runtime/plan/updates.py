"""Updates: operands of optimizers' records, in each run of a training step's plan.

A record writes a parameter's new values over the old ones. An array that was read never
changes: where anybody else has it, or a part of it, the record gets a copy. Until it is
done, others who read or assign the parameter wait.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from burnish.backend import Array
from burnish.backend.cuda.graphs.live import value_of
from burnish.kernels.direct import address
from burnish.kernels.interpreter import is_cpython
from burnish.kernels.records import BY_NAME, WORDS
from burnish.nn.core.param import Loan, Param
from burnish.optim.core.optimizer import Turns
from burnish.optim.core.rates import rates_of
from burnish.plan.cpu.updates import Update


class Updates:
    """The updates of a plan; records: its table, whose numbers each run writes."""

    def __init__(self, made: Sequence[Update], steps: Sequence[Any], records: Array):
        rows = {id(step): row for row, step in enumerate(steps)}
        self._made = [(rows[id(each.step)], each) for each in made]
        self._rules = {id(u.rule): (u.rule, u.rule.slots(), u.rule.clip) for u in made}
        by_rule: dict[int, list[tuple[int, Update]]] = {}
        for row, each in self._made:
            by_rule.setdefault(id(each.rule), []).append((row, each))
        self._by_rule = [Batch(some) for some in by_rule.values()]
        self._seen: dict[int, _Seen] = {}
        self._words = records.view(np.int64).reshape(-1, WORDS)
        self._reals = records.view(np.float64).reshape(-1, WORDS)

    @property
    def are_current(self) -> bool:
        """Whether the rules have the kernels, the state and the limits of the plan."""
        return all(
            rule.has_records and rule.slots() == slots and rule.clip == clip
            for rule, slots, clip in self._rules.values()
        )

    @property
    def are_known(self) -> bool:
        """Whether the rules have numbers for the next step at its rates."""
        return all(
            some.made[0][1].rule.are_known(some.rates()) for some in self._by_rule
        )

    def within(self, first: int, behind: int) -> Batch | None:
        """The updates among these records, each with its own; None without any."""
        made = [(row, each) for row, each in self._made if first <= row < behind]
        return Batch(made) if made else None

    def begin(
        self,
        some: Batch,
        values: Sequence[Any],
        pointers: Array,
        alive: dict[int, Any],
    ) -> Updating:
        """Let the records of some updates have their arrays and numbers."""
        rates = [rate for _, rate in some.rates()]
        updating = Updating()
        try:
            updating.take_turns(each.rule.turns for _, each in some.made)
            self._point(some, values, pointers, alive, rates, updating)
        except BaseException:
            updating.take_back()
            raise
        return updating

    def _point(
        self,
        some: Batch,
        values: Sequence[Any],
        pointers: Array,
        alive: dict[int, Any],
        rates: list[Any],
        updating: Updating,
    ) -> None:
        numbers: dict[Any, tuple[str, dict[str, Any], list[int]]] = {}
        addresses = []
        for slot in some.weights:
            alive.pop(slot, None)
        updating.take(values[each.place] for _, each in some.made)
        for (row, each), slot, rate in zip(some.made, some.weights, rates, strict=True):
            param: Param = values[each.place]
            array = alive[slot] = updating.of(param)
            seen = self._seen.get(row)
            if seen is None or not each.rule.is_begun(each.path, seen.state):
                state = each.rule.begun(each.path, param, array)
                seen = self._seen[row] = _Seen(each, state)
            key = id(each.rule), seen.state["step"], rate
            if key not in numbers:
                numbers[key] = each.step.kind, each.rule.numbers(seen.state, rate), []
            numbers[key][2].append(row)
            if each.code is not None:
                code = numbers[key][1]["code"]
                pointers[each.code.buffer.slot] = address(code)
                alive[each.code.buffer.slot] = code
            addresses += seen.found(array)
        pointers[some.slots] = addresses
        for kernel, now, rows in numbers.values():
            self._write(kernel, rows, now)

    def _write(self, kernel: str, rows: list[int], numbers: dict[str, Any]) -> None:
        """Numbers of records that are of one kernel."""
        at = np.array(rows)[:, None]
        for table, (columns, fields) in zip(
            (self._words, self._reals), _columns(kernel), strict=True
        ):
            if fields:
                table[at, columns] = [numbers[field] for field in fields]


@functools.cache
def _columns(kernel: str) -> list[tuple[Array, list[str]]]:
    """Places and names of the numbers that a step gives, whole ones and real ones."""
    record = BY_NAME[kernel]
    found: list[list[tuple[int, str]]] = [[], []]
    for column, field in enumerate(record.fields, 2):
        if field not in record.references and field != "count":
            found[field in record.reals].append((column, field))
    return [(np.array([c for c, _ in one]), [f for _, f in one]) for one in found]


class Batch:
    """Updates that begin together, and what is the same in each of their runs.

    made: each with the row of its record. weights: the slots of their parameters.
    slots: of parameters and states, in the order of `_Seen.found`.
    """

    def __init__(self, made: Sequence[tuple[int, Update]]):
        self.made = made
        self.weights = [each.weight.root.buffer.slot for _, each in made]
        spots = [
            s for _, each in made for s in (each.weight.root, *each.slots.values())
        ]
        self.slots = np.array([spot.buffer.slot for spot in spots])
        self._paths: dict[tuple[int, int], list[Update]] = {}
        for _, each in made:
            self._paths.setdefault((id(each.rate), id(each.module)), []).append(each)

    def rates(self) -> Iterator[tuple[str, Any]]:
        """The path and the rate of each, in this step."""
        found = {
            key: rates_of(
                value_of(some[0].rate), some[0].module, [u.path for u in some]
            )
            for key, some in self._paths.items()
        }
        for _, each in self.made:
            yield each.path, found[id(each.rate), id(each.module)][each.path]


class _Seen:
    """The state of an update's last run, and where its arrays are."""

    def __init__(self, each: Update, state: dict[str, Any]):
        self.state = state
        self._arrays = [state[name] for name in each.slots]  # kept for their addresses
        self._base: Any = None
        self._places = [0, *map(address, self._arrays)]

    def found(self, weight: Array) -> list[int]:
        """The addresses of the weight, which is all of its memory, and of the state."""
        if weight.base is not self._memory():
            self._base, self._places[0] = weakref.ref(weight.base), address(weight)
        return self._places

    def _memory(self) -> Any:
        return self._base and self._base()


class Updating:
    """Parameters and states that records write to: who asks for one meanwhile waits."""

    def __init__(self) -> None:
        self._turns: list[Turns] = []
        self._taken: dict[int, tuple[Param, Array, Loan]] = {}  # with the old values
        self._is_done = threading.Event()

    def take_turns(self, turns: Iterable[Turns]) -> None:
        """Take optimizers' states, in one order, and before any parameter."""
        by_id = {id(each): each for each in turns}
        for key in sorted(by_id):
            by_id[key].take()
            self._turns.append(by_id[key])

    def take(self, params: Iterable[Param]) -> None:
        """Take parameters' values into memory that nobody else has.

        All plans take them in one order: none waits for another that waits for it.
        """
        by_id, may_keep = {id(param): param for param in params}, is_cpython()
        for key in sorted(by_id):
            self._take(by_id[key], may_keep)

    def of(self, param: Param) -> Array:
        """The values of a parameter that was taken."""
        return self._taken[id(param)][2].array

    def _take(self, param: Param, may_keep: bool) -> None:
        loan = Loan(self._is_done)
        held = [param.borrow(loan)]  # whoever read it before is seen now, no one later
        try:
            loan.array = _own(held, may_keep)
        except BaseException:
            loan.array = held[0]
            param.end_loan(loan)
            raise
        self._taken[id(param)] = param, held.pop(), loan

    def end(self) -> None:
        """Give the parameters their new values."""
        for param, _, loan in self._taken.values():
            param.end_loan(loan)
        self._finish()

    def take_back(self) -> None:
        """Give the parameters the values that they had."""
        for param, value, loan in self._taken.values():
            loan.array = value
            param.end_loan(loan)
        self._finish()

    def _finish(self) -> None:
        self._is_done.set()
        while self._turns:
            self._turns.pop().release()


def _own(held: list[Array], may_keep: bool) -> Array:
    """An array as one whose memory nobody else has; held: the one place that has it.

    may_keep: whether counts of references tell that nobody has.
    """
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
    if is_whole and may_keep and _holders(held) == _ALONE:
        return held[0].view()
    return np.array(held[0], np.float32, order="C").view()


def _holders(held: list[Array]) -> tuple[int, int]:
    """How many references there are to an array, and to its memory."""
    value = held[0]
    return sys.getrefcount(value), sys.getrefcount(value.base)


_ALONE = _holders([np.zeros(1, np.float32).view()])
