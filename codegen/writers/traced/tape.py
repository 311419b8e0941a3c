"""Record a module's calls on one control-flow path."""

from __future__ import annotations

import ast
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from types import CodeType, FrameType
from typing import Any, NamedTuple

from burnish._engine.pytree import mapped
from burnish.autodiff import Variable
from burnish.capture import record
from burnish.capture.line import refs
from burnish.capture.ref import Ref
from burnish.capture.tape import Tape
from burnish.capture.traced import Traced
from burnish.capture.where import user_frame
from burnish.codegen.errors import ExportError
from burnish.codegen.writers.traced.hidden import Watch
from burnish.codegen.writers.traced.questions import (
    Asking,
    Place,
    count_asked,
    may_break,
    place_of,
    truth_asked,
)
from burnish.codegen.writers.traced.table import find
from burnish.nn.core.module import Module
from burnish.nn.core.param import Stored
from burnish.operator import Operator
from burnish.tensor import Tensor


class Inside(NamedTuple):
    """A call of a module, by its path and the number of the call."""

    path: str
    module: Module
    number: int


Path = tuple[Inside, ...]
"""The modules' calls that a call was made in, outermost first."""

At = tuple[tuple[CodeType, int], ...]
"""Where in the source a call was made: the instructions that led to it."""


class Done(NamedTuple):
    """One call of a module's program; of an `if` both ways are options, as Blocks."""

    function: Any
    args: tuple[Any, ...]
    options: dict[str, Any]
    results: Any
    path: Path
    always: bool
    at: At = ()

    @property
    def name(self) -> str:
        """The name of the call."""
        if isinstance(self.function, Module):
            return f"nn.{type(self.function).__name__}"
        if isinstance(self.function, Operator):
            return self.function.name.rstrip("_")
        return str(self.function.__name__)

    @property
    def blocks(self) -> list[Block]:
        """The blocks under a condition."""
        return [each for each in self.options.values() if isinstance(each, Block)]

    @property
    def given(self) -> Any:
        """Arguments and options that are no Blocks."""
        options = [v for v in self.options.values() if not isinstance(v, Block)]
        return self.args, options


class Block(NamedTuple):
    """A block: calls, its results, and its inputs."""

    calls: list[Done]
    results: Any
    takes: tuple[Ref, ...] = ()


def fork(condition: Any, *, then: Block, otherwise: Block) -> Any:
    """The placeholder of an `if` on a tensor in a recorded program."""
    raise AssertionError("it is written, never called")


def everything(calls: Sequence[Done]) -> Iterator[Done]:
    """Calls, and those under conditions."""
    for call in calls:
        yield call
        for block in call.blocks:
            yield from everything(block.calls)


def asked(calls: Sequence[Done]) -> Iterator[Ref]:
    """Every value that calls are given, and those that their blocks give."""
    for call in everything(calls):
        yield from refs(call.given)
        for block in call.blocks:
            yield from refs(block.results)


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A module's program: its calls, the places of its arguments and results.

    stored: parameters and buffers by place, with their names; constants: other arrays.
    """

    calls: list[Done]
    arguments: list[Ref]
    results: Any
    stored: dict[int, tuple[str, Stored]]
    constants: dict[int, Any]


class Decision(NamedTuple):
    """A read of a tensor's value by Python: after how many calls, and where."""

    condition: Ref
    start: int
    path: Path
    at: At
    line: str
    asking: Asking | None
    answer: int


@dataclasses.dataclass
class Seen:
    """Numbering shared by the runs of one module: equal things have equal places."""

    fixed: dict[int, tuple[Ref, Any]] = dataclasses.field(default_factory=dict)
    starts: dict[tuple[int, ...], int] = dataclasses.field(default_factory=dict)
    asked: set[Place] = dataclasses.field(default_factory=set)
    joined: int = 0

    def start(self, ways: tuple[int, ...]) -> int:
        """The first place after these decisions: of no other run."""
        return self.starts.setdefault(ways, (len(self.starts) + 1) * 10**6)

    def next(self) -> int:
        """A place of none of the runs."""
        self.joined += 1
        return -self.joined


_ENDLESS = 100  # decisions of one run
ROUNDS = 3  # of a loop, which are compared


def rounds_of(decisions: Sequence[Decision], asking: Asking) -> int:
    """How many rounds a loop has begun since it was entered."""
    count = 0
    for each in reversed(decisions):
        if asking.is_in(each.asking):
            if each.asking is None or each.answer != asking.stays:
                break
            count += each.asking.stays is not None
    return count


def rounds_begun(decisions: Sequence[Decision], node: ast.AST) -> int:
    """How many rounds of a loop a run began; 0 where it ran more than once."""
    of_it = [d for d in decisions if d.asking is not None and d.asking.node is node]
    counts = [d.answer for d in of_it if d.asking and d.asking.stays is None]
    stays = [d for d in of_it if d.asking and d.answer == d.asking.stays]
    frames = {id(d.asking.frame) for d in of_it if d.asking}
    if len(frames) != 1 or len(counts) > 1:
        return 0
    return (
        len(stays)
        if any(d.asking and d.asking.stays is not None for d in of_it)
        else counts[0]
    )


