"""Classify numbered modules: a ModuleList of equals, a Sequential, or unordered."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from burnish.codegen.arrange.classes.members import alike
from burnish.codegen.infer.parts import Form, Part
from burnish.codegen.program import (
    Call,
    Expression,
    ListOrTuple,
    Literal,
    Repeat,
    under,
)

_APART = re.compile(r"expert|head|branch|classifiers|convs$")
"""Lists under such names hold things side by side."""


def joined(name: str, parts: dict[int, Part]) -> Part:
    """The container of numbered parts; name: its own name.

    A number that is missing held something without weights, which only a Sequential
    has: so the rest is one. Equal parts are a list, which also runs from the first to
    the last where their features fit.
    """
    weights = [w for number, part in parts.items() for w in under(number, part.weights)]
    parts = _open_ended(parts)
    every = list(parts.values())
    whole = list(parts) == list(range(len(parts)))
    simple = all(part.form == "module" and part.results == 1 for part in every)
    runs = simple and _fits(every) and not _APART.search(name)
    if whole and len(every) > 1 and _equal(every):
        made: Expression = Repeat(every[0].made, Literal(len(every)))
        form: Form = "chain" if runs else "loose"
        return Part(made, form, weights, every[0].takes, every[-1].gives)
    if simple and (runs or not whole):
        made = Call("nn.Sequential", tuple(_filled(parts)))
        return Part(made, "module", weights, every[0].takes, every[-1].gives)
    return Part(ListOrTuple(tuple(_filled(parts))), "loose", weights)


def _open_ended(parts: dict[int, Part]) -> dict[int, Part]:
    """Sequentials among the parts with a step at their end.

    What came last in one may have had no weights, and nothing else would tell so: where
    the row ends its owner has a step.
    """
    last = max(parts)
    equal = len(parts) > 1 and _equal(list(parts.values()))
    return {
        number: part if number == last and not equal else _with_end(part)
        for number, part in parts.items()
    }


def _with_end(part: Part) -> Part:
    match part.made:
        case Call(function="nn.Sequential", args=(*_, Call(function=last))) as made:
            if last.startswith("nn.") and last not in ("nn.Sequential", "nn.Unwritten"):
                step = Call("nn.Unwritten", (Literal((len(made.args),)),))
                return replace(part, made=replace(made, args=(*made.args, step)))
    return part


def _filled(parts: dict[int, Part]) -> list[Expression]:
    """The parts, and a step to be written for every missing number."""
    return [
        parts[number].made
        if number in parts
        else Call("nn.Unwritten", (Literal((number,)),))
        for number in range(max(parts) + 1)
    ]


def _fits(parts: list[Part]) -> bool:
    """Whether output and input sizes of neighbours agree, where known."""
    return all(
        one.gives is None or other.takes is None or one.gives == other.takes
        for one, other in pairwise(parts)
    )


def _equal(parts: list[Part]) -> bool:
    return all(alike(parts[0].made, part.made) for part in parts)
