"""Fuse reshape-transpose-reshape to pixel shuffle, unshuffle and channel shuffle."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import declared, known
from burnish.codegen.passes.pattern import Any, Match, Rewritten, Rule, op
from burnish.codegen.symbolic.sizes import Size, product

_TURN = op("Transpose", op("Reshape", Any("x"), Any("parts")), name="turn")
_SHUFFLE = op("Reshape", _TURN, Any("shape"), name="main")

_SHUFFLED = [0, 1, 4, 2, 5, 3]  # n, c, r, r, h, w -> n, c, h, r, w, r
_UNSHUFFLED = [0, 1, 3, 5, 2, 4]  # n, c, h, r, w, r -> n, c, r, r, h, w


def _shapes(found: Match) -> tuple[list[Size], list[Size], list[Size]] | str:
    """The shapes of input, first reshape and output; or why they are unknown."""
    turn = found.named["turn"]
    values = (found["x"], turn.inputs[0], found.named["main"].outputs[0])
    before, parts, after = (known(declared(value)) for value in values)
    if before is None or parts is None or after is None:
        return "the shapes are not known"
    return before, parts, after


def _order(found: Match) -> list[int]:
    return list(found.named["turn"].attributes.get_ints("perm", ()))


def _shuffled(found: Match) -> Rewritten:
    factor = _factor(found, _SHUFFLED, (2, 3), (0, 1, 4, 5))
    if isinstance(factor, str):
        return factor
    attributes: dict[str, int | str] = {"blocksize": factor, "mode": "CRD"}
    return ir.node("DepthToSpace", [found["x"]], attributes)


def _unshuffled(found: Match) -> Rewritten:
    factor = _factor(found, _UNSHUFFLED, (3, 5), (0, 1, 2, 4))
    if isinstance(factor, str):
        return factor
    size = {"blocksize": factor}
    return ir.node("PixelUnshuffle", [found["x"]], size, domain="burnish")


def _factor(
    found: Match, order: list[int], split: tuple[int, int], kept: tuple[int, ...]
) -> int | str:
    """The factor by which height and width are split; or why it is none.

    split: the places of both factors among the parts. kept: those of the other sizes.
    """
    shapes = _shapes(found)
    if _order(found) != order:
        return "the parts are put in another order"
    if isinstance(shapes, str):
        return shapes
    before, parts, after = shapes
    many, few = (before, after) if order == _SHUFFLED else (after, before)
    r, other = (parts[i] for i in split)
    if r.value is None or r != other:
        return "height and width are not split alike"
    small = [parts[i] for i in kept]
    wide = [*small[:2], product([small[2], r]), product([small[3], r])]
    deep = [small[0], product([small[1], r, r]), *small[2:]]
    return r.value if (many, few) == (deep, wide) else "other axes are split"


def _channels(found: Match) -> Rewritten:
    order, shapes = _order(found), _shapes(found)
    if order[:3] != [0, 2, 1] or order[3:] != list(range(3, len(order))):
        return "the parts are put in another order"
    if isinstance(shapes, str):
        return shapes
    before, parts, after = shapes
    if before != after or len(before) < 4 or len(parts) != len(before) + 1:
        return "the result has other axes than what came in"
    if [parts[0], *parts[3:]] != [before[0], *before[2:]]:
        return "other axes than the channels are split"
    if parts[1].value is None:
        return "the groups are not constant"
    count = {"groups": parts[1].value}
    return ir.node("ChannelShuffle", [found["x"]], count, domain="burnish")


RULES = (
    Rule("PixelShuffle", _SHUFFLE, _shuffled),
    Rule("PixelUnshuffle", _SHUFFLE, _unshuffled),
    Rule("ChannelShuffle", _SHUFFLE, _channels),
)
