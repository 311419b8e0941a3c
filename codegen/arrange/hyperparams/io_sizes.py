"""Name sizes of inputs and outputs: `vocab`, `positions`, `classes`."""

from __future__ import annotations

import re

from burnish.codegen.arrange.analysis.holes import Slot
from burnish.codegen.arrange.hyperparams.names import kind
from burnish.codegen.arrange.hyperparams.size_classes import Node
from burnish.codegen.arrange.hyperparams.size_uses import SizeUses, Use
from burnish.codegen.symbolic.terms import Term

_CLASSES = re.compile("logit|class|prob|score")
_WORDS = re.compile("word|tok|wte|^embed")
_NO_WORDS = re.compile("pos|type|segment|bias|(^|_)rel(ative)?_")
_PLACES = re.compile("pos|wpe")
_HEAD = re.compile("(.*_)?(head|fc|classifier|logits)$")
_GENERIC = re.compile(r"(out|output|result|y|linear|addmm|matmul|gemm|add)?s?[\d_.]*$")
_MANY = 4
"""A table with this many times fewer rows than another is of types, not of words."""


def name_vocabulary(tied: SizeUses) -> None:
    """How many ids an embedding knows, where it is none of positions or types."""
    found = [
        (root, size, any(_WORDS.search(use.slot.attribute) for use in uses))
        for root, uses, size in tied.roots()
        if any(_is_vocabulary(use.slot) for use in uses)
    ]
    if len(found) > 1:
        found = [each for each in found if each[2]] or found
        most = max(size for _, size, _ in found)
        found = [each for each in found if _MANY * each[1] > most]
    if len({size for _, size, _ in found}) != 1:
        return
    vocab = found[0][1]
    for root, _, _ in found:
        tied.call(root, "vocab")
    cut = {tied.ties.find(product.whole) for product in tied.ties.products}
    for other, uses, size in list(tied.roots()):
        if size == vocab and other not in cut and _is_made(uses):
            tied.call(other, "vocab")


def name_results(tied: SizeUses, outputs: list[str]) -> None:
    """Name the output size of the last layer: `classes`, or `outputs`.

    outputs: what the file calls the model's results.
    """
    names = [name.lower() for name in outputs]
    has_classes = any(map(_CLASSES.search, names))
    unnamed = any(map(_GENERIC.match, names))
    _, results = tied.ties.outlines[tied.classes[-1].name]
    ends = {tied.ties.find(dims[-1]) for dims in results if dims}
    for root, uses, size in list(tied.roots()):
        made = [use for use in uses if use.slot.parameter == "out_features"]
        is_head = has_classes or all(_HEAD.match(u.slot.attribute) for u in made)
        if {root} != ends or not made or not _is_made(uses) or not is_head:
            continue
        if any(use.slot.attribute == "lm_head" for use in uses):
            tied.call(root, "vocab")
            _rows(tied, size)
        else:
            classes = has_classes or unnamed
            tied.call(root, "classes" if classes else "outputs")


def _rows(tied: SizeUses, vocab: int) -> None:
    """A table of words that is no embedding, for it is read in two places."""
    rows = _wide_rows(tied)
    for root, _, size in list(tied.roots()):
        if size == vocab and root in rows:
            tied.call(root, "vocab")


def _wide_rows(tied: SizeUses) -> set[Node]:
    """The rows of tables that are as wide as the model, or as its words."""
    find = tied.ties.find
    wide = {Term((n,)) for n in tied.values if kind(n) in ("dim", "width")}
    return {
        find(rows)
        for rows, width in tied.ties.rows
        if tied.terms.get(find(width)) in wide
    }


def name_positions(tied: SizeUses) -> None:
    """How many places of a sequence an embedding knows, and tables of places."""
    rows, whole = _wide_rows(tied), _whole_tables(tied)
    found = [
        (root, size)
        for root, uses, size in tied.roots()
        if root in rows and any(map(_is_place, uses)) and size not in whole
    ]
    if len({size for _, size in found}) != 1:
        return
    positions = found[0][1]
    for root, _ in found:
        tied.call(root, "positions")
    for root, uses, size in list(tied.roots()):
        if size == positions and all(map(_is_table, uses)):
            tied.call(root, "positions")


def _whole_tables(tied: SizeUses) -> set[int]:
    """How long tables are that are as long as a sequence: all of it is always there."""
    outlines = tied.ties.outlines.values()
    lengths = {
        tied.ties.find(dim)
        for shapes in outlines
        for dims in (*shapes[0], *shapes[1])
        for dim in dims or ()
    }
    return {
        size
        for root, uses, size in tied.roots()
        if root in lengths and any(map(_is_table, uses))
    }


def _is_table(use: Use) -> bool:
    return use.slot.parameter == "size" and use.slot.callee == "nn.Buffer"


def _is_made(uses: list[Use]) -> bool:
    """Whether features are a layer's result, or a layer's result plus a bias."""
    return {use.slot.parameter for use in uses} <= {"out_features", "size"}


def _is_place(use: Use) -> bool:
    """Whether a table's rows are for places of a sequence, as it is called."""
    names = f"{use.plan.name} {use.slot.attribute}".lower()
    return bool(_PLACES.search(names)) and "bias" not in names


def _is_vocabulary(slot: Slot) -> bool:
    """Whether rows are of words; those for distances are `rel_`, or `relative_`."""
    name = slot.attribute.lower()
    return slot.parameter == "num_embeddings" and not _NO_WORDS.search(name)
