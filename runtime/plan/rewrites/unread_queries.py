"""Partial dead code elimination in attention: queries that nobody reads.

A part along one axis, as `x[:, 0]` of what attention gives, is what attention gives for
these queries: it goes back through turned and split axes, products and softmax to
theirs; and a gradient that is zero but for a part is computed for that part alone. It
continues what `unread_rows` did for layers of rows, and as there NaN and infinity
beside the part are not passed on.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from burnish.capture import Program
from burnish.capture.gradients import Pull
from burnish.capture.line import refs
from burnish.capture.ref import Ref
from burnish.capture.tape import Call
from burnish.operator import Operator
from burnish.ops.arrays.shape import reshape
from burnish.plan.rewrites.unread import (
    BINARY,
    UNARY,
    Uses,
    Written,
    call_of,
    few_rows,
    name_of,
)

_PULLED = {"linear", "softmax", *UNARY}
"""Operators whose gradients are of a part where the result's is."""

_KEEP_ZEROS = {"mul", "dropped", "neg"}


class _Part(NamedTuple):
    """A part of a value along one of its axes, which stays an axis."""

    axis: int
    items: slice

    def at(self, axis: int) -> _Part:
        return self._replace(axis=axis)

    def shape(self, whole: tuple[int, ...]) -> tuple[int, ...]:
        kept = len(range(*self.items.indices(whole[self.axis])))
        return (*whole[: self.axis], kept, *whole[self.axis + 1 :])

    @property
    def cuts(self) -> tuple[slice, ...]:
        return (*[slice(None)] * self.axis, self.items)


class _Step(NamedTuple):
    """How a call is computed: the parts of its arguments, and of its first result."""

    parts: list[_Part | None]
    made: _Part | None


def without_unread_queries(program: Program) -> None:
    """Compute only the part that is read, where that is at most half of a value."""
    work = _Work(program)
    if work.steps:
        written = _Written(work, program)
        program.replace(written.calls, written.places)


class _Work(Uses[_Part]):
    """What of a program is computed for a part alone: steps, by the index of calls."""

    def __init__(self, program: Program):
        self.steps: dict[int, _Step] = {}
        super().__init__(program)

    def find_zeros(self, i: int, call: Call) -> None:
        """Note whether a call's first result is zero but for a part, or reads one."""
        if (part := part_of(call, "put_at")) is not None:
            self.sparse[call.results.place] = part
            return
        known = [
            self.sparse.get(a.place) if isinstance(a, Ref) else None for a in call.args
        ]
        if call.always or not any(known):
            return
        is_pull = isinstance(call.function, Pull)
        step = self._pulled(call, known) if is_pull else self._spread(call, known)
        if step is None or not self._are_own(call, step):
            return
        self.steps[i] = step
        result = call.results[0] if is_pull else call.results
        if result is not None and step.made is not None:
            self.sparse[result.place] = step.made

    def _pulled(self, call: Call, known: list[_Part | None]) -> _Step | None:
        of, args, part = call.function.of, call.args, known[0]
        if of.name not in _PULLED or part is None:
            return None
        needed = _parts(of, args[2:], call.function.options, args[0].shape, part)
        if needed is None or needed[0] is None:
            return None
        own = None if args[1] is None else part
        return _Step([part, own, *needed], needed[0])

    def _spread(self, call: Call, known: list[_Part | None]) -> _Step | None:
        """A step whose arguments have zeros, as its result then has or not."""
        if not isinstance(call.function, Operator) or not isinstance(call.results, Ref):
            return None
        name, args = call.function.name, call.args
        if name == "matmul":
            if (part := _contracted(args, known)) is not None:
                ends = part.at(len(args[0].shape) - 1), part.at(len(args[1].shape) - 2)
                return _Step([*ends], None)
            if known[0] is None or known[0].axis != len(args[0].shape) - 2:
                return None
            made: _Part | None = known[0].at(len(call.results.shape) - 2)
        elif name in ("reshape", "transpose"):
            made = known[0] and _forward(call, known[0])
        elif name in _KEEP_ZEROS:
            i = next(i for i, part in enumerate(known) if part is not None)
            if args[i].shape != call.results.shape:
                return None
            made = known[i]
        else:
            return None
        if made is None:
            return None
        parts = _parts(call.function, args, call.options, call.results.shape, made)
        if parts is None or any(
            k not in (None, p) for k, p in zip(known, parts, strict=True)
        ):
            return None
        return _Step(parts, made)

    def find_read(self, i: int, call: Call) -> None:
        """Note which part a call reads of its arguments."""
        part, made = part_of(call, "getitem"), call.results
        if part is not None:
            self.note(call.args[0], part)
            return
        wanted = self.read.get(made.place) if isinstance(made, Ref) else None
        is_free = isinstance(call.function, Operator) and not call.always
        if i not in self.steps and is_free and wanted is not None:
            parts = _parts(call.function, call.args, call.options, made.shape, wanted)
            if parts is not None and any(parts):
                found = _Step(parts, wanted)
                if self._are_own(call, found):
                    self.steps[i] = found
        step = self.steps.get(i)
        own: dict[int, _Part | None] = {}
        if step is not None:
            own = {
                arg.place: part
                for arg, part in zip(call.args, step.parts, strict=True)
                if isinstance(arg, Ref)
            }
        for ref in refs((call.args, call.options)):
            self.note(ref, own.get(ref.place))

    def _are_own(self, call: Call, step: _Step) -> bool:
        """Whether each value that is read in part is of the program, and that part."""
        parts: dict[int, _Part | None] = {}
        for arg, part in zip(call.args, step.parts, strict=True):
            if isinstance(arg, Ref):
                if parts.setdefault(arg.place, part) != part:
                    return False
                if part is not None and arg.place in self.fixed:
                    return False
            elif part is not None or [*refs(arg)]:
                return False
        return not [*refs(call.options)]


