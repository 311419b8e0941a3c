"""Containers for chains of modules: a ModuleList with a loop, or a Sequential."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from burnish.codegen.arrange.classes.as_layer import Submodule
from burnish.codegen.program import (
    Call,
    Keyed,
    SelfAttr,
    Statement,
    Value,
    called_in_turn,
    callee,
    under,
)


def as_sequential(parts: Mapping[Any, Submodule]) -> Submodule | None:
    """A chain of one-input modules as `nn.Sequential`, by their numbers or names.

    Missing numbers become identities.
    """
    chain = list(parts.values())
    if any(len(part.inputs) != 1 for part in chain):
        return None
    if all(isinstance(name, str) for name in parts):
        items = tuple((name, part.constructor) for name, part in parts.items())
        made = Call("nn.Sequential", (Keyed(items),))
    elif list(parts) != sorted(parts):
        return None
    else:
        filled = [
            parts[n].constructor if n in parts else Call("nn.Identity")
            for n in range(max(parts) + 1)
        ]
        made = Call("nn.Sequential", tuple(filled))
    return Submodule(
        made,
        [held for n, part in parts.items() for held in under(n, part.weights)],
        chain[0].inputs,
        chain[-1].outputs,
        set().union(*(part.statements for part in chain)),
        [note for part in chain for note in part.notes],
    )


def as_loop(
    chain: list[Submodule], singular: str
) -> Callable[[SelfAttr], Statement] | None:
    """A chain of equal modules as a loop over their list, given where that is."""
    first = chain[0]
    kind = callee(first.constructor)
    if len(chain) < 2 or not kind or kind.startswith("nn."):
        return None
    rolling = first.inputs
    place = chain[1].inputs.index(first.outputs[0])
    if place >= len(rolling):
        return None
    for part, before in zip(chain[1:], chain, strict=False):
        expected = list(first.inputs)
        expected[place] = before.outputs[0]
        if callee(part.constructor) != kind or list(part.inputs) != expected:
            return None

    item, end = Value(singular), chain[-1].outputs[0]
    return lambda own: called_in_turn(own, item, rolling, place, end)
