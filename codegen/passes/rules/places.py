"""Masks that are made place by place: what each place says is read as a whole.

`mask[arange(batch)[:, None], arange(time)]` is `mask`, and `(keys <= queries) & mask`
in an attention is a mask beside `is_causal`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from burnish.codegen.passes.graph import attribute, constant, integers, scalar
from burnish.codegen.passes.pattern import Any, Match, Pattern, Rule, either, op
from burnish.codegen.passes.rules.masks import counts, is_lower_triangle
from burnish.codegen.passes.shape_words import Dims, declared
from burnish.codegen.sizes import ONE

# --- elements gathered at every place in turn ---


def _part(name: str) -> Pattern:
    """Places along one axis, spread over the others; the last axis holds indices."""
    spread = op("Expand", Any(name), Any(f"{name}_shape"))
    last = Any(f"{name}_last")
    return either(op("Unsqueeze", spread, last), op("Unsqueeze", Any(name), last))


def _is_whole(found: Match) -> str | None:
    node = found.named["main"]
    result, data = declared(node.outputs[0]), declared(found["data"])
    if attribute(node, "batch_dims", 0):
        return "elements of several batches are gathered"
    if result is None or data is None or len(data) != 2 or None in [*result, *data]:
        return "the shapes are not known"
    places = [_axis(found["a"]), _axis(found["b"])]
    first, second = places
    if first is None or second is None or first >= second:
        return "the places are not counted along an axis each"
    if declared(found["a"]) is None or len(declared(found["a"]) or []) != len(result):
        return "the places have other axes than the result"
    for place, size in enumerate(result):
        wanted = data[places.index(place)] if place in places else ONE
        if size != wanted:
            return f"axis {place} of the result is no axis of what is gathered"
    return None


def _axis(value: ir.Value) -> int | None:
    """The axis along which a value is 0, 1, 2, ..., where it has no other."""
    rank = len(declared(value) or [])
    found = [axis for axis in range(rank) if counts(value, axis - rank)]
    return _counted_from_front(value) if len(found) == 1 else None


def _counted_from_front(value: ir.Value) -> int | None:
    """Where the one axis of a Range ends up behind Unsqueezes."""
    node = value.producer()
    if node is not None and node.op_type == "Range":
        return 0
    if node is None or node.op_type != "Unsqueeze" or node.inputs[0] is None:
        return None
    inner, rank = _counted_from_front(node.inputs[0]), len(declared(value) or [])
    held = node.attributes.get("axes")
    axes = list(held.as_ints()) if held is not None else integers(node.inputs[1])
    if inner is None or axes is None:
        return None
    new = {axis % rank for axis in axes}
    return [axis for axis in range(rank) if axis not in new][inner]


def _unsqueezed(found: Match) -> list[ir.Node]:
    rank = len(declared(found["a"]) or [])
    kept = {_axis(found["a"]), _axis(found["b"])}
    axes = ir.tensor(np.array([i for i in range(rank) if i not in kept], np.int64))
    made = ir.Node("", "Constant", [], [ir.AttrTensor("value", axes)])
    return [made, ir.Node("", "Unsqueeze", [found["data"], made.outputs[0]])]


# --- what an attention's mask says of places ---


@dataclass(frozen=True)
class _Rest:
    """What is left of a mask beside what is known of places."""

    mask: ir.Value | None
    causal: bool


def _rest(found: Match) -> _Rest | str:
    node, mask = found.named["main"], found["mask"]
    over = _scores(node)
    if any(v is not None for v in list(node.inputs)[4:]):
        return "there are keys of earlier calls"
    if _changes_nothing(mask) and _within(mask, over):
        return _Rest(None, False)
    if is_lower_triangle(mask) and _within(mask, over):
        return _Rest(None, True)
    maker = mask.producer()
    sides = tuple(maker.inputs) if maker is not None and maker.op_type == "And" else ()
    for one, other in zip(sides, sides[::-1], strict=True):
        if one is None or other is None or other.graph is not mask.graph:
            continue
        if is_lower_triangle(one) and _within(one, over):
            return _Rest(other, True)
    return "the mask says nothing of places alone"


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
    tensor, node = constant(value), None if value is None else value.producer()
    if tensor is not None:
        small = tensor.dtype == ir.DataType.BOOL and tensor.size < 1 << 24
        return small and bool(tensor.numpy().all())
    if node is None or node.inputs[0] is None:
        return False
    if node.op_type in ("Expand", "Unsqueeze", "Reshape", "Identity"):
        return _holds_everywhere(node.inputs[0])
    if node.op_type != "GreaterOrEqual":
        return False
    first, rank = scalar(node.inputs[1]), len(declared(node.inputs[0]) or [])
    counted = any(counts(node.inputs[0], axis - rank) for axis in range(rank))
    return first is not None and first <= 0 and counted


def _changes_nothing(mask: ir.Value) -> bool:
    """Every key takes part, or 0 is added."""
    node = mask.producer()
    if node is not None and node.op_type == "Where":
        return scalar(node.inputs[1]) == 0 and _holds_everywhere(node.inputs[0])
    return _holds_everywhere(mask)


# --- what always holds, beside a mask ---


def _is_neutral(found: Match) -> str | None:
    if not _holds_everywhere(found["all"]):
        return "neither side holds everywhere"
    result = found.named["main"].outputs[0]
    if result.is_graph_output() or not _masks_only(result, found["all"]):
        return "what always holds may widen the other side"
    return None


def _masks_only(value: ir.Value, wide: ir.Value) -> bool:
    """Whether only attentions read it whose scores have the axes of `wide` anyway."""
    for user, place in value.uses():
        numbers = [v for i, v in enumerate(user.inputs) if i]
        if user.op_type == "Attention":
            if place != 3 or not _within(wide, _scores(user)):
                return False
        elif user.op_type == "Where" and place == 0:
            if any(scalar(v) is None for v in numbers):
                return False
            if user.outputs[0].is_graph_output():
                return False
            if not _masks_only(user.outputs[0], wide):
                return False
        else:
            return False
    return True


def _says_places(found: Match) -> str | None:
    rest = _rest(found)
    return rest if isinstance(rest, str) else None


def _with_rest(found: Match) -> ir.Node:
    node, rest = found.named["main"], _rest(found)
    assert isinstance(rest, _Rest)
    inputs = [*node.inputs[:3], *([] if rest.mask is None else [rest.mask])]
    made = ir.Node(node.domain, node.op_type, inputs, list(node.attributes.values()))
    if rest.causal:
        made.attributes.add(ir.AttrInt64("is_causal", 1))
    return made


def _attended(domain: str) -> Pattern:
    parts = (Any("q"), Any("k"), Any("v"), Any("mask"))
    return op("Attention", *parts, name="main", domain=domain)


RULES = (
    Rule(
        "all places in turn",
        op(
            "GatherND",
            Any("data"),
            op("Concat", _part("a"), _part("b")),
            name="main",
        ),
        _is_whole,
        _unsqueezed,
        ("", "Unsqueeze", 13),
    ),
    Rule(
        "a mask beside what always holds",
        either(
            op("And", Any("all"), Any("mask"), name="main"),
            op("And", Any("mask"), Any("all"), name="main"),
        ),
        _is_neutral,
        lambda found: ir.Node("", "Identity", [found["mask"]]),
        ("", "Identity", 1),
    ),
    Rule(
        "Attention with places in the mask",
        _attended("burnish"),
        _says_places,
        _with_rest,
        ("burnish", "Attention", 1),
    ),
    Rule(
        "ONNX's Attention with places in the mask",
        _attended(""),
        _says_places,
        _with_rest,
        ("", "Attention", 23),
    ),
)