class LayerTape(Tape):
    """Keeps what ONNX has a word for as one call, and in which module it was made.

    ways: the answers to the first questions that Python asks tensors; later ones are
    answered with True.
    """

    follows = True

    def __init__(self, module: Module, ways: tuple[int, ...], seen: Seen) -> None:
        super().__init__()
        self.names = {id(each): path for path, each in module.named_modules()}
        self.inside: list[Inside] = []
        self.entered = 0
        self.done: list[Done] = []
        self.decisions: list[Decision] = []
        self.results: Any = None
        self._asked, self._shared = ways, seen
        self._ways: tuple[int, ...] = ()
        self.watch = Watch()

    def late(self, function: Any, *args: Any, **options: Any) -> Any:
        self.read(args[0])

    def keeps(self, function: Any) -> bool:
        return find(function) is not None

    def enter(
        self, module: Module, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        if id(module) not in self.names:
            return super().enter(module, args, options)
        self.entered += 1
        self.inside.append(Inside(self.names[id(module)], module, self.entered))
        try:
            if find(module) is not None:
                return self.call(module, args, options)
            return super().enter(module, args, options)
        finally:
            self.inside.pop()

    def way(self, tensor: Variable) -> bool:
        frame = user_frame(sys._getframe(1))
        asking = truth_asked(frame, line_of(frame)) if frame else None
        if asking is None and type(tensor) is Tensor:
            return bool(tensor.data)
        usual = True
        if asking is not None and asking.stays is not None:
            usual = asking.stays is (rounds_of(self.decisions, asking) < ROUNDS)
        return bool(self._decide(tensor, asking, usual, frame))

    def rounds(self, tensor: Variable) -> int | None:
        frame = user_frame(sys._getframe(1))
        asking = count_asked(frame, line_of(frame)) if frame else None
        if asking is None:
            return None
        return self._decide(tensor, asking, ROUNDS + may_break(asking.node), frame)

    def _decide(
        self, tensor: Variable, asking: Asking | None, usual: int, frame: Any
    ) -> int:
        asked = len(self.decisions)
        if asked == _ENDLESS:
            raise ExportError(
                f"export: {line_of(frame)}: a tensor is asked for its value again and "
                f"again; expected an `if` or a loop whose source can be read"
            )
        answer = self._asked[asked] if asked < len(self._asked) else usual
        self.decisions.append(Decision(
            self.ref(tensor), len(self.calls), tuple(self.inside), _at(),
            line_of(frame), asking, answer,
        ))  # fmt: skip
        self._shared.asked.add(place_of(frame))
        self._ways = (*self._ways, answer)
        self.places = self._shared.start(self._ways)
        return answer

    def ref(self, value: Any) -> Any:
        is_new = isinstance(value, Variable) and not isinstance(value, Traced)
        if is_new and id(value) not in self.fixed:
            new = (super().ref(value), value)  # takes a place in every run
            self.fixed[id(value)] = self._shared.fixed.setdefault(id(value), new)
        return super().ref(value)

    def _write(self, function: Any, given: Any, results: Any, always: bool) -> None:
        super()._write(function, given, results, always)
        made, at = self.calls[-1], _at()
        if (loop := self._loop_around()) is not None:
            self.watch.look(loop, at, sys._getframe(1))
        kept = made._asdict() | {"path": tuple(self.inside), "at": at}
        del kept["paused"]
        self.done.append(Done(**kept))

    def _loop_around(self) -> Asking | None:
        """The outermost loop that runs, of those that a tensor ends."""
        loops = {d.asking.frame: d.asking for d in reversed(self.decisions) if d.asking}
        found, frame = None, sys._getframe(1) if loops else None
        while frame is not None:
            asking = loops.get(frame)
            if asking is not None and asking.is_inside(frame.f_lineno):
                found = asking
            frame = frame.f_back
        return found


def _called(module: Module, args: Any, options: Any) -> Any:
    """Results alone count in a file: a dict that is changed may be one of them."""
    return module(*args, **options)


def run(
    module: Module, args: Sequence[Any], ways: tuple[int, ...], seen: Seen
) -> LayerTape:
    """Record `module(*args)` along these decisions first."""
    tape = LayerTape(module, ways, seen)
    try:
        _, _, results = record(tape, module, tuple(args), {}, run=_called)
    except ExportError:
        raise
    except Exception as error:
        if not tape.decisions:
            raise
        raise ExportError(
            f"export: {tape.decisions[-1].line}: both branches of an `if` on a tensor "
            f"are exported, and one of them raises {type(error).__name__}: {error}"
        ) from error
    tape.results = mapped(results, tape.ref)
    return tape


def _at() -> At:
    """The instructions of all frames, from the recorded module's to this one's."""
    found = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code is not record.__code__:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def line_of(frame: FrameType | None) -> str:
    """The file and line that read a tensor's value."""
    if frame is None:
        return "somewhere"
    return f"{FilePath(frame.f_code.co_filename).name}:{frame.f_lineno}"
