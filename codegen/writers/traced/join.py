"""Join two control-flow paths: their common suffix follows the `if`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.capture.ref import Ref
from burnish.codegen.errors import ExportError
from burnish.codegen.writers.traced.tape import Block, Decision, Done, Seen, fork
from burnish.nn.core.param import Stored


class _NoFit(Exception):
    """Two values cannot be merged."""


def join(decision: Decision, then: Block, otherwise: Block, seen: Seen) -> Block:
    """One `if`, and after it the calls that both ways end with.

    Those are the same calls at the same places of the source; what they are given by
    either way is what the `if` gives.
    """
    count = _shared(then.calls, otherwise.calls)
    while True:
        joined = _Join(decision, seen)
        try:
            rest = joined.rest(_last(then.calls, count), _last(otherwise.calls, count))
        except _NoFit:
            count = joined.left - 1
            continue
        results = joined.results(then.results, otherwise.results)
        break
    made: list[Done] = []
    if joined.gives:
        ways = {
            "then": Block(
                then.calls[: len(then.calls) - count], [a for a, _, _ in joined.gives]
            ),
            "otherwise": Block(
                otherwise.calls[: len(otherwise.calls) - count],
                [b for _, b, _ in joined.gives],
            ),
        }
        given = tuple(ref for _, _, ref in joined.gives)
        args = (decision.condition,)
        made = [Done(fork, args, ways, given, decision.path, False, decision.at)]
    return Block(made + rest, results)


def _last(calls: list[Done], count: int) -> list[Done]:
    return calls[len(calls) - count :]


def _shared(some: list[Done], others: list[Done]) -> int:
    """How many calls both end with."""
    count = 0
    for a, b in zip(reversed(some), reversed(others), strict=False):
        if outline(a) != outline(b):
            break
        count += 1
    return count


def outline(item: Any) -> Any:
    """A fingerprint of a call: equal for the same call of one source line."""
    if isinstance(item, Done):
        path = [each.path for each in item.path]
        given = (item.args, item.options, item.results)
        return item.name, id(item.function), path, item.at, outline(given)
    if isinstance(item, Ref):
        return "a value", item.shape, str(item.dtype)
    if isinstance(item, list | tuple):
        return type(item), [outline(each) for each in item]
    if isinstance(item, dict):
        return [(key, outline(each)) for key, each in item.items()]
    if isinstance(item, slice):
        return [outline(each) for each in (item.start, item.stop, item.step)]
    if isinstance(item, np.ndarray):
        return item.shape, str(item.dtype), item.tobytes()
    return type(item), repr(item) if isinstance(item, float) else item


class _Join:
    """Finds for every value of the shared calls where both ways have it from."""

    def __init__(self, decision: Decision, seen: Seen):
        self.decision, self.seen = decision, seen
        self.gives: list[tuple[Any, Any, Ref]] = []
        self.left = 0
        self._of: dict[int, Ref] = {}  # the other way's values, as this one calls them
        self._constants = {ref.place: value for ref, value in seen.fixed.values()}

    def rest(self, some: list[Done], others: list[Done]) -> list[Done]:
        """The shared calls; _NoFit where one is given values of two kinds."""
        made = []
        for i, (a, b) in enumerate(zip(some, others, strict=True)):
            self.left = len(some) - i
            made.append(self._call(a, b))
        return made

    def _call(self, a: Done, b: Done) -> Done:
        args = self._both(a.args, b.args, self._value)
        options = {}
        for name, item in a.options.items():
            other = b.options[name]
            if isinstance(item, Block):
                self._both(item.takes, other.takes, self._same)
                calls = [
                    self._call(*both)
                    for both in zip(item.calls, other.calls, strict=True)
                ]
                results = self._both(item.results, other.results, self._value)
                options[name] = Block(calls, results, item.takes)
            else:
                options[name] = self._both(item, other, self._value)
        self._both(a.results, b.results, self._same)
        return a._replace(args=args, options=options)

    def _same(self, a: Any, b: Any) -> Any:
        if isinstance(a, Ref):
            self._of[b.place] = a
        return a

    def _value(self, a: Any, b: Any) -> Any:
        """A value that shared calls are given, for what both ways have in its place."""
        if not isinstance(a, Ref):
            return a  # their outlines say that it is the same
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise _NoFit
        return self._given(a, b, a)

    def results(self, a: Any, b: Any) -> Any:
        """The joined result; ExportError where the two paths differ in kind."""
        try:
            return self._both(a, b, self._result)
        except _NoFit:
            raise ExportError(
                f"export: {self.decision.line}: the branches of an `if` on a tensor "
                f"differ in what they give; expected the same number of tensors with "
                f"the same dtypes, as ONNX's If has"
            ) from None

    def _result(self, a: Any, b: Any) -> Any:
        kinds = (Ref, np.ndarray, np.generic)
        if not (isinstance(a, kinds) and isinstance(b, kinds)):
            if type(a) is type(b) and outline(a) == outline(b):
                return a
            raise _NoFit
        if a.dtype != b.dtype or len(a.shape) != len(b.shape):
            raise _NoFit
        shape = tuple(
            n if n == m else None for n, m in zip(a.shape, b.shape, strict=True)
        )
        return self._given(a, b, Ref(-1, shape, a.dtype))  # type: ignore[arg-type]

    def _given(self, a: Any, b: Any, kind: Ref) -> Any:
        if isinstance(b, Ref):
            b = self._of.get(b.place, b)
        if self._equal(a, b):
            return a
        for one, other, ref in self.gives:
            if self._equal(one, a) and self._equal(other, b):
                return ref
        ref = Ref(self.seen.next(), kind.shape, kind.dtype)
        self.gives.append((a, b, ref))
        return ref

    def _equal(self, a: Any, b: Any) -> bool:
        if isinstance(a, Ref) and isinstance(b, Ref) and a.place == b.place:
            return True
        one, other = self._array(a), self._array(b)
        return one is not None and other is not None and outline(one) == outline(other)

    def _array(self, item: Any) -> Any:
        """The numbers of a constant; None for what another run computes or learns."""
        if isinstance(item, Ref):
            held = self._constants.get(item.place)
            if held is None or isinstance(held, Stored):
                return None
            return np.asarray(held.data)
        return np.asarray(item)

    def _both(self, a: Any, b: Any, change: Callable[[Any, Any], Any]) -> Any:
        """`change` of everything in two equal nests; _NoFit where they differ."""
        if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
            return {key: self._both(each, b[key], change) for key, each in a.items()}
        if isinstance(a, list | tuple) and type(a) is type(b) and len(a) == len(b):
            made = [self._both(*both, change) for both in zip(a, b, strict=True)]
            return type(a)(*made) if hasattr(a, "_fields") else type(a)(made)
        return change(a, b)
