"""Partial dead code elimination in row-wise layers: rows that nobody reads.

`x[:, 0]` of what layers give that compute each row by itself, as linear layers, norms
and element-wise operators do, is what they give for `x[:, 0]`; and a gradient that is
zero but for these rows is computed for these alone. What is not computed passes no NaN
and no infinity on: not to the results, as in a plain call, and not to gradients.
"""

from __future__ import annotations

from typing import Any

from burnish._engine.pytree import leaves
from burnish.capture import Program
from burnish.capture.gradients import Pull
from burnish.capture.line import refs
from burnish.capture.ref import Ref
from burnish.capture.tape import Call
from burnish.operator import Operator
from burnish.plan.rewrites.unread import (
    BINARY,
    UNARY,
    Rows,
    Uses,
    Written,
    few_rows,
    name_of,
)

_LAYERS = {"linear", "layer_norm_from", "rms_norm_from"}
"""Operators of the last axis of their first argument; all others are parameters."""

_KEEP_ZEROS = {"add": all, "sub": all, "mul": any, "dropped": any, "neg": all}
"""Operators that give zeros where all, or any, of their arguments are zeros."""


def without_unread_rows(program: Program) -> None:
    """Compute only the rows that are read, where that is at most half of them."""
    work = _Work(program)
    if work.rows:
        written = _Written(work, program)
        program.replace(written.calls, written.places)


class _Work(Uses[Rows]):
    """What of a program is computed for some rows alone.

    rows: of calls, by their index. heads: the calls that read rows of values, by the
    value's place.
    """

    def __init__(self, program: Program):
        self.rows: dict[int, Rows] = {}
        self._heads: dict[int, int] = {}
        super().__init__(program)

    def find_zeros(self, i: int, call: Call) -> None:
        """Note whether a call's results are zero but for some rows."""
        rows = few_rows(call, "put_at")
        if rows is not None:
            self.sparse[call.results.place] = rows
            return
        name, args = name_of(call), call.args
        known = [self.sparse.get(a.place) for a in args if isinstance(a, Ref)]
        rows = next((each for each in known if each is not None), None)
        if rows is None:
            return
        if isinstance(call.function, Pull):
            of = call.function.of
            is_first = isinstance(args[0], Ref) and args[0].place in self.sparse
            if (
                is_first
                and of.name not in BINARY
                and self._is_by_row(of, args[2:], rows, call.function.options)
            ):
                self.rows[i] = rows
                if call.results[0] is not None:
                    self.sparse[call.results[0].place] = rows
            return
        zeros = _KEEP_ZEROS.get(name)
        if zeros is None or not self._is_by_row(call.function, args, rows, {}):
            return
        of_rows = [isinstance(a, Ref) and a.place in self.sparse for a in args]
        if zeros(of_rows) and all(each in (None, rows) for each in known):
            self.rows[i] = rows
            self.sparse[call.results.place] = rows

    def find_read(self, i: int, call: Call) -> None:
        """Note which rows a call reads of its arguments."""
        rows = few_rows(call, "getitem")
        if rows is not None:
            place = call.args[0].place
            is_first = place not in self._heads
            self.note(call.args[0], rows if is_first else None)
            self._heads[place] = i
            return
        made = call.results
        if i not in self.rows and isinstance(made, Ref) and not call.always:
            rows = self.read.get(made.place)
            if rows is not None and self._is_by_row(
                call.function, call.args, rows, call.options
            ):
                self.rows[i] = rows
        rows = self.rows.get(i)
        for ref in refs((call.args, call.options)):
            is_of_rows = rows is not None and self._is_given(ref, call, rows)
            self.note(ref, rows if is_of_rows else None)

    def _is_by_row(self, function: Any, args: Any, rows: Rows, options: Any) -> bool:
        """Whether an operator computes each of these rows by itself."""
        if not isinstance(function, Operator) or not args:
            return False
        name, first = function.name, args[0]
        if name in _LAYERS:
            options = {**function.defaults, **options}
            is_last = options.get("axis", -1) == -1
            behind = args[2:] if name == "linear" else args[1:]
            same = all(len(each.shape) < 2 for each in _arrays(behind))
            others = [ref for ref in refs(args[1:]) if ref.place not in self.fixed]
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

    def _has_rows(self, item: Any, rows: Rows) -> bool:
        return rows.holds(item) and item.place not in self.fixed

    def _is_given(self, ref: Ref, call: Call, rows: Rows) -> bool:
        """Whether an argument of such a call is one of rows."""
        if isinstance(call.function, Pull):
            is_one = any(ref is each for each in call.args[:3])
            return is_one and self._has_rows(ref, rows)
        if name_of(call) in _LAYERS:
            return ref is call.args[0]
        return self._has_rows(ref, rows)

    def head(self, ref: Ref) -> int | None:
        """The call that reads the rows of a value that is computed for them alone."""
        return None if ref.place in self.sparse else self._heads.get(ref.place)

    def given(self, call: Call, rows: Rows) -> list[bool]:
        """Which arguments of such a call are of rows."""
        return [
            isinstance(arg, Ref) and self._is_given(arg, call, rows)
            for arg in call.args
        ]


class _Written(Written[Rows]):
    """A program's calls, with those of rows in their place."""

    def __init__(self, work: _Work, program: Program):
        super().__init__(work, program)
        self._work = work
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
        self.fill(program.results)

    def _write(self, call: Call) -> None:
        self.fill((call.args, call.options))
        read, put = few_rows(call, "getitem"), few_rows(call, "put_at")
        if put is not None:  # written where somebody reads all of it
            self.know(call.results, put, call.args[0])
            return
        self.calls.append(call)
        if read is not None and self.known(call.args[0], read) is None:
            self.know(call.args[0], read, call.results)

    def _write_rows(self, call: Call, rows: Rows, lines: list[Call]) -> None:
        args = [
            self.part(arg, rows) if is_given else arg
            for arg, is_given in zip(
                call.args, self._work.given(call, rows), strict=True
            )
        ]
        self.fill(args)
        is_one = isinstance(call.results, Ref)
        results = [call.results] if is_one else [*call.results]
        if (first := results[0]) is not None:
            head = self._work.head(first)
            if head is None:
                results[0] = self.new(rows.shape(first.shape), first.dtype)
            else:
                self._dropped.add(head)
                results[0] = lines[head].results
            self.know(first, rows, results[0])
        own = results[0] if is_one else type(call.results)(results)
        self.calls.append(call._replace(args=tuple(args), results=own))


def _arrays(args: Any) -> list[Any]:
    """The values among arguments, and the arrays of NumPy, which stay as they are."""
    return [each for each in leaves(args) if hasattr(each, "shape")]
