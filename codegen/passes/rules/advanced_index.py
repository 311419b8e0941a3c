"""Fuse gathers by one index per axis to advanced indexing: `y[rows, columns]`.

Exporters lay the axes flat and count places through, or join the places of every
element to a row; those of a mask are `x[mask]`.
`mask[arange(batch)[:, None], arange(time)]` is all of `mask`, and so is what is written
there: `mask[:, :, :, :length] = ...` comes as a ScatterND at places that are counted.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import Dims, axes_of, broadcast, declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import (
    Any,
    Match,
    Pattern,
    Rewritten,
    Rule,
    Scalar,
    either,
    op,
)
from burnish.codegen.passes.rules.attention.masks import counts
from burnish.codegen.symbolic.sizes import ONE, Size, parse

_LARGEST_INT32 = 2**31 - 1
_AXES = ("a", "b", "c")


# --- places of one element joined to a row ---


def _part(name: str) -> Pattern:
    """Places along one axis, spread over the others; the last axis holds indices."""
    spread = op("Expand", Any(name), Any(f"{name}_shape"))
    last = Any(f"{name}_last")
    return either(op("Unsqueeze", spread, last), op("Unsqueeze", Any(name), last))


def _joined(count: int) -> Pattern:
    parts = (_part(name) for name in _AXES[:count])
    return op("GatherND", Any("data"), op("Concat", *parts, name="row"), name="main")


def _index(found: Match) -> Rewritten:
    node, row = found.named["main"], found.named["row"]
    rows = declared(row.outputs[0])
    if g.attribute(node, "batch_dims", 0):
        return "elements of several batches are gathered"
    names = [name for name in _AXES if name in found.values]
    ends = {g.attribute(row, "axis", 0)}
    ends |= {
        axis for name in names for axis in g.integers(found[f"{name}_last"]) or [0]
    }
    if rows is None or not ends <= {-1, len(rows) - 1}:
        return "the places are not joined along the last axis"
    together = broadcast([declared(found[name]) for name in names])
    if None in rows[:-1] or together != rows[:-1]:
        return "the places are spread over more axes than they have"
    places = [found[name] for name in names]
    return ir.Node("burnish", "Index", [found["data"], *places])


# --- places of a mask's elements ---

_MASKED = op("GatherND", Any("data"), Any("rows"), name="main")


def _masked(found: Match) -> Rewritten:
    if g.attribute(found.named["main"], "batch_dims", 0):
        return "elements of several batches are gathered"
    mask = _mask(found["rows"])
    if mask is None:
        return "the places are those of no mask"
    data, asked = declared(found["data"]), declared(mask)
    if data is not None and asked is not None:
        sizes = [pair for pair in zip(asked, data, strict=False) if None not in pair]
        if len(asked) > len(data) or any(ours != theirs for ours, theirs in sizes):
            return "the mask covers a part of what is gathered"
    return ir.Node("burnish", "Index", [found["data"], mask])


def _mask(rows: ir.Value) -> ir.Value | None:
    """The mask whose places these are, one a row; others may read the places too."""
    turned = g.maker_of(rows, "Transpose")
    places = None if turned is None else g.maker_of(turned.inputs[0], "NonZero")
    if turned is None or places is None or g.order_of(turned, 2) != [1, 0]:
        return None
    mask = places.inputs[0]
    return mask if mask is not None and mask.dtype == ir.DataType.BOOL else None


# --- flat indices into merged axes ---

_FLAT = op("Flatten", Any("data"), name="flat")


def _rows(found: Match) -> Rewritten:
    data = declared(found["data"])
    if g.attribute(found.named["flat"], "axis", 1) != 2 or data is None:
        return "the flattened axes are not the first two"
    if len(data) not in (2, 3) or g.attribute(found.named["main"], "axis", 0):
        return "more than the first two axes are flattened"
    places = None if data[1] is None else _counted(found["at"], data[1])
    if places is None:
        return "the places are counted in other steps"
    made = ir.Node("burnish", "Index", [found["data"], *places])
    if len(data) == 2:
        last, column = g.view_nodes("Unsqueeze", made.outputs[0], [-1])
        return [last, made, column]
    return [made]


def _counted(at: ir.Value, step: Size) -> tuple[ir.Value, ir.Value] | None:
    """Places a and b of a * step + b, in whatever order that is written."""
    total = g.maker_of(at, "Add")
    if total is None:
        return None
    for one, b in (total.inputs, total.inputs[::-1]):
        product = g.maker_of(one, "Mul")
        if product is None:
            continue
        for a, by in (product.inputs, product.inputs[::-1]):
            if a is not None and b is not None and _size_of(by) == step:
                return a, b
    return None


def _size_of(value: ir.Value | None) -> Size | None:
    """The size that a number is."""
    source = None if value is None else g.behind(value, "Cast", "Squeeze", "Unsqueeze")
    node, number = g.maker_of(source, "Gather"), g.scalar(source)
    if node is None:
        whole = number is not None and number == int(number)
        return parse(int(number)) if whole and number is not None else None
    asked, place = g.maker_of(node.inputs[0], "Shape"), g.scalar(node.inputs[1])
    if g.attribute(node, "axis", 0) or asked is None or place is None:
        return None
    if g.attribute(asked, "start", 0) or "end" in asked.attributes:
        return None
    dims: Dims = declared(asked.inputs[0]) or []
    return dims[int(place)] if -len(dims) <= place < len(dims) else None


# --- elements at every place in turn ---


def _unsqueezed(found: Match) -> Rewritten:
    result = broadcast([declared(found[name]) for name in ("a", "b")])
    data = declared(found["data"])
    if result is None or data is None or len(data) != 2 or None in [*result, *data]:
        return "the shapes are not known"
    places = [_axis(found["a"], len(result)), _axis(found["b"], len(result))]
    first, second = places
    if first is None or second is None or first >= second:
        return "the places are not counted along an axis each"
    for place, size in enumerate(result):
        wanted = data[places.index(place)] if place in places else ONE
        if size != wanted:
            return f"axis {place} of the result is no axis of what is gathered"
    new = [axis for axis in range(len(result)) if axis not in places]
    return g.view_nodes("Unsqueeze", found["data"], new)


def _axis(value: ir.Value, over: int) -> int | None:
    """The axis of so many along which a value is 0, 1, 2, ..., and has no other."""
    rank = len(declared(value) or [])
    found = [axis for axis in range(rank) if counts(value, axis - rank)]
    own = _counted_from_front(value) if len(found) == 1 else None
    return None if own is None else own + over - rank


def _counted_from_front(value: ir.Value) -> int | None:
    """Where the one axis of a Range ends up behind Unsqueezes."""
    node = value.producer()
    if node is not None and node.op_type == "Range":
        return 0
    if node is None or node.op_type != "Unsqueeze" or node.inputs[0] is None:
        return None
    inner, rank = _counted_from_front(node.inputs[0]), len(declared(value) or [])
    axes = axes_of(node, g.integers)
    if inner is None or axes is None:
        return None
    new = {axis % rank for axis in axes}
    return [axis for axis in range(rank) if axis not in new][inner]


# --- places that are small numbers ---


def _unfit(found: Match) -> str | None:
    """Why numbers that are made smaller are no places."""
    x = found["x"]
    if x.dtype != ir.DataType.INT64:
        return "it is no place"
    if g.attribute(found.named["narrow"], "to", 0) != ir.DataType.INT32:
        return "it is cast to something else than smaller integers"
    wide = found.named.get("wide")
    if wide is not None and g.attribute(wide, "to", 0) != ir.DataType.INT64:
        return "it is cast to something else than what it was"
    picked = [u for u, place in x.uses() if u.op_type == "Gather" and place == 1]
    tables = (g.constant(user.inputs[0]) for user in picked)
    small = any(
        t is not None and max(t.shape.numpy()) <= _LARGEST_INT32 for t in tables
    )
    return None if small else "nothing is picked by it"


_NARROW = op("Cast", Any("x"), name="narrow")


def _as_they_are(found: Match) -> Rewritten:
    return _unfit(found) or ir.Node("", "Identity", [found["x"]])


def _compared(found: Match) -> Rewritten:
    if (reason := _unfit(found)) is not None:
        return reason
    made = g.constant_node(np.array(int(found.number("number")), np.int64))
    return [made, ir.Node("", "Equal", [found["x"], made.outputs[0]])]


# --- writes to every place, counted along each axis: nothing else stays ---


def _written_whole(found: Match) -> Rewritten:
    row = g.maker_of(found["at"], "Concat")
    if row is None:
        return "the places are not joined of those along each axis"
    written, places = declared(found["data"]), declared(row.outputs[0])
    if g.attribute(found.named["main"], "reduction", "none") != "none":
        return "what is written is added to what is there"
    if written is None or places is None or None in [*written, *places]:
        return "the shapes are not known"
    count = len(row.inputs)
    if g.attribute(row, "axis", 0) not in (-1, count) or len(places) != count + 1:
        return "the places are not joined along the last axis"
    if places[:-1] != written[:count]:
        return "it is a part of the tensor"
    for axis, part in enumerate(row.inputs):
        if not _counts_along(part, axis - count):
            return f"the places are not counted along axis {axis}"
    return ir.Node("", "Identity", [found["updates"]])


def _counts_along(part: ir.Value | None, axis: int) -> bool:
    """Whether a part of a row is 0, 1, 2, ... along an axis, not counting the last."""
    if counts(part, axis - 1):
        return True
    node = g.maker_of(part, "Unsqueeze")
    rank = len(declared(part) or [])
    if node is None or axes_of(node, g.integers) not in ([-1], [rank - 1]):
        return False
    spread = g.maker_of(node.inputs[0], "Expand")
    return counts(node.inputs[0] if spread is None else spread.inputs[0], axis)


_COUNTED = op("Gather", _FLAT, Any("at"), name="main")
_IN_TURN = op("Index", Any("data"), Any("a"), Any("b"), domain="burnish")
_EQUAL = op("Equal", _NARROW, Scalar("number"))
_WRITTEN = op("ScatterND", Any("data"), Any("at"), Any("updates"), name="main")
RULES = (
    *(Rule("elements at places", _joined(count), _index) for count in (2, 3)),
    Rule("elements of a mask", _MASKED, _masked),
    Rule("elements at places counted through", _COUNTED, _rows),
    Rule("all places in turn", _IN_TURN, _unsqueezed),
    Rule("places as smaller numbers", op("Cast", _NARROW, name="wide"), _as_they_are),
    Rule("places compared as smaller numbers", _EQUAL, _compared),
    Rule("write to every place", _WRITTEN, _written_whole),
)
