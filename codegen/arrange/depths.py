"""How long lists of equal parts are."""

from __future__ import annotations

from collections.abc import Iterator

from burnish.codegen.arrange.found import Found, Use
from burnish.codegen.program import Call, Expression, walk


def name_depths(tied: Found) -> None:
    """How long lists of equal parts are; each by its own name if they differ.

    Where there are none: how often the one part is called.
    """
    found = [
        (root, _towers(tied, uses), size)
        for root, uses, size in tied.roots()
        if {use.slot.parameter for use in uses} == {"depth"}
    ]
    rounds = [
        root
        for root, uses, _ in tied.roots()
        if {use.slot.parameter for use in uses} == {"rounds"}
    ]
    if not found and len(rounds) == 1:
        tied.call(rounds[0], "depth")
    if len({size for _, _, size in found}) == 1:
        for root, _, _ in found:
            tied.call(root, "depth")
        return
    names = [tower for _, towers, _ in found for tower in towers]
    if len(names) == len(set(names)) == len(found):
        for root, towers, _ in found:
            tied.call(root, f"{towers.pop()}_depth")


def _towers(tied: Found, uses: list[Use]) -> set[str]:
    """The first words of the model's attributes that hold these uses."""
    model = tied.classes[-1]
    return {
        use.slot.attribute.partition("_")[0]
        if use.plan is model
        else _tower(tied, use.plan.name)
        for use in uses
    }


def _tower(tied: Found, kind: str) -> str:
    """The first word of the model's attribute that holds a class; "" for two."""
    holders = {plan.name: set(_made(plan.members)) for plan in tied.classes}
    found = []
    for attribute, made in tied.classes[-1].members:
        waiting, seen = set(_made([(attribute, made)])), set()
        while waiting:
            name = waiting.pop()
            seen.add(name)
            waiting |= holders.get(name, set()) - seen
        if kind in seen:
            found.append(attribute.partition("_")[0])
    return found[0] if len(found) == 1 else ""


def _made(members: list[tuple[str, Expression]]) -> Iterator[str]:
    """What the constructors of members call."""
    for _, made in members:
        for part in walk(made):
            if isinstance(part, Call):
                yield part.function
