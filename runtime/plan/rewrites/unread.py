"""Rows that nobody reads are not computed, nor are gradients that are zero for them.

`x[:, 0]` of what layers give that compute each row by itself, as linear layers, norms
and element-wise operators do, is what they give for `x[:, 0]`; and a gradient that is
zero but for these rows is computed for these alone. What is not computed passes no NaN
and no infinity on: not to the results, as in a plain call, and not to gradients.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from burnish._engine.pytree import leaves
from burnish.capture import Program
from burnish.capture.gradients import Pull
from burnish.capture.line import refs
from burnish.capture.ref import Ref
from burnish.capture.tape import Call
from burnish.operator import Operator
from burnish.ops.arrays.index import getitem, put_at

_LAYERS = {"linear", "layer_norm_from", "rms_norm_from"}
"""Operators of the last axis of their first argument; all others are parameters."""

UNARY = {
    *("gelu", "relu", "swish", "sigmoid", "tanh", "erf", "hard_swish", "leaky_relu"),
    *("softplus", "neg", "square", "exp", "abs_"),
}

BINARY = {"add", "sub", "mul", "div", "dropped"}

_KEEP_ZEROS = {"add": all, "sub": all, "mul": any, "dropped": any, "neg": all}
"""Operators that give zeros where all, or any, of their arguments are zeros."""


class _Rows(NamedTuple):
    """The rows that an index reads, of values of the shape `lead` and a last axis."""

    part: tuple[int | slice, ...]
    lead: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        return np.broadcast_to(np.False_, self.lead)[self.part].shape

    def holds(self, item: Any) -> bool:
        """Whether a value has these rows."""
        return isinstance(item, Ref) and item.shape[:-1] == self.lead != item.shape


def without_unread_rows(program: Program) -> None:
    """Compute only the rows that are read, where that is at most half of them."""
    work = _Work(program)
    if work.rows:
        written = _Written(work, program)
        program.replace(written.calls, written.places)


class _Work:
    """What of a program is computed for some rows alone.

    rows: of calls, by their index. sparse: values that are zero but for these rows.
    read: values of which these rows are read alone; None for others that are read.
    heads: the calls that read rows of values, by the value's place.
    """

    def __init__(self, program: Program):
        self._fixed = program.fixed
        self._calls = [line.call for line in program.lines]
        self.rows: dict[int, _Rows] = {}
        self._sparse: dict[int, _Rows] = {}
        self._read: dict[int, _Rows | None] = {}
        self._heads: dict[int, int] = {}
        for i, call in enumerate(self._calls):
            self._find_zeros(i, call)
        for ref in refs(program.results):
            self._read[ref.place] = None
        for i, call in reversed([*enumerate(self._calls)]):
            self._find_read(i, call)

    def _find_zeros(self, i: int, call: Call) -> None:
        """Note whether a call's results are zero but for some rows."""
        rows = few_rows(call, "put_at")
        if rows is not None:
            self._sparse[call.results.place] = rows
            return
        name, args = name_of(call), call.args
        known = [self._sparse.get(a.place) for a in args if isinstance(a, Ref)]
        rows = next((each for each in known if each is not None), None)
        if rows is None:
            return
        if isinstance(call.function, Pull):
            of = call.function.of
            is_first = isinstance(args[0], Ref) and args[0].place in self._sparse
            if (
                is_first
                and of.name not in BINARY
                and self._is_by_row(of, args[2:], rows, call.function.options)
            ):
                self.rows[i] = rows
                if call.results[0] is not None:
                    self._sparse[call.results[0].place] = rows
            return
        zeros = _KEEP_ZEROS.get(name)
        if zeros is None or not self._is_by_row(call.function, args, rows, {}):
            return
        of_rows = [isinstance(a, Ref) and a.place in self._sparse for a in args]
        if zeros(of_rows) and all(each in (None, rows) for each in known):
            self.rows[i] = rows
            self._sparse[call.results.place] = rows

    def _find_read(self, i: int, call: Call) -> None:
        """Note which rows a call reads of its arguments."""
        rows = few_rows(call, "getitem")
        if rows is not None:
            place = call.args[0].place
            is_first = place not in self._heads
            self._note(call.args[0], rows if is_first else None)
            self._heads[place] = i
            return
        made = call.results
        if i not in self.rows and isinstance(made, Ref) and not call.always:
            rows = self._read.get(made.place)
            if rows is not None and self._is_by_row(
                call.function, call.args, rows, call.options
            ):
                self.rows[i] = rows
        rows = self.rows.get(i)
        for ref in refs((call.args, call.options)):
            is_of_rows = rows is not None and self._is_given(ref, call, rows)
            self._note(ref, rows if is_of_rows else None)

    def _note(self, ref: Ref, rows: _Rows | None) -> None:
        if self._read.setdefault(ref.place, rows) != rows:
            self._read[ref.place] = None

    def _is_by_row(self, function: Any, args: Any, rows: _Rows, options: Any) -> bool:
        """Whether an operator computes each of these rows by itself."""
        if not isinstance(function, Operator) or not args:
            return False
        name, first = function.name, args[0]
        if name in _LAYERS:
            options = {**function.defaults, **options}
            is_last = options.get("axis", -1) == -1
            behind = args[2:] if name == "linear" else args[1:]
            same = all(len(each.shape) < 2 for each in _arrays(behind))
            others = [ref for ref in refs(args[1:]) if ref.place not in self._fixed]
            return is_last and same and not others and self._has_rows(first, rows)
        if name in UNARY:
            return len(_arrays(args)) == 1 and self._has_rows(first, rows)
        if name not in BINARY:
            return False
        arrays = _arrays(args)
        width = max((each.shape[-1:] for each in arrays), default=())
        return any(rows.holds(each) for each in arrays) and all(
            len(each.shape) < 2
            or (self._has_rows(each, rows) and each.shape[-1:] == width)
            for each in arrays
        )

    def _has_rows(self, item: Any, rows: _Rows) -> bool:
        return rows.holds(item) and item.place not in self._fixed

    def _is_given(self, ref: Ref, call: Call, rows: _Rows) -> bool:
        """Whether an argument of such a call is one of rows."""
        if isinstance(call.function, Pull):
            is_one = any(ref is each for each in call.args[:3])
            return is_one and self._has_rows(ref, rows)
        if name_of(call) in _LAYERS:
            return ref is call.args[0]
        return self._has_rows(ref, rows)

    def zeros_beside(self, ref: Ref) -> _Rows | None:
        """The rows beside which a value is zero; None where it has no such."""
        return self._sparse.get(ref.place)

    def head(self, ref: Ref) -> int | None:
        """The call that reads the rows of a value that is computed for them alone."""
        return None if ref.place in self._sparse else self._heads.get(ref.place)

    def given(self, call: Call, rows: _Rows) -> list[bool]:
        """Which arguments of such a call are of rows."""
        return [
            isinstance(arg, Ref) and self._is_given(arg, call, rows)
            for arg in call.args
        ]


