"""Branching: captures of functions that choose what to do by computed values.

Python gets the value of this run where it asks for one number (`if x > 0`, `x.item()`),
and the tape notes where. A path is what was recorded between such questions: each
stretch holds for the answers before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from burnish._engine.pytree import mapped
from burnish.autodiff import Variable
from burnish.backend import Device
from burnish.capture.program import Program, alive
from burnish.capture.ref import Ref
from burnish.capture.signature import Kind
from burnish.capture.tape import Call, Tape
from burnish.capture.traced import Traced
from burnish.capture.watch import Watch
from burnish.capture.where import refusal

_ON_CPU = Device("cpu")


class Question(NamedTuple):
    """A tensor of one element whose value Python asks for, and where it does.

    read: makes Python's value of the tensor.
    """

    ref: Ref
    read: Callable[[Any], Any]
    where: str

    def answer(self, tensor: Any) -> Any:
        """Python's value of a tensor, or of an array that a step gave."""
        return self.read(tensor.data if isinstance(tensor, Variable) else tensor)

    def key(self, answer: Any) -> Any:
        """What tells answers apart: floats by sign and bits, any NaN as one."""
        return answer if isinstance(answer, bool | int) else repr(answer)


class Stretch(NamedTuple):
    """The calls up to a question and its answer; the last one has results instead."""

    calls: list[Call]
    question: Question | None
    answer: Any
    results: Any


class BranchTape(Tape):
    """A tape that answers questions for values and notes them.

    answers: those of the first questions, whatever the values are in this run. most:
    the questions of one run; another one is refused.
    """

    follows = True

    def __init__(self, answers: Sequence[Any], most: int) -> None:
        super().__init__()
        self._given, self._most = answers, most
        self._asked: list[tuple[int, Question, Any]] = []

    def way(self, tensor: Variable) -> bool:
        """The truth of a tensor for `if` and `while`."""
        return bool(self._answer(tensor, bool))

    def rounds(self, tensor: Variable) -> Any:
        """The value of a tensor of one element; None for others."""
        return self._answer(tensor, _item) if prod(tensor.shape) == 1 else None

    def _answer(self, tensor: Variable, read: Callable[[Any], Any]) -> Any:
        if type(tensor) is not Traced or tensor.dtype.kind not in "biuf":
            return read(tensor.data)  # of a parameter this is refused
        where = refusal(f"the value of a tensor {tensor.shape} decides")
        question = Question(self.ref(tensor), read, where.removeprefix("capture: "))
        nth = len(self._asked)
        if nth >= self._most:
            self.refuse(f"values are looked at more than {self._most} times")
        with self._running(inside=True):
            known = nth < len(self._given)
            answer = self._given[nth] if known else question.answer(tensor.real)
        self._asked.append((len(self.calls), question, answer))
        return answer

    def path(self, results: Any) -> Iterator[Stretch]:
        """The stretches of this capture, whose function gave `results`."""
        first = 0
        for behind, question, answer in self._asked:
            yield Stretch(self.calls[first:behind], question, answer, None)
            first = behind
        yield Stretch(self.calls[first:], None, None, results)


def _item(array: Any) -> Any:
    return array.item()


def part(
    name: str, calls: list[Call], results: Any, tape: Tape, watch: Watch
) -> tuple[Program, list[int]]:
    """Some calls of a tape as a program of its own.

    results: with the tape's refs. Returns the program and the tape's places of its
    arguments: what results depend on and neither the calls nor parameters give.
    """
    fixed = {ref.place: (key, ref, item) for key, (ref, item) in tape.fixed.items()}
    calls, asked = alive(calls, results)
    given = {place: ref for place, ref in asked.items() if place not in fixed}
    own = Tape()
    inputs = sorted(given)
    places = {place: own.new_place() for place in inputs}

    def renamed(item: Any) -> Any:
        if not isinstance(item, Ref):
            return item
        if item.place not in places:
            places[item.place] = own.new_place()
            if item.place in fixed:
                key, ref, held = fixed[item.place]
                moved = Ref(places[item.place], ref.shape, ref.dtype)
                own.fixed[key] = moved, held
                if key in tape.stored:
                    own.stored[key] = tape.stored[key]
        return Ref(places[item.place], item.shape, item.dtype)

    own.calls = [
        call._replace(
            args=mapped(call.args, renamed),
            options=mapped(call.options, renamed),
            results=mapped(call.results, renamed),
        )
        for call in calls
    ]
    results = mapped(results, renamed)
    kinds = tuple(
        Kind(given[place].shape, given[place].dtype, _ON_CPU, False) for place in inputs
    )
    names = [f"value {place}" for place in inputs]
    return Program(name, (kinds, {}), names, own, results, watch), inputs
