"""Align the recorded iterations of a loop, and the calls after each trip count."""

from __future__ import annotations

from typing import Any, NamedTuple

from burnish._engine.pytree import mapped
from burnish.capture.line import refs
from burnish.capture.ref import Ref
from burnish.codegen.errors import ExportError
from burnish.codegen.writers.traced.tape import Block, Decision, Done


class Unrolled(NamedTuple):
    """A loop's first three iterations, and the calls after zero to three of them.

    conditions: the tensors tested before each iteration, and after the last.
    """

    decision: Decision
    most: Ref | None
    stays: bool
    conditions: list[Ref] | None
    rounds: list[list[Done]]
    ends: list[Block | None]


def again(condition: Any, *, end: Block, rounds: Block) -> Any:
    """Placeholder of one condition of a loop, while its paths are unified."""
    raise AssertionError("it is written, never called")


def unwound(
    call: Done, decision: Decision
) -> tuple[list[Any], list[list[Done]], list[Block | None]]:
    """A loop's conditions, rounds and ends out of questions within each other."""
    conditions: list[Any] = []
    rounds: list[list[Done]] = []
    ends: list[Block | None] = []
    while True:
        conditions.append(call.args[0])
        ends.append(call.options["end"])
        following = call.options.get("rounds")
        if following is None:
            return conditions, rounds, ends
        if not following.calls or following.calls[-1].function is not again:
            raise ExportError(
                f"export: {decision.line}: expected a loop that is left by its "
                f"condition alone, got one with another way out"
            )
        rounds.append(following.calls[:-1])
        call = following.calls[-1]


def counted(decision: Decision, runs: list[Block | None]) -> Unrolled:
    """A loop of so many rounds, out of runs of none to three."""
    none, one, two, three = (run and stacked(run, k) for k, run in enumerate(runs))
    assert one is not None
    assert two is not None
    assert three is not None
    size = len(two.calls) - len(one.calls)
    rounds = [three.calls[i * size : i * size + size] for i in range(3)]
    ends = [none]
    for count, run in enumerate((one, two, three), 1):
        same: dict[int, Ref] = {}
        for mine, its in zip(run.calls[: count * size], three.calls, strict=False):
            known, others = refs(mine), refs(its)
            if len(known) == len(others):
                same.update(zip((r.place for r in known), others, strict=True))

        def renamed(item: Any, same: dict[int, Ref] = same) -> Any:
            return same.get(item.place, item) if isinstance(item, Ref) else item

        ends.append(mapped(Block(run.calls[count * size :], run.results), renamed))
    return Unrolled(decision, decision.condition, True, None, rounds, ends)


class Stack(NamedTuple):
    """A list that grew by an element each round, stacked."""

    items: Any
    axis: int


def stacked(block: Block, count: int) -> Block:
    """A block with Stacks among its results, instead of calls that stack `count`."""
    if not count:
        return block
    calls, stacks = list(block.calls), {}
    for i, call in enumerate(block.calls):
        before = block.calls[max(0, i - count) : i]
        if call.name != "concat_of" or len(call.args) != count or len(before) < count:
            continue
        parts = [each.results for each in before]
        if [p.place for p in refs(parts)] != [p.place for p in refs(call.args)]:
            continue
        if any(each.name != "unsqueeze" for each in before):
            continue
        items = [each.args[0] for each in before]
        stacks[call.results.place] = Stack(items, call.options.get("axis", 0))
        gone = {id(each) for each in (*before, call)}
        calls = [each for each in calls if id(each) not in gone]

    def change(item: Any) -> Any:
        return stacks.get(item.place, item) if isinstance(item, Ref) else item

    return Block(calls, mapped(block.results, change))