class _Written:
    """A program's calls, with those of rows in their place.

    places: how many places of values there are.
    """

    def __init__(self, work: _Work, program: Program):
        self.calls: list[Call] = []
        self.places = program.places
        self._work = work
        self._some: dict[tuple[int, str], Ref] = {}  # of a value and an index
        self._whole: set[int] = set()  # places of values with zeros that are made
        self._dropped: set[int] = set()
        lines = [line.call for line in program.lines]
        for i, call in enumerate(lines):
            rows = work.rows.get(i)
            if i in self._dropped:
                continue
            if rows is None:
                self._write(call)
            else:
                self._write_rows(call, rows, lines)
        self._fill(program.results)

    def _write(self, call: Call) -> None:
        self._fill((call.args, call.options))
        read, put = few_rows(call, "getitem"), few_rows(call, "put_at")
        if put is not None:  # written where somebody reads all of it
            self._some[call.results.place, str(put.part)] = call.args[0]
            return
        self.calls.append(call)
        if read is not None:
            key = call.args[0].place, str(read.part)
            self._some.setdefault(key, call.results)

    def _write_rows(self, call: Call, rows: _Rows, lines: list[Call]) -> None:
        args = [
            self._rows(arg, rows) if is_given else arg
            for arg, is_given in zip(
                call.args, self._work.given(call, rows), strict=True
            )
        ]
        self._fill(args)
        is_one = isinstance(call.results, Ref)
        results = [call.results] if is_one else [*call.results]
        if (first := results[0]) is not None:
            head = self._work.head(first)
            if head is None:
                results[0] = self._new(first, rows)
            else:
                self._dropped.add(head)
                results[0] = lines[head].results
            self._some[first.place, str(rows.part)] = results[0]
        own = results[0] if is_one else type(call.results)(results)
        self.calls.append(call._replace(args=tuple(args), results=own))

    def _rows(self, ref: Ref, rows: _Rows) -> Ref:
        """These rows of a value, read where that has not been done."""
        key = ref.place, str(rows.part)
        if key not in self._some:
            self._fill(ref)
            self._some[key] = self._new(ref, rows)
            options = {"index": rows.part}
            self.calls.append(call_of(getitem, ref, options, self._some[key]))
        return self._some[key]

    def _fill(self, value: Any) -> None:
        """Write the values with zeros among these where that has not been done."""
        for ref in refs(value):
            rows = self._work.zeros_beside(ref)
            if rows is not None and ref.place not in self._whole:
                self._whole.add(ref.place)
                options = {"index": rows.part, "shape": ref.shape}
                self.calls.append(call_of(put_at, self._rows(ref, rows), options, ref))

    def _new(self, ref: Ref, rows: _Rows) -> Ref:
        """A place for these rows of a value."""
        self.places += 1
        return Ref(self.places - 1, (*rows.kept, ref.shape[-1]), ref.dtype)


def call_of(function: Any, arg: Ref, options: dict[str, Any], result: Ref) -> Call:
    return Call(function, (arg,), options, result, paused=False, always=False)


def _arrays(args: Any) -> list[Any]:
    """The values among arguments, and the arrays of NumPy, which stay as they are."""
    return [each for each in leaves(args) if hasattr(each, "shape")]


def name_of(call: Call) -> str:
    return str(getattr(call.function, "name", ""))


def few_rows(call: Call, name: str) -> _Rows | None:
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
    rows = _Rows(items, shape[:-1])
    few = 0 < 2 * math.prod(rows.kept) <= math.prod(rows.lead)
    return rows if few and rows.kept else None


def _is_known(item: Any) -> bool:
    """Whether a part of an index is a number, or a slice between such."""
    parts = (item.start, item.stop, item.step) if isinstance(item, slice) else (item,)
    return all(type(part) is int or (part is None and len(parts) > 1) for part in parts)
