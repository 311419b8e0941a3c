"""Summarize an inferred model: its layers, and which of them are guesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from burnish.codegen.account import few
from burnish.codegen.errors import spelled
from burnish.codegen.infer.layers.leaves import Leaf
from burnish.codegen.infer.tree import Node
from burnish.codegen.names.identifier import plain
from burnish.codegen.program import ClassPlan, callee, every_expression, walk

_SHOWN = 6
_NAMED = 2


def summary(
    root: Node,
    leaves: Mapping[Node, Leaf],
    classes: list[ClassPlan],
    doubts: list[tuple[str, str]],
) -> tuple[str, ...]:
    """Lines for the user, most telling first."""
    modules = sum(1 for _ in root.walk())
    kinds = Counter(leaf.kind for leaf in leaves.values())
    by_kind = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    lines = [f"{modules} modules, of these layers: {by_kind or 'none'}"]
    if steps := sum(map(_steps, classes)):
        verb = "step of forward is" if steps == 1 else "steps of forward are"
        lines.append(f"{steps} {verb} to be written: look for nn.Unwritten")
    return (*lines, *_grouped(doubts))


def _grouped(doubts: list[tuple[str, str]]) -> Iterator[str]:
    """Each guess once, with the first modules that it is about."""
    places: dict[str, list[str]] = {}
    for words, where in doubts:
        places.setdefault(words, []).append(plain(where))
    for words, found in list(places.items())[:_SHOWN]:
        yield f"{few(found, _NAMED)}: {words}"
    if len(places) > _SHOWN:
        yield f"{len(places) - _SHOWN} more guesses; {spelled('explain')} tells them"


def _steps(plan: ClassPlan) -> int:
    every = [e for _, made in plan.members for e in walk(made)]
    every += every_expression(plan.block)
    return sum(callee(e) == "nn.Unwritten" for e in every)
