"""Plans as text: compiled steps, and calls that stay eager."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

from burnish.plan.branches import Branches, assigned, undone

if TYPE_CHECKING:
    from burnish.plan.plan import Plan


def listed(name: str, plan: Plan, given: list[Any]) -> str:
    """A line for each step, with its work and what share of a run's time it takes.

    Steps that go over a batch by sample have one line for all samples.
    """
    rows = []
    with undone(assigned([plan.program])):
        times = _times(plan, given)
    whole = sum(times) or 1.0
    for text, flops, moved, seconds in _rows(plan, times):
        work = f"{flops / 1e6:9.2f} MFLOP" if flops else " " * 15
        rows.append(f"{text:58} {work} {moved / 1e3:9.1f} kB {seconds / whole:6.1%}")
    inside = plan.memory.arena
    packed = sum(array.nbytes for array in plan.constants.values())
    head = (
        f"{name}: {plan.summary}, {len(plan.eager)} eager calls; "
        f"arena {inside / 1e6:.2f} MB, constants {packed / 1e6:.2f} MB"
    )
    return "\n".join([head, *(f"    {row}".rstrip() for row in rows)])


def listed_way(name: str, branches: Branches, given: list[Any]) -> str:
    """The plans that a call runs one after another, and what decides between them."""
    parts = []
    for node, taken in branches.way(given):
        if node.plan is not None:
            parts.append(listed(name, node.plan, taken))
        if node.question is not None:
            parts.append(node.question.where)
    return "\n".join(parts)


def _rows(plan: Plan, times: list[float]) -> list[tuple[str, int, int, float]]:
    """A unit of work: its operations, its bytes and its seconds."""
    rows: list[tuple[str, int, int, float]] = []
    took = iter(times)
    for segment in plan.segments:
        if segment.node is not None:
            text = f"{segment.node.label} eagerly: {segment.why}"
            rows.append((text[:58], 0, 0, next(took)))
        steps = range(segment.first, segment.behind)
        samples: dict[int, list[float]] = {}
        for i in steps:
            first = plan.steps[i].of
            samples.setdefault(i if first is None else first, []).append(next(took))
        for i, each in samples.items():
            step, n = plan.steps[i], len(each)
            text = f"{step.kind}: {step.label}"
            text = text[:58] if n == 1 else f"{n} x {text}"[:58]
            rows.append((text, n * step.flops, n * step.bytes, sum(each)))
    return rows


def _times(plan: Plan, given: list[Any]) -> list[float]:
    """The minimum seconds of every step in a few runs."""
    best: list[float] = []
    for _ in range(3):
        seen: list[float] = []

        def clock(seen: list[float] = seen) -> None:
            seen.append(time.perf_counter())

        plan(given, clock)
        took = [b - a for a, b in itertools.pairwise(seen)]
        best = took if not best else [min(p) for p in zip(best, took, strict=True)]
    return best


def explained(name: str, plans: list[Any]) -> str:
    """The operators that run eagerly in every plan, each reason once with its count."""
    lines = []
    for plan in plans:
        if getattr(plan, "why", ""):
            lines.append(f"{name} runs eagerly: {plan.why}")
            continue
        if not hasattr(plan, "program"):  # a step of training
            lines.append(f"{name}: {plan.summary}")
            continue
        kinds = ", ".join(str(each) for each in plan.program.arguments.values())
        counts: dict[str, int] = {}
        for node, why in plan.eager:
            text = f"{node.label}: {why}"
            counts[text] = counts.get(text, 0) + 1
        lines.append(f"{name}({kinds}): {plan.summary}")
        lines += [f"    {n} x {text}" for text, n in counts.items()]
        lines += [f"    {text}" for text in getattr(plan, "refused", ())]
    return "\n".join(lines) or f"{name} has not been called"
