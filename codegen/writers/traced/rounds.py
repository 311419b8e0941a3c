"""Unify recorded loop iterations to one body with loop-carried values and outputs.

Empirical: the three recorded iterations have to agree; what changes only later is not
detected (docs/to-onnx.md lists the refusals).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from burnish.capture.line import refs
from burnish.capture.ref import Ref
from burnish.codegen.errors import ExportError
from burnish.codegen.writers.traced.join import outline
from burnish.codegen.writers.traced.tape import Block, Done, Seen
from burnish.codegen.writers.traced.unrolled import Stack, Unrolled, stacked
from burnish.nn.core.param import Stored


class Counted(NamedTuple):
    """A number that grows by `step` from round to round."""

    start: np.ndarray
    step: np.ndarray


class _Unlike(Exception):
    """Two rounds do not do the same."""


def repeat(*given: Any, body: Block, stays: bool, counted: Any) -> Any:
    """The placeholder of a loop in a recorded program.

    given: the most rounds and the condition, None where there is none, then what the
    first round begins with. body: gives the condition, what the next round begins with
    and what is collected. counted: what its places hold that count rounds.
    """
    raise AssertionError("it is written, never called")


def rolled(loop: Unrolled, seen: Seen) -> Block:
    """The loop as one call, and the calls after it."""
    try:
        return _Rounds(loop, seen).block()
    except _Unlike as error:
        raise ExportError(
            f"export: {loop.decision.line}: expected a loop whose iterations run the "
            f"same operators on values of the same shapes, as ONNX's Loop does, got "
            f"{error}"
        ) from None


def plain(item: Any) -> Any:
    """The outline of a call wherever in the source it is."""
    if isinstance(item, Done):
        return outline(item._replace(at=()))
    return outline(item)


def _difference(*rounds: Done) -> str:
    """Describe what three iterations do at one place, where they differ."""
    name = rounds[0].name
    if all(each.name == name for each in rounds):
        given = [[ref.shape for ref in refs([r.args, r.options])] for r in rounds]
        for shapes in zip(*given, strict=False):
            if len(set(shapes)) > 1:
                return (
                    f"{name} of a tensor {shapes[0]}, then {shapes[1]}, then "
                    f"{shapes[2]}; where rounds add to a tensor, append what each of "
                    f"them adds to a list and use ops.stack of it behind the loop"
                )
        if all(len(own) == len(given[0]) for own in given):
            return f"{name} of other numbers or options in another round"
    return f"{name} in one round and something else in another"


class _Column:
    """A loop-carried value, with its value before each iteration."""

    def __init__(self, values: Sequence[Any], inside: Ref):
        self.values, self.inside = list(values), inside
        self.first: Any = values[0]
        self.after: Any = None  # its value after an iteration, in terms of the body


class _Rounds:
    def __init__(self, loop: Unrolled, seen: Seen):
        self.loop, self.seen = loop, seen
        self.columns: list[_Column] = []
        self.counted: dict[Ref, Counted] = {}
        self.collected: list[tuple[Ref, Ref]] = []  # of each round, all of them
        self._constants = {
            ref.place: value for ref, value in seen.fixed.values()
            if not isinstance(value, Stored)
        }  # fmt: skip
        self._first: tuple[dict[int, int], ...] = ({}, {})  # later rounds' places there
        self._own: set[int] = set()  # made by the first round
        self._finals: list[tuple[_Column, Ref]] = []

    def block(self) -> Block:
        one, two, three = self.loop.rounds
        if not len(one) == len(two) == len(three):
            raise _Unlike("iterations of unequal numbers of calls")
        if self.loop.conditions is None and len(self._lengths()) > 1:
            raise _Unlike("iterations of unequal numbers of calls")
        calls = [self._call(*each) for each in zip(one, two, three, strict=True)]
        going = self._going()
        for column in self.columns:  # more are added as they are found
            if column.after is None:
                column.after = self._next(*column.values[1:])
        rest = self._rest()
        for column in self.columns:
            if column.after is None:
                column.after = self._next(*column.values[1:])
        takes = (*(column.inside for column in self.columns), *self.counted)
        gives = [column.after for column in self.columns]
        results = [going, *gives, *(each for each, _ in self.collected)]
        body = Block(calls, results, takes)
        finals = {id(column): ref for column, ref in self._finals}
        made = [finals.get(id(c)) or self._new(c.inside) for c in self.columns]
        asked = self.loop.conditions[0] if self.loop.conditions else None
        given = (self.loop.most, asked, [column.first for column in self.columns])
        decision = self.loop.decision
        numbers = [*self.counted.values()]
        call = Done(
            repeat, given,
            {"body": body, "stays": self.loop.stays, "counted": numbers},
            (*made, *(ref for _, ref in self.collected)),
            decision.path, False,
        )  # fmt: skip
        return Block([call, *rest.calls], rest.results)

    def _lengths(self) -> set[int]:
        return {
            len(stacked(end, k).calls) for k, end in enumerate(self.loop.ends) if end
        }

    # --- the body ---

    def _call(self, a: Done, b: Done, c: Done) -> Done:
        if not plain(a) == plain(b) == plain(c):
            raise _Unlike(_difference(a, b, c))
        given = [(each.args, each.options) for each in (a, b, c)]
        args, options = self._together(*given, change=self._value)
        self._made(a.results, b.results, c.results)
        return a._replace(args=args, options=options)

    def _together(self, a: Any, b: Any, c: Any, *, change: Callable[..., Any]) -> Any:
        if isinstance(a, Done):
            return self._call(a, b, c)
        if isinstance(a, Block):
            self._made(a.takes, b.takes, c.takes)
            rows = zip(a.calls, b.calls, c.calls, strict=True)
            calls = [self._call(*each) for each in rows]
            results = self._together(a.results, b.results, c.results, change=change)
            return Block(calls, results, a.takes)
        if isinstance(a, dict):
            return {k: self._together(a[k], b[k], c[k], change=change) for k in a}
        if isinstance(a, list | tuple) and a and len(a) == len(b) == len(c):
            made = [self._together(*each, change=change)
                    for each in zip(a, b, c, strict=True)]  # fmt: skip
            return type(a)(*made) if hasattr(a, "_fields") else type(a)(made)
        return change(a, b, c)

    def _made(self, a: Any, b: Any, c: Any) -> None:
        def same(x: Any, y: Any, z: Any) -> Any:
            if isinstance(x, Ref):
                self._own.add(x.place)
                self._first[0][y.place] = self._first[1][z.place] = x.place

        self._together(a, b, c, change=same)

    def _value(self, a: Any, b: Any, c: Any) -> Any:
        if not isinstance(a, Ref):
            return a
        if self._is_own(a, b, c) or self._equal(a, b, c):
            return a
        number = self._number(a, b, c)
        return number or self._column(a, b, c).inside

    def _is_own(self, a: Any, b: Any, c: Any) -> bool:
        return (
            all(isinstance(each, Ref) for each in (a, b, c)) and a.place in self._own
            and self._first[0].get(b.place) == a.place == self._first[1].get(c.place)
        )  # fmt: skip

    def _equal(self, *items: Any) -> bool:
        first = items[0]
        if all(isinstance(each, Ref) and each.place == first.place for each in items):
            return True
        arrays = [self._array(each) for each in items]
        return all(a is not None and plain(a) == plain(arrays[0]) for a in arrays)

    def _array(self, item: Any) -> Any:
        if isinstance(item, Ref):
            held = self._constants.get(item.place)
            return None if held is None else np.asarray(held.data)
        return None if isinstance(item, str) else np.asarray(item)

    def _number(self, *items: Any) -> Ref | None:
        """A place that counts, for constants that do."""
        arrays = [self._array(each) for each in items]
        if any(a is None or a.dtype.kind not in "iuf" for a in arrays):
            return None
        step = arrays[1] - arrays[0]
        if not (arrays[2] - arrays[1] == step).all():
            raise _Unlike("numbers of Python that do not grow evenly")
        ref = self._new(items[0])
        self.counted[ref] = Counted(arrays[0], step)
        return ref

    def _column(self, *values: Any) -> _Column:
        for column in self.columns:
            if all(map(self._equal, column.values, values)):
                return column
        if self._array(values[0]) is None and not isinstance(values[0], Ref):
            raise _Unlike(f"{values[0]!r} in one of them")
        kinds = {(tuple(v.shape), str(v.dtype)) for v in map(self._kind, values)}
        if len(kinds) > 1:
            raise _Unlike(f"values of several shapes or dtypes, {sorted(kinds)}")
        self.columns.append(_Column(values, self._new(self._kind(values[0]))))
        return self.columns[-1]

    def _kind(self, item: Any) -> Any:
        return item if isinstance(item, Ref) else np.asarray(item)

    def _new(self, like: Any) -> Ref:
        return Ref(self.seen.next(), tuple(like.shape), like.dtype)

    def _next(self, b: Any, c: Any) -> Any:
        """The loop-carried value of an iteration: b, where the third begins with c."""
        if isinstance(b, Ref) and b.place in self._own:
            if not isinstance(c, Ref) or self._first[0].get(c.place) != b.place:
                raise _Unlike("a value that comes from another call in each iteration")
            return b
        for column in self.columns:
            if self._equal(column.values[0], b) and self._equal(column.values[1], c):
                return column.inside
        if self._equal(b, c):
            return b
        raise _Unlike("a value from two iterations before")

    def _going(self) -> Any:
        if self.loop.conditions is None:
            return None
        return self._next(*self.loop.conditions[1:3])

    # --- after the loop ---

    def _rest(self) -> Block:
        """The calls after the loop, for any trip count."""
        blocks = [
            stacked(end, k) if end else None for k, end in enumerate(self.loop.ends)
        ]
        none, one, two, three = blocks
        assert one is not None
        assert two is not None
        assert three is not None
        if not plain(one.calls) == plain(two.calls) == plain(three.calls):
            raise _Unlike(
                "other calls after one iteration than after two; of a list that grows, "
                "ops.stack(list) alone can be taken"
            )
        if none is not None and plain(none.calls) != plain(one.calls):
            raise _Unlike("other calls after no iteration than after one")
        self._inner: set[tuple[int, ...]] = set()
        calls = [
            self._later(*each)
            for each in zip(
                *(b.calls if b else [None] * len(one.calls) for b in blocks),
                strict=True,
            )
        ]
        given = none.results if none else one.results
        return Block(calls, self._nest(given, one.results, two.results, three.results,
                                       none is not None))  # fmt: skip

    def _later(self, *calls: Any) -> Done:
        known = calls[0] is not None
        first = calls[0] if known else calls[1]
        none, one, two, three = [(c.args, c.options) for c in (first, *calls[1:])]
        args, options = self._nest(none, one, two, three, known)
        self._within(*(c.results for c in calls[1:]))
        return calls[3]._replace(args=args, options=options)

    def _within(self, *made: Any) -> None:
        """Record that results after the loop are the same in each capture."""
        for same in zip(*map(refs, made), strict=True):
            self._inner.add(tuple(ref.place for ref in same))

    def _nest(self, none: Any, one: Any, two: Any, three: Any, known: bool) -> Any:
        if isinstance(one, Stack):
            return self._collect(one, two, three)
        if isinstance(one, Block):
            self._within(one.takes, two.takes, three.takes)
            firsts = none.calls if known else [None] * len(one.calls)
            calls = [self._later(*each)
                     for each in zip(firsts, one.calls, two.calls, three.calls,
                                     strict=True)]  # fmt: skip
            results = self._nest(
                none.results, one.results, two.results, three.results, known
            )
            return Block(calls, results, three.takes)
        if isinstance(one, dict):
            return {key: self._nest(none[key], one[key], two[key], three[key], known)
                    for key in one}  # fmt: skip
        if isinstance(one, list | tuple):
            if not len(none) == len(one) == len(two) == len(three):
                raise _Unlike("a list that grows, which is not stacked")
            made = [
                self._nest(*each, known)
                for each in zip(none, one, two, three, strict=True)
            ]
            return type(one)(*made) if hasattr(one, "_fields") else type(one)(made)
        return self._after(none, one, two, three, known)

    def _after(self, none: Any, one: Any, two: Any, three: Any, known: bool) -> Any:
        """A value after the loop, from its values after zero to three iterations."""
        if not isinstance(one, Ref) or (
            self._equal(one, two, three) and (not known or self._equal(none, one))
        ):
            return three
        if tuple(ref.place for ref in (one, two, three)) in self._inner:
            return three
        return self._final(none if known else None, one, two, three)

    def _final(self, none: Any, one: Any, two: Any, three: Any) -> Ref:
        for column in self.columns:
            begins = none is None or self._equal(column.values[0], none)
            if (
                begins
                and self._equal(column.values[1], one)
                and self._equal(column.values[2], two)
            ):
                break
        else:
            if none is None:
                raise _Unlike("a result without a value where no iteration runs")
            column = self._column(none, one, two)
            if self._array(one) is not None and not self._equal(one, two):
                column.after = self._number(one, two, three)
            else:
                column.after = self._next(one, two)
        for known, ref in self._finals:
            if known is column:
                return ref
        self._finals.append((column, self._new(column.inside)))
        return self._finals[-1][1]

    def _collect(self, one: Stack, two: Stack, three: Stack) -> Ref:
        """All that rounds gave to a list, stacked."""
        a, b, c = three.items
        if not (
            self._equal(one.items[0], a) and self._equal(two.items[1], b)
            and three.axis == 0
        ):  # fmt: skip
            raise _Unlike("a list that is not stacked as it grows")
        each = self._value(a, b, c)
        result = Ref(self.seen.next(), (None, *a.shape), a.dtype)  # type: ignore[arg-type]
        self.collected.append((each, result))
        return result
