"""Split an attention's mask into its causal part and the rest.

`(keys <= queries) & mask` in an attention is a mask beside `is_causal`; zeros that are
added to the scores are nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import Dims, declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import Any, Match, Rewritten, Rule, op
from burnish.codegen.passes.rules.attention.masks import (
    LARGEST,
    counts,
    filled,
    hides_what_follows,
    is_triangle,
)
from burnish.codegen.symbolic.sizes import ONE

# --- the mask of attention by position ---


@dataclass(frozen=True)
class _Rest:
    """The rest of a mask without its part by position."""

    mask: ir.Value | None
    causal: bool


def _rest(found: Match) -> _Rest | str:
    node, mask = found.named["main"], found["mask"]
    over = _scores(node)
    if any(v is not None for v in list(node.inputs)[4:]):
        return "there are keys of earlier calls"
    for part, rest in _sides(mask):
        if not _within(part, over):
            continue
        if _changes_nothing(part):
            return _Rest(rest, False)
        if _is_causal(part):
            return _Rest(rest, True)
    return "the mask says nothing of places alone"


def _sides(mask: ir.Value) -> Iterator[tuple[ir.Value, ir.Value | None]]:
    """The parts of a mask, each with the rest of it; the whole mask first."""
    yield mask, None
    maker = g.maker_of(mask, "And", "Add")
    if maker is None:
        return
    one, other = maker.inputs
    for part, rest in ((one, other), (other, one)):
        if part is None or rest is None or rest.graph is not mask.graph:
            continue
        if maker.op_type == "And" or _changes_nothing(part):
            yield part, rest


def _is_causal(mask: ir.Value) -> bool:
    """Whether it keeps the keys up to the query's place, however wide it is."""
    if mask.dtype == ir.DataType.BOOL:
        return is_triangle(mask, wide=True)
    return hides_what_follows(mask, wide=True)


def _scores(node: ir.Node) -> Dims:
    """The axes of an attention's scores."""
    queries, keys = (declared(node.inputs[i]) for i in (0, 1))
    if not queries or not keys or len(queries) < 2 or len(keys) < 2:
        return []
    if len(queries) == 3 and not node.domain:  # ONNX's own keeps heads in the last
        return [queries[0], None, queries[1], keys[1]]
    return [*queries[:-1], keys[-2]]


def _within(mask: ir.Value, over: Dims) -> bool:
    """Whether a mask has no axis that the scores have not."""
    dims = declared(mask)
    if dims is None or len(dims) > len(over):
        return False
    ends = zip(dims, over[len(over) - len(dims) :], strict=True)
    return all(d == ONE or (d is not None and d == size) for d, size in ends)


def _holds_everywhere(value: ir.Value | None) -> bool:
    """Booleans that are all true, such as places compared with the first one."""
    tensor, node = g.constant(value), g.maker_of(value)
    if tensor is not None:
        small = tensor.dtype == ir.DataType.BOOL and tensor.size <= LARGEST
        return small and bool(tensor.numpy().all())
    if node is None or node.inputs[0] is None:
        return False
    if node.op_type in ("Expand", "Unsqueeze", "Reshape", "Identity"):
        return _holds_everywhere(node.inputs[0])
    if node.op_type != "GreaterOrEqual":
        return False
    first, rank = g.scalar(node.inputs[1]), len(declared(node.inputs[0]) or [])
    counted = any(counts(node.inputs[0], axis - rank) for axis in range(rank))
    return first is not None and first <= 0 and counted


def _changes_nothing(mask: ir.Value) -> bool:
    """Every key takes part, or 0 is added."""
    node = mask.producer()
    if node is not None and node.op_type == "Where":
        return g.scalar(node.inputs[1]) == 0 and _holds_everywhere(node.inputs[0])
    if mask.dtype is not None and mask.dtype.is_floating_point():
        return filled(mask) == 0
    return _holds_everywhere(mask)


# --- causal conditions joined with a mask ---


def _without_neutral(found: Match) -> Rewritten:
    if not _holds_everywhere(found["all"]):
        return "neither side holds everywhere"
    result = found.named["main"].outputs[0]
    if result.is_graph_output() or not _masks_only(result, found["all"]):
        return "what always holds may widen the other side"
    return ir.Node("", "Identity", [found["mask"]])


def _masks_only(value: ir.Value, wide: ir.Value) -> bool:
    """Whether only attentions read it whose scores have the axes of `wide` anyway."""
    for user, place in value.uses():
        numbers = [v for i, v in enumerate(user.inputs) if i]
        if user.op_type == "Attention":
            if place != 3 or not _within(wide, _scores(user)):
                return False
        elif user.op_type in ("Add", "And") or (user.op_type == "Where" and place == 0):
            chosen = user.op_type == "Where"
            if chosen and any(g.scalar(v) is None for v in numbers):
                return False
            result = user.outputs[0]
            if result.is_graph_output() or not _masks_only(result, wide):
                return False
        else:
            return False
    return True


def _without_spread(found: Match) -> Rewritten:
    mask, result = found["mask"], found.named["main"].outputs[0]
    if result.is_graph_output() or not result.uses() or mask.graph is not result.graph:
        return "it is asked for"
    if len(declared(mask) or []) != len(declared(result) or [None]):
        return "it gets more axes"
    if not _masks_only(result, result):
        return "something else than a mask may be wider by it"
    return ir.Node("", "Identity", [mask])


def _with_rest(found: Match) -> Rewritten:
    node, rest = found.named["main"], _rest(found)
    if isinstance(rest, str):
        return rest
    inputs = [*node.inputs[:3], *([] if rest.mask is None else [rest.mask])]
    made = ir.Node(node.domain, node.op_type, inputs, list(node.attributes.values()))
    if rest.causal:
        made.attributes.add(ir.AttrInt64("is_causal", 1))
    return made


_BOTH = op("And", Any("all"), Any("mask"), name="main")
_SPREAD = op("Expand", Any("mask"), Any("shape"), name="main")
_PARTS = (Any("q"), Any("k"), Any("v"), Any("mask"))
_ATTENDED = op("Attention", *_PARTS, name="main", domain=None)

RULES = (
    Rule("a mask beside what always holds", _BOTH, _without_neutral),
    Rule("a mask that is spread over the scores", _SPREAD, _without_spread),
    Rule("Attention with places in the mask", _ATTENDED, _with_rest),
)
