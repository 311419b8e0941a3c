"""Name `heads` and `head_dim`: how attention splits the features."""

from __future__ import annotations

from burnish.codegen.arrange.hyperparams.names import HEAD_DIM
from burnish.codegen.arrange.hyperparams.size_classes import Node, Product
from burnish.codegen.arrange.hyperparams.size_uses import FEATURES, SizeUses
from burnish.codegen.symbolic.terms import Term

_TOGETHER = (2, 3)
"""How many of queries, keys and values one layer makes; other factors are no such."""


def name_heads(tied: SizeUses, dim: Node, number: int) -> None:
    """How many parts attention cuts the width into; those of keys may be fewer."""
    tied.ties.products = [_apart(tied, p, number) for p in tied.ties.products]
    cuts = [p for p in tied.ties.products if p.is_cut and len(p.factors) == 2]
    cuts = [_of_each(tied, cut, number) for cut in cuts]
    for cut in cuts:
        _widen(tied, cut, dim, number)
    cuts = [cut for cut in cuts if _is_cut(tied, cut)]
    counts = sorted({tied.number(cut.factors[0]) for cut in cuts}, reverse=True)
    sizes = {tied.number(cut.factors[1]) for cut in cuts}
    if not cuts:
        _name_num_heads(tied)
    if len(sizes) != 1 or len(counts) > 2 or counts[0] < 2:
        return
    heads, head_dim = counts[0], sizes.pop()
    if heads * head_dim != number:
        tied.values[HEAD_DIM] = head_dim
    names = dict(zip(counts, ("heads", "kv_heads"), strict=False))
    tied.values |= {name: count for count, name in names.items()}
    for cut in cuts:
        count, size = cut.factors
        tied.terms[tied.ties.find(count)] = Term((names[tied.number(count)],))
        tied.terms[tied.ties.find(size)] = Term((HEAD_DIM,))


def of_fewer_heads(tied: SizeUses) -> set[Node]:
    """Widths that are split into fewer heads than others: those of keys and values.

    Where such a width equals the model's, the two are equal by chance.
    """
    counts = {
        tied.ties.find(cut.whole): tied.number(cut.factors[0])
        for cut in tied.ties.products
        if cut.is_cut and len(cut.factors) == 2 and cut.times == 1
    }
    cuts = {root: n for root, n in counts.items() if _is_layers(tied, root)}
    most = max(cuts.values(), default=0)
    return {root for root, heads in cuts.items() if heads < most}


def _is_layers(tied: SizeUses, root: Node) -> bool:
    uses = tied.uses.get(root, [])
    return any(use.slot.parameter in FEATURES for use in uses)


def _name_num_heads(tied: SizeUses) -> None:
    """Name the `num_heads` of the library's own attention layers."""
    for root in tied.of_one_number(
        lambda uses, _: {use.slot.parameter for use in uses} == {"num_heads"}
    ):
        tied.call(root, "heads")


def _apart(tied: SizeUses, product: Product, dim: int) -> Product:
    """The product without its count: parts as wide as the model are not heads."""
    if not product.is_cut or len(product.factors) != 2:
        return product
    times, part = product.factors
    if tied.ties.of(part) != dim or product.times > 1:
        return product
    return Product(product.whole, (part,), tied.number(times))


def _of_each(tied: SizeUses, cut: Product, number: int) -> Product:
    """The cut into heads of queries, keys and values, which each head has in a row."""
    count, size = cut.factors
    whole = tied.number(tied.ties.find(cut.whole))
    for part in tied.ties.products:
        times = cut.times * part.times
        if len(part.factors) > 1 or part.times not in _TOGETHER:
            continue
        same = tied.ties.find(part.whole) == tied.ties.find(size)
        if same and whole == times * number:
            return Product(cut.whole, (count, part.factors[0]), times, True)
    return cut


def _widen(tied: SizeUses, cut: Product, dim: Node, number: int) -> None:
    """Express the size that is split as the width, or as a multiple of it."""
    whole = tied.ties.find(cut.whole)
    size = tied.number(whole)
    if whole in tied.terms or size != cut.times * number:
        return
    if whole in of_fewer_heads(tied):
        return
    if cut.times > 1:
        tied.terms[whole] = Term(("dim",), cut.times)
    elif tied.may_be(tied.uses.get(whole, []), dim):
        tied.join(dim, whole)


def _is_cut(tied: SizeUses, cut: Product) -> bool:
    """Whether features are cut into heads: a layer makes or takes them."""
    whole = tied.ties.find(cut.whole)
    if whole in tied.terms:
        return tied.terms[whole] == Term(("dim",), cut.times)
    uses = tied.uses.get(whole, [])
    return any(use.slot.parameter in FEATURES | {"size"} for use in uses)
