"""Name `depth`: the lengths of lists of equal modules."""

from __future__ import annotations

from burnish.codegen.arrange.hyperparams.size_uses import SizeUses
from burnish.codegen.arrange.hyperparams.towers import towers_of


def name_depths(tied: SizeUses) -> None:
    """How long lists of equal parts are; each by its own name if they differ.

    Where there are none: how often the one part is called.
    """
    found = [
        (root, towers_of(tied, uses), size)
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
