"""Containers for chains of modules: a ModuleList with a loop, or a Sequential."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from burnish.codegen.arrange.classes.as_layer import Submodule
from burnish.codegen.program import (
    Assign,
    Block,
    Call,
    Keyed,
    Loop,
    ModuleCall,
    SelfAttr,
    Statement,
    Value,
    callee,
)


def as_sequential(parts: dict[int, Submodule]) -> Submodule | None:
    """A chain of one-input modules as `nn.Sequential`; gaps become identities."""
    chain = list(parts.values())
    if list(parts) != sorted(parts) or any(len(part.inputs) != 1 for part in chain):
        return None
    filled = [
        parts[n].constructor if n in parts else Call("nn.Identity")
        for n in range(max(parts) + 1)
    ]
    return _chained(Call("nn.Sequential", tuple(filled)), parts)


def as_named_sequential(parts: dict[str, Submodule]) -> Submodule | None:
    """A chain of one-input modules as `nn.Sequential({"name": ...})`."""
    chain = list(parts.values())
    if any(len(part.inputs) != 1 for part in chain):
        return None
    named = Keyed(tuple((name, part.constructor) for name, part in parts.items()))
    return _chained(Call("nn.Sequential", (named,)), parts)


def _chained(made: Call, parts: Mapping[Any, Submodule]) -> Submodule:
    chain = list(parts.values())
    return Submodule(
        made,
        [(f"{n}.{path}", w) for n, part in parts.items() for path, w in part.weights],
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

    def loop(own: SelfAttr) -> Statement:
        item = Value(singular)
        carried = Value("x", first.outputs[0].dtype, first.outputs[0].shape)
        inputs = list(rolling)
        inputs[place] = carried
        result = Value("x", carried.dtype, carried.shape)
        body = Block([Assign((result,), (), ModuleCall(item, tuple(inputs)))], [result])
        return Loop(
            chain[-1].outputs,
            items=own,
            index=item,
            carried=(carried,),
            initial=(rolling[place],),
            body=body,
        )

    return loop
