"""Choose the sizes that become constructor arguments, and their names.

dim, depth, heads, hidden, vocab, classes: what people call them, with the file's values
as the model's defaults. Sizes that are products of others follow them.
"""

from __future__ import annotations

from collections import defaultdict

from burnish.codegen.arrange.hyperparams.depths import name_depths
from burnish.codegen.arrange.hyperparams.head_counts import name_heads, of_fewer_heads
from burnish.codegen.arrange.hyperparams.io_sizes import (
    name_positions,
    name_results,
    name_vocabulary,
)
from burnish.codegen.arrange.hyperparams.names import HEAD_DIM, cut, whole
from burnish.codegen.arrange.hyperparams.rewrite import Arguments, write
from burnish.codegen.arrange.hyperparams.size_classes import Node, Product
from burnish.codegen.arrange.hyperparams.size_uses import FEATURES, SizeUses
from burnish.codegen.arrange.hyperparams.towers import name_towers
from burnish.codegen.errors import Explain
from burnish.codegen.program import ClassPlan
from burnish.codegen.symbolic.terms import Term

_WIDTH = frozenset(("normalized_shape", "embedding_dim"))
_LEAST = 4
"""A width has this many uses; a size with fewer may be one layer's."""


def with_arguments(
    classes: list[ClassPlan],
    outputs: list[str],
    explain: Explain,
    by_number: bool = False,
) -> None:
    """Give the classes arguments for the sizes that tie them together, in place.

    outputs: what the file calls the model's results. by_number: features of one number
    are the same size, where no data flow tells which are.
    """
    tied = SizeUses(classes, by_number)
    is_deep = _width(tied)
    name_vocabulary(tied)
    name_results(tied, outputs)
    name_positions(tied)
    if is_deep:
        name_depths(tied)
    _follow(tied)
    if not tied.values:
        return
    find = tied.ties.find
    terms = {find(root): term for root, term in tied.terms.items()}
    arguments = Arguments(tied.values, terms, tied.ties)
    write(classes, arguments)
    counts = _counts(tied)
    for name, value in arguments.values.items():
        where = f", in {counts[name]} places" if counts.get(name) else ""
        explain(f"argument {name}={value}{where}")


def _counts(tied: SizeUses) -> dict[str, int]:
    """The number of uses of each argument."""
    counts: dict[str, int] = defaultdict(int)
    for root, uses in tied.uses.items():
        term = tied.terms.get(tied.ties.find(root))
        for name in term.names if term else ():
            counts[name] += len(uses)
    return counts


def _width(tied: SizeUses) -> bool:
    """The size of the features that norms and embeddings have; whether there is one."""
    norms = set(map(tied.ties.find, tied.ties.norms))
    counts: dict[int, int] = defaultdict(int)
    roots: dict[int, list[Node]] = defaultdict(list)
    for root, uses, size in tied.roots():
        kinds = [use.slot.parameter for use in uses]
        if root in norms or not _WIDTH.isdisjoint(kinds):
            counts[size] += sum(kind in FEATURES or kind == "size" for kind in kinds)
            roots[size].append(root)
    sizes = sorted(counts, key=lambda size: -counts[size])
    if not sizes or counts[sizes[0]] < _LEAST:
        return False
    if len(sizes) > 1 and 2 * counts[sizes[1]] >= counts[sizes[0]]:
        sizes = _embedding_width(tied, sizes, roots)
        if not sizes:  # stages, or towers, each of a width of its own
            return name_towers(tied, roots)
    number = sizes[0]
    dim = roots[number][0]
    for root in roots[number][1:]:
        tied.join(dim, root)
    apart = of_fewer_heads(tied)
    for root, uses, size in list(tied.roots()):
        other = size == number and root != dim and root not in apart
        if other and tied.may_be(uses, dim):
            tied.join(dim, root)
    taken, _ = tied.ties.outlines[tied.classes[-1].name]
    if dim not in {tied.ties.find(size) for dims in taken for size in dims or ()}:
        tied.call(dim, "dim")
        name_heads(tied, dim, number)
    _hidden(tied, number)
    _narrow(tied, number)
    return True


def _embedding_width(
    tied: SizeUses, sizes: list[int], roots: dict[int, list[Node]]
) -> list[int]:
    """The width that a layer brings words to; [] where none does that."""
    pairs = {
        (tied.ties.find(taken), tied.ties.find(given))
        for taken, given in tied.ties.layers
    }
    for narrow, wide in (sizes, sizes[::-1]) if len(sizes) == 2 else ():
        if any(
            (one, other) in pairs and tied.is_embedded(one)
            for one in roots[narrow]
            for other in roots[wide]
        ):
            return [wide]
    return []


def _hidden(tied: SizeUses, dim: int) -> None:
    """Name `hidden`: the one width besides `dim` between two layers."""
    takes = {tied.ties.find(taken) for taken, _ in tied.ties.layers}
    gives = {tied.ties.find(given) for _, given in tied.ties.layers}
    found: dict[int, list[Node]] = defaultdict(list)
    for root, uses, size in tied.roots():
        kinds = {use.slot.parameter for use in uses}
        stored = "size" in kinds
        taken = "in_features" in kinds or (stored and root in takes)
        given = "out_features" in kinds or (stored and root in gives)
        if taken and given and size != dim:
            found[size].append(root)
    if len(found) == 1:
        for root in next(iter(found.values())):
            tied.call(root, "hidden")


def _narrow(tied: SizeUses, dim: int) -> None:
    """How wide words are, where a layer widens them to the model's width."""
    found = [
        root for root, _, size in tied.roots() if size != dim and tied.is_embedded(root)
    ]
    if len(found) == 1:
        tied.call(found[0], "width")


def _follow(tied: SizeUses) -> None:
    """Sizes that are products of named ones, until no more is found."""
    derived = "heads" in tied.values and HEAD_DIM not in tied.values
    if derived:
        tied.terms = {root: cut(term) for root, term in tied.terms.items()}
    while sum(_followed(tied, product) for product in tied.ties.products):
        pass
    if derived:
        tied.terms = {root: whole(term) for root, term in tied.terms.items()}


def _followed(tied: SizeUses, product: Product) -> bool:
    whole = tied.ties.find(product.whole)
    parts = [tied.ties.find(factor) for factor in product.factors]
    open_ = [part for part in parts if part not in tied.terms]
    known: Term | None = Term((), product.times)
    for part in parts:
        if part in tied.terms and known is not None:
            known = known * tied.terms[part]
    if known is None:
        return False
    if whole not in tied.terms and not open_:
        tied.terms[whole] = known
        return True
    if whole in tied.terms and len(open_) == 1:
        term = tied.terms[whole].divided(known)
        if term is not None and term.names:
            tied.terms[open_[0]] = term
            return True
    return False
