"""Name the widths of models with several towers, such as `text_dim` and `vision_dim`.

Each has a width, heads and a depth of its own, which the model calls by the tower:
`Model(vision_dim=768, text_dim=512)`.
"""

from __future__ import annotations

from collections import defaultdict

from burnish.codegen.arrange.analysis.holes import Slot
from burnish.codegen.arrange.hyperparams.size_classes import Node
from burnish.codegen.arrange.hyperparams.size_uses import SizeUses, Use

_HEADS = frozenset(("heads", "num_heads"))


def towers_of(tied: SizeUses, uses: list[Use]) -> set[str]:
    """The first words of the model's attributes that hold these uses."""
    model = tied.classes[-1]
    return {
        use.slot.attribute.partition("_")[0]
        if use.plan is model
        else tied.towers.get(use.plan.name, "")
        for use in uses
    }


def name_towers(tied: SizeUses, widths: dict[int, list[Node]]) -> bool:
    """Name width, heads and hidden size of each tower, if all have them.

    widths: sizes of features that norms and embeddings have, with their roots.
    """
    found: dict[str, dict[int, list[Node]]] = defaultdict(lambda: defaultdict(list))
    for size, roots in widths.items():
        for root in roots:
            inside = _inside(tied, tied.uses[root])
            if len(inside) != 1:
                return False
            found[inside.pop()][size].append(root)
    if len(found) < 2 or "" in found or any(len(sizes) > 1 for sizes in found.values()):
        return False
    own = {f"{tower}_heads": _single(tied, tower, _HEADS) for tower in found}
    heads = own if all(own.values()) else {"heads": _of_all(tied)}
    if not all(heads.values()):
        return False
    for tower, sizes in found.items():
        ((size, roots),) = sizes.items()
        tied.call(_joined(tied, tower, size, roots), f"{tower}_dim")
        for root in _between(tied, tower, size):
            tied.call(root, f"{tower}_hidden")
    for name, roots in heads.items():
        for root in roots:
            tied.call(root, name)
    return True


def _joined(tied: SizeUses, tower: str, size: int, roots: list[Node]) -> Node:
    """The roots of a tower's width."""
    dim = roots[0]
    for root in roots[1:]:
        tied.join(dim, root)
    for root, uses, number in list(tied.roots()):
        same = number == size and root != dim and _inside(tied, uses) == {tower}
        if same and tied.may_be(uses, dim):
            tied.join(dim, root)
    return dim


def _inside(tied: SizeUses, uses: list[Use]) -> set[str]:
    """The towers whose classes have these uses; the model's own layers are in none."""
    return towers_of(tied, [use for use in uses if use.plan is not tied.classes[-1]])


def _single(tied: SizeUses, tower: str, parameters: frozenset[str]) -> list[Node]:
    """The sizes that a tower's classes pass to such parameters, if all are equal."""
    return tied.of_one_number(
        lambda uses, _: (
            {use.slot.parameter for use in uses} <= parameters
            and _inside(tied, uses) == {tower}
        )
    )


def _of_all(tied: SizeUses) -> list[Node]:
    """The heads of attention that all towers have, where it is one number."""
    return tied.of_one_number(
        lambda uses, _: (
            all(_is_cut(use.slot) for use in uses) and _inside(tied, uses) == {""}
        )
    )


def _is_cut(slot: Slot) -> bool:
    """Whether it is the third of `reshape(batch, time, heads, -1)`."""
    return slot.parameter == "reshape" and (slot.place, slot.rank) == (2, 4)


def _between(tied: SizeUses, tower: str, dim: int) -> list[Node]:
    """The roots of a tower's hidden size."""
    return tied.of_one_number(
        lambda uses, size: (
            size != dim
            and all(_is_evident(tied, use) for use in uses)
            and _inside(tied, uses) == {tower}
        )
    )


def _is_evident(tied: SizeUses, use: Use) -> bool:
    """Whether features are an argument of one of the source's own classes."""
    own = use.slot.callee in tied.ties.parameters
    return own and use.slot.parameter.endswith("features")
