"""Fuse reshape-transpose-reshape to pixel shuffle, unshuffle and channel shuffle."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import declared, known
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import Any, Match, Rule, op
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


def _check_pixels(found: Match, order: list[int]) -> str | None:
    shapes = _shapes(found)
    if _order(found) != order:
        return "the parts are put in another order"
    if isinstance(shapes, str):
        return shapes
    before, parts, after = shapes
    many, few = (before, after) if order == _SHUFFLED else (after, before)
    if (factor := _factor(found)) is None:
        return "height and width are not split alike"
    small = [parts[i] for i in ((0, 1, 4, 5) if order == _SHUFFLED else (0, 1, 2, 4))]
    r = Size.number(factor)
    wide = [*small[:2], product([small[2], r]), product([small[3], r])]
    deep = [small[0], product([small[1], r, r]), *small[2:]]
    return None if (many, few) == (deep, wide) else "other axes are split"


def _factor(found: Match) -> int | None:
    """The factor by which height and width are split, if it is the same."""
    dims = declared(found.named["turn"].inputs[0]) or []
    one, other = [dims[i] for i in ((2, 3) if _order(found) == _SHUFFLED else (3, 5))]
    return one.value if one is not None and one == other else None


def _pixels(found: Match) -> ir.Node:
    size = {"blocksize": g.unwrap(_factor(found))}
    if _order(found) == _SHUFFLED:
        return ir.node("DepthToSpace", [found["x"]], {**size, "mode": "CRD"})
    return ir.node("PixelUnshuffle", [found["x"]], size, domain="burnish")


def _check_channels(found: Match) -> str | None:
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
    return None if parts[1].value is not None else "the groups are not constant"


def _channels(found: Match) -> ir.Node:
    parts = g.unwrap(known(declared(found.named["turn"].inputs[0])))
    count = {"groups": g.unwrap(parts[1].value)}
    return ir.node("ChannelShuffle", [found["x"]], count, domain="burnish")


RULES = (
    Rule(
        "PixelShuffle", _SHUFFLE, lambda found: _check_pixels(found, _SHUFFLED), _pixels
    ),
    Rule(
        "PixelUnshuffle",
        _SHUFFLE,
        lambda found: _check_pixels(found, _UNSHUFFLED),
        _pixels,
    ),
    Rule("ChannelShuffle", _SHUFFLE, _check_channels, _channels),
)
