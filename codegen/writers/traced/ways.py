"""Every way that a module can go, as one program with an `if` where they part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnish.capture.line import refs
from burnish.codegen.errors import ExportError
from burnish.codegen.writers.traced.join import join
from burnish.codegen.writers.traced.sizes import Differ, merged
from burnish.codegen.writers.traced.tape import (
    Block,
    Done,
    LayerTape,
    Recorded,
    Seen,
    asked,
    fork,
    run,
)
from burnish.nn.module import Module

_MOST = 256  # runs of one module


def recorded(module: Module, args: Sequence[Any]) -> Recorded:
    """What `module(*args)` does; raises CaptureError where that depends on values."""
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
    """Runs a module once for each way, and joins what they do."""

    def __init__(self, module: Module, args: Sequence[Any]):
        self.module, self.args, self.seen = module, args, Seen()
        self.runs = 0

    def run(self, ways: tuple[bool, ...]) -> LayerTape:
        self.runs += 1
        return run(self.module, self.args, ways, self.seen)

    def follow(self, ways: tuple[bool, ...], tape: LayerTape, start: int) -> Block:
        """What is done after these decisions, of which `tape` is one way."""
        if len(tape.decisions) == len(ways):
            return Block(tape.done[start:], tape.results)
        decision = tape.decisions[len(ways)]
        if self.runs > _MOST:
            raise ExportError(
                f"export: {decision.line}: expected at most {_MOST} ways through the "
                f"module, got more; choose with ops.where where that will do"
            )
        other = self.run((*ways, False))
        if other.decisions[len(ways)][:2] != decision[:2]:
            raise ExportError(
                f"export: {decision.line}: run again the module does something else "
                f"before this line; expected the same calls in every run"
            )
        then = self.follow((*ways, True), tape, decision.start)
        otherwise = self.follow((*ways, False), other, decision.start)
        rest = join(decision, then, otherwise, self.seen)
        return Block(tape.done[start : decision.start] + rest.calls, rest.results)


def _alive(calls: list[Done], wanted: set[int]) -> list[Done]:
    """The calls that a result depends on."""
    kept: list[Done] = []
    for call in reversed(calls):
        if call.function is fork:
            call = _wanted_of(call, wanted)
        if call.always or any(ref.place in wanted for ref in refs(call.results)):
            wanted.update(ref.place for ref in asked([call]))
            kept.append(call._replace(at=()))
    return kept[::-1]


def _wanted_of(call: Done, wanted: set[int]) -> Done:
    """An `if` with the results that are asked for alone."""
    kept = [i for i, ref in enumerate(call.results) if ref.place in wanted]
    blocks = {}
    for name, block in call.options.items():
        results = tuple(block.results[i] for i in kept)
        places = {ref.place for ref in refs(results)}
        blocks[name] = Block(_alive(block.calls, places), results)
    return call._replace(options=blocks, results=tuple(call.results[i] for i in kept))


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