class _Written(Written[_Part]):
    """A program's calls, with those of a part in their place."""

    def __init__(self, work: _Work, program: Program):
        super().__init__(work, program)
        for i, line in enumerate(program.lines):
            step = work.steps.get(i)
            if step is None:
                self._write(line.call)
            else:
                self._write_part(line.call, step)
        self.fill(program.results)

    def _write(self, call: Call) -> None:
        if (part := part_of(call, "put_at")) is not None:
            self.fill(call.args)
            given, kept = call.args[0], part.shape(call.results.shape)
            self.know(call.results, part, self._reshaped(given, kept))
            return
        part = part_of(call, "getitem")
        known = part and self.known(call.args[0], part)
        if known is None:
            self.fill((call.args, call.options))
            self.calls.append(call)
        else:
            options = {"shape": call.results.shape}
            self.calls.append(call_of(reshape, known, options, call.results))

    def _write_part(self, call: Call, step: _Step) -> None:
        args = [
            arg if part is None else self.part(arg, part)
            for arg, part in zip(call.args, step.parts, strict=True)
        ]
        self.fill(args)
        is_one = isinstance(call.results, Ref)
        results = [call.results] if is_one else [*call.results]
        if results[0] is not None and step.made is not None:
            first = results[0]
            results[0] = self.new(step.made.shape(first.shape), first.dtype)
            self.know(first, step.made, results[0])
        options = call.options
        if name_of(call) == "reshape":
            options = {**options, "shape": results[0].shape}
        own = results[0] if is_one else type(call.results)(results)
        self.calls.append(call._replace(args=tuple(args), options=options, results=own))

    def _reshaped(self, ref: Ref, shape: tuple[int, ...]) -> Ref:
        if ref.shape == shape:
            return ref
        made = self.new(shape, ref.dtype)
        self.calls.append(call_of(reshape, ref, {"shape": shape}, made))
        return made


def part_of(call: Call, name: str) -> _Part | None:
    """The part that a `getitem` reads, or a `put_at` gives, along one axis alone."""
    rows = few_rows(call, name)
    if rows is None:
        return None
    cut = [i for i, item in enumerate(rows.cuts) if item != slice(None)]
    if len(cut) != 1:
        return None
    item = rows.cuts[cut[0]]
    if not isinstance(item, slice):
        item = slice(item, item + 1 or None)
    return _Part(cut[0], item)


def _parts(
    function: Any, args: Any, options: Any, shape: tuple[int, ...], part: _Part
) -> list[_Part | None] | None:
    """The parts of arguments that a part of a result is made of; None: all of one.

    None where the result's part is not made so.
    """
    name = function.name
    options = {**function.defaults, **options}
    others: list[_Part | None] = [None] * (len(args) - 1)
    is_last = part.axis == len(shape) - 1
    if name == "linear":
        is_row = all(len(arg.shape) < 2 for arg in args[2:] if hasattr(arg, "shape"))
        return [part, *others] if is_row and not is_last else None
    if name == "softmax":
        is_over = options["axis"] % len(shape) == part.axis
        return None if is_over else [part, *others]
    if name == "matmul":
        is_rows = part.axis == len(shape) - 2 and len(args[0].shape) > 1 < len(
            args[1].shape
        )
        return [part.at(len(args[0].shape) - 2), None] if is_rows else None
    if name == "transpose" and options["axes"] is not None:
        return [part.at(options["axes"][part.axis] % len(shape))]
    if name == "reshape":
        axis = _same_axis(shape, args[0].shape, part.axis)
        return None if axis is None else [part.at(axis)]
    if name in UNARY or name in BINARY:
        return [_of_element(arg, shape, part) for arg in args]
    return None


def _of_element(arg: Any, shape: tuple[int, ...], part: _Part) -> _Part | None:
    """The part of what an operator of elements reads, which may be repeated."""
    own = getattr(arg, "shape", ())
    axis = part.axis - (len(shape) - len(own))
    return None if axis < 0 or own[axis] == 1 else part.at(axis)


def _forward(call: Call, part: _Part) -> _Part | None:
    """The part of a result of moved axes that is made of an argument's."""
    if call.function.name == "transpose":
        if call.options.get("axes") is None:
            return None
        axes = [axis % len(call.args[0].shape) for axis in call.options["axes"]]
        return part.at(axes.index(part.axis))
    axis = _same_axis(call.args[0].shape, call.results.shape, part.axis)
    return None if axis is None else part.at(axis)


def _same_axis(shape: tuple[int, ...], other: tuple[int, ...], axis: int) -> int | None:
    """The axis of `other` that an axis of the shape is, of the same elements."""
    before = math.prod(shape[:axis])
    for i, size in enumerate(other):
        if size == shape[axis] and math.prod(other[:i]) == before:
            return i
    return None


def _contracted(args: Any, known: list[_Part | None]) -> _Part | None:
    """The part of the axis that a product sums over beside which it adds zeros."""
    if min(len(args[0].shape), len(args[1].shape)) < 2:
        return None
    left, right = known
    ends = [
        part.at(0)
        for part, axis in (
            (left, len(args[0].shape) - 1),
            (right, len(args[1].shape) - 2),
        )
        if part is not None and part.axis == axis
    ]
    whole = sum(part is not None for part in known)
    return ends[0] if len(ends) == whole and len({*map(str, ends)}) == 1 else None
