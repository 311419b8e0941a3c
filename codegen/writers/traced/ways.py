"""Record every control-flow path of a module as one program with `if` nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnish.capture.line import refs
from burnish.codegen.errors import ExportError
from burnish.codegen.writers.traced.join import join
from burnish.codegen.writers.traced.questions import check_alike, may_break
from burnish.codegen.writers.traced.rounds import repeat, rolled
from burnish.codegen.writers.traced.sizes import Differ, merged
from burnish.codegen.writers.traced.tape import (
    ROUNDS,
    Block,
    Decision,
    Done,
    LayerTape,
    Recorded,
    Seen,
    asked,
    fork,
    rounds_begun,
    rounds_of,
    run,
)
from burnish.codegen.writers.traced.unrolled import Unrolled, again, counted, unwound
from burnish.nn.core.module import Module

_MOST = 256  # runs of one module


def recorded(module: Module, args: Sequence[Any]) -> Recorded:
    """Record every path of `module(*args)`; CaptureError where it depends on values."""
    ways = _Ways(module, args)
    first = ways.run(())
    whole = ways.follow((), first, 0)
    calls = _alive(whole.calls, {ref.place for ref in refs(whole.results)})
    names = {id(item): path for path, item in module.named_tensors()}
    stored, constants = {}, {}
    for ref, value in ways.seen.fixed.values():
        if id(value) in names:
            stored[ref.place] = (names[id(value)], value)
        else:
            constants[ref.place] = np.asarray(value.data)
    arguments = [first.ref(each) for each in first.arguments]
    return Recorded(calls, arguments, whole.results, stored, constants)


class _Ways:
    """Runs a module once for each path, and joins the recordings."""

    def __init__(self, module: Module, args: Sequence[Any]):
        self.module, self.args, self.seen = module, args, Seen()
        self.runs = 0
        self.tapes: list[LayerTape] = []

    def run(self, ways: tuple[int, ...]) -> LayerTape:
        self.runs += 1
        self.tapes.append(run(self.module, self.args, ways, self.seen))
        return self.tapes[-1]

    def _check_hidden(self, decision: Decision) -> None:
        """ExportError where a round of this loop leaves state to the next."""
        assert decision.asking is not None
        for tape in self.tapes:
            rounds = rounds_begun(tape.decisions, decision.asking.node)
            if rounds > 1:
                tape.watch.check(decision.asking.node, rounds, decision.line)

    def follow(self, ways: tuple[int, ...], tape: LayerTape, start: int) -> Block:
        """The program after these decisions; `tape` is one of its paths."""
        if len(tape.decisions) == len(ways):
            return Block(tape.done[start:], tape.results)
        decision = tape.decisions[len(ways)]
        rest = self._after(ways, tape, decision)
        return Block(tape.done[start : decision.start] + rest.calls, rest.results)

    def _after(
        self, ways: tuple[int, ...], tape: LayerTape, decision: Decision
    ) -> Block:
        """The block of calls from a decision on."""
        if self.runs > _MOST:
            raise ExportError(
                f"export: {decision.line}: expected at most {_MOST} control-flow paths "
                f"through the module, got more; choose with ops.where where possible"
            )
        asking = decision.asking
        if asking is None:
            then = self._going(ways, tape, True)
            otherwise = self._going(ways, tape, False)
            return join(decision, then, otherwise, self.seen)
        if asking.stays is not None:
            return self._loop(ways, tape, decision)
        if may_break(asking.node):
            return self._going(ways, tape, decision.answer)
        return self._counted(ways, tape, decision)

    def _going(self, ways: tuple[int, ...], tape: LayerTape, answer: int) -> Block:
        """The block of calls after a decision with this answer."""
        decision = tape.decisions[len(ways)]
        ways = (*ways, answer)
        if decision.answer != answer:
            tape = self.run(ways)
            if tape.decisions[len(ways) - 1][:2] != decision[:2]:
                raise ExportError(
                    f"export: {decision.line}: the module, run again, does something "
                    f"else before this line; expected the same calls in every run"
                )
        return self.follow(ways, tape, decision.start)

    def _loop(
        self, ways: tuple[int, ...], tape: LayerTape, decision: Decision
    ) -> Block:
        """A loop from one of its questions on, at its first question all of it."""
        assert decision.asking is not None
        stays = bool(decision.asking.stays)
        before = rounds_of(tape.decisions[: len(ways)], decision.asking)
        ways_of = {"end": self._going(ways, tape, not stays)}
        if before < ROUNDS:
            ways_of["rounds"] = self._going(ways, tape, stays)
        args = (decision.condition,)
        call = Done(again, args, ways_of, (), decision.path, False, decision.at)
        if before:
            return Block([call], None)
        conditions, rounds, ends = unwound(call, decision)
        count = None
        for each in reversed(tape.decisions[: len(ways)]):
            asking = each.asking
            if asking and asking.stays is None and decision.asking.is_in(asking):
                count = each.condition
                break
        check_alike(decision.asking, self.seen.asked, decision.line)
        self._check_hidden(decision)
        loop = Unrolled(decision, count, stays, conditions, rounds, ends)
        return rolled(loop, self.seen)

    def _counted(
        self, ways: tuple[int, ...], tape: LayerTape, decision: Decision
    ) -> Block:
        """A loop over `range`, of none to three rounds."""
        ends: list[Block | None] = []
        for count in range(ROUNDS + 1):
            try:
                ends.append(self._going(ways, tape, count))
            except ExportError:
                if count:
                    raise
                ends.append(None)
        assert decision.asking is not None
        check_alike(decision.asking, self.seen.asked, decision.line)
        self._check_hidden(decision)
        loop = counted(decision, ends)
        return rolled(loop, self.seen)


def _alive(calls: list[Done], wanted: set[int]) -> list[Done]:
    """The calls that a result depends on."""
    kept: list[Done] = []
    for call in reversed(calls):
        if call.function is fork:
            call = _wanted_of(call, wanted)
        call = _living(call) if call.function is repeat else call
        if call.always or any(ref.place in wanted for ref in refs(call.results)):
            wanted.update(ref.place for ref in asked([call]))
            kept.append(call._replace(at=()))
    return kept[::-1]


def _wanted_of(call: Done, wanted: set[int]) -> Done:
    """An `if` with its unused results removed."""
    kept = [i for i, ref in enumerate(call.results) if ref.place in wanted]
    blocks = {}
    for name, block in call.options.items():
        results = tuple(block.results[i] for i in kept)
        places = {ref.place for ref in refs(results)}
        blocks[name] = Block(_alive(block.calls, places), results)
    return call._replace(options=blocks, results=tuple(call.results[i] for i in kept))


def _living(call: Done) -> Done:
    """A loop without the steps of its body that nothing depends on."""
    body = call.options["body"]
    calls = _alive(body.calls, {ref.place for ref in refs(body.results)})
    return call._replace(options=call.options | {"body": body._replace(calls=calls)})


def together(runs: Sequence[Recorded]) -> Recorded:
    """One program for all sizes; raises ExportError where there is none."""
    first = runs[0]
    calls = []
    for i, done in enumerate(first.calls):
        try:
            calls.append(merged(done, *(run.calls[i] for run in runs[1:])))
        except (Differ, IndexError):
            raise _diverged(done) from None
    if any(len(run.calls) != len(first.calls) for run in runs):
        raise _diverged(first.calls[-1])
    results = merged(*(run.results for run in runs))
    held = {ref.place for ref in (*asked(calls), *refs(results))}
    constants = {
        place: merged(*(run.constants[place] for run in runs))
        for place in first.constants
        if place in held
    }
    given = (run.arguments for run in runs)
    arguments = [merged(*each) for each in zip(*given, strict=True)]
    return Recorded(calls, arguments, results, first.stored, constants)


def _diverged(done: Done) -> ExportError:
    path = done.path[-1][0] if done.path else ""
    where = f"in {path}, " if path else ""
    return ExportError(
        f"export: {where}at {done.name}, the module does other things at other sizes "
        f"of its dynamic axes; export it with these sizes fixed, dynamic={{}}"
    )
