"""Infer convolutions: groups, and which are transposed."""

from __future__ import annotations

import re

from burnish.codegen.infer.layers.leaves import Around, Leaf, is_named_transposed, shape
from burnish.codegen.infer.tree import Node

_DEPTHWISE = re.compile(r"depth|dw|separable", re.IGNORECASE)


def convolution(node: Node, around: Around) -> Leaf | None:
    """A convolution of one, two or three axes, either direction."""
    first, second, *kernel = shape(node, "weight")
    bias = shape(node, "bias")
    if bias and len(bias) != 1:
        return None
    if "bilinear" in node.name.lower() and len(kernel) == 1 and bias == (first,):
        sizes = (second, kernel[0], first)
        return Leaf("Bilinear", sizes, {}, None, first, 0)
    groups = _transposed_groups(node, around, first, second, bias)
    options = {} if bias else {"bias": False}
    size = kernel[0] if len(set(kernel)) == 1 else tuple(kernel)
    rank = len(kernel)
    if groups:
        outs = second * groups
        grouped = {"groups": groups} if groups > 1 else {}
        kind = f"ConvTranspose{rank}d"
        return Leaf(kind, (first, outs, size), grouped | options, first, outs, rank)
    if bias and bias[0] != first:
        return None
    count = _groups(node, around, first, second, tuple(kernel))
    ins = second * count
    grouped = {"groups": count} if count > 1 else {}
    return Leaf(f"Conv{rank}d", (ins, first, size), grouped | options, ins, first, rank)


def _transposed_groups(
    node: Node, around: Around, first: int, second: int, bias: tuple[int, ...]
) -> int:
    """The groups of a transposed convolution (in, out / groups, ...); 0: it is none."""
    if bias and bias[0] != first:
        groups, rest = divmod(bias[0], second)
        return 0 if rest or not groups or first % groups else groups
    named = is_named_transposed(node)
    if bias and first != second:
        return 0
    if first != second:  # without a bias: by the layers beside it
        return int(around.turned)
    if named:
        around.doubt(node.path, "transposed by its name")
    return int(named)


def _groups(
    node: Node, around: Around, outs: int, second: int, kernel: tuple[int, ...]
) -> int:
    """The number of groups: 1, unless the input is a multiple as wide."""
    before = around.before
    if before is None or before.gives is None:
        return outs if _DEPTHWISE.search(node.name) and second == 1 else 1
    width = before.gives
    count, rest = divmod(width, second)
    parallel = second == before.takes and before.rank == len(kernel)
    fits = not rest and count > 1 and outs % count == 0
    if fits and around.chained and not parallel:
        return count
    alone = second not in around.widths or (around.beside and second != around.fed)
    if fits and width == outs and max(kernel) > 1 and alone:
        around.doubt(node.path, "groups by the channels of the layer before")
        return count
    if second == 1 and outs > 1 and _DEPTHWISE.search(node.path):
        return outs
    return 1
