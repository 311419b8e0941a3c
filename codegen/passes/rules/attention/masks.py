"""Masks of attention: boolean (keys that take part) or additive (on the scores)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import declared
from burnish.codegen.passes import graph as g

#: A score added to it is lost in rounding; a larger number is a bias, which stays one.
_LOW = -1e8
LARGEST = 1 << 24  # elements of a mask that are looked at
_LONGEST_ROW = 1 << 16  # elements of a range that are looked at


def is_low(number: float) -> bool:
    """Whether a score of this size has no weight beside any other."""
    return number <= _LOW


@dataclass
class Made:
    """A mask (None: every key takes part) and the nodes that make it.

    causal: keys after the query take no part, whatever the mask says.
    """

    mask: ir.Value | None
    causal: bool = False
    nodes: list[ir.Node] = field(default_factory=list)


def combined(
    keep: ir.Value | None,
    block: ir.Value | None,
    low: ir.Value,
    summand: ir.Value | None,
    behind: ir.Value | None = None,
) -> Made:
    """The mask for scores + summand where `keep` holds (or `block` does not).

    behind: added to the scores and to `low`. What is added may hide all keys up to the
    query's own; where `low` is finite, those after it then weigh as much, which no
    `is_causal` gives.
    """
    number = g.unwrap(g.scalar(low))
    if number == -math.inf:
        summand, behind = summand or behind, None
    if number == -math.inf or summand is behind is None:
        if keep is not None and is_triangle(keep):
            return Made(summand, causal=True)
        if keep is None and block is not None and is_triangle(block, lower=False):
            return Made(summand, causal=True)
    if summand is None and number == -math.inf:
        return Made(keep) if keep is not None else _negated(block)
    nodes: list[ir.Node] = []
    if summand is None:
        zero = np.zeros((), ir.DataType(low.dtype or 1).numpy())
        nodes.append(g.constant_node(zero))
        summand = nodes[0].outputs[0]
    inputs = [keep, summand, low] if keep is not None else [block, low, summand]
    nodes.append(ir.Node("", "Where", inputs))
    if behind is not None:
        nodes.append(ir.Node("", "Add", [nodes[-1].outputs[0], behind]))
    return Made(nodes[-1].outputs[0], nodes=nodes)


def added(summand: ir.Value) -> Made:
    """The mask for scores + summand; booleans where the summand is made of them."""
    if hides_what_follows(summand):
        return Made(None, causal=True)
    node = g.maker_of(summand, "Where")
    if node is None:
        return Made(summand)
    condition, yes, no = node.inputs
    numbers = g.scalar(yes), g.scalar(no)
    if condition is None or condition.graph is not summand.graph:
        return Made(summand)
    if numbers == (0, -math.inf):
        return Made(condition)
    return _negated(condition) if numbers == (-math.inf, 0) else Made(summand)


def _negated(block: ir.Value | None) -> Made:
    node = ir.Node("", "Not", [block])
    return Made(node.outputs[0], nodes=[node])


# --- triangles ---


# wide: the same for several axes before the last two is a triangle too; who asks has
# to know that the scores have these axes.


def _square(value: ir.Value, wide: bool) -> bool:
    dims = declared(value)
    if dims is None or len(dims) < 2 or dims[-1] is None or dims[-1] != dims[-2]:
        return False
    return wide or all(size is not None and size.value == 1 for size in dims[:-2])


def _table(value: ir.Value) -> np.ndarray | None:
    """A square table that the value is, or whose first rows and columns it is."""
    while (node := g.maker_of(value, "Slice")) and g.starts_at_zero(node):
        value = g.unwrap(node.inputs[0])
    tensor = g.constant(value)
    if tensor is None or len(tensor.shape) < 2 or tensor.size > LARGEST:
        return None
    array = tensor.numpy()
    if array.size == 0:
        return None
    first, *others = array.reshape(-1, *array.shape[-2:])
    return first if all(np.array_equal(first, other) for other in others) else None


def _source(node: ir.Node | None, wide: bool) -> ir.Value | None:
    """The input whose elements a node has, cast or broadcast over more axes."""
    if node is None or node.domain:
        return None
    spread = wide and node.op_type == "Expand"
    return node.inputs[0] if spread or node.op_type == "Cast" else None


def is_triangle(value: ir.Value, wide: bool = False, *, lower: bool = True) -> bool:
    """Whether booleans hold for keys up to the query's place, or else after it."""
    if not _square(value, wide):
        return False
    node = value.producer()
    if (source := _source(node, wide)) is not None:
        return is_triangle(source, wide, lower=lower)
    if (other := _negated_of(node)) is not None:
        return is_triangle(other, wide, lower=not lower)
    if node is not None and node.op_type == "Trilu":
        kept = _is_below(node) if lower else _is_above(node)
        return kept and filled(node.inputs[0]) == 1
    if lower and node is not None and node.op_type in _ORDER:
        earlier, later = (node.inputs[i] for i in _ORDER[node.op_type])
        return counts(earlier, -1) and counts(later, -2)
    table = _table(value)
    if table is None:
        return False
    return bool((table.astype(bool) == (np.tri(*table.shape) == lower)).all())


def _negated_of(node: ir.Node | None) -> ir.Value | None:
    """The boolean input that a node negates, by comparison with 0 or by Not."""
    if node is None or node.domain:
        return None
    if node.op_type == "Not":
        return node.inputs[0]
    if node.op_type == "Equal":
        one, other = node.inputs
        return one if g.scalar(other) == 0 else other if g.scalar(one) == 0 else None
    return None


#: Which inputs are the key's place and the query's, where earlier keys are kept.
_ORDER = {"LessOrEqual": (0, 1), "GreaterOrEqual": (1, 0)}


def counts(value: ir.Value | None, axis: int) -> bool:
    """Whether the value is 0, 1, 2, ... along an axis and has no other."""
    dims = declared(value)
    if value is None or not dims or len(dims) < -axis:
        return False
    others = [d for i, d in enumerate(dims) if i != len(dims) + axis]
    if any(d is None or d.value != 1 for d in others):
        return False
    value = g.behind(value, "Unsqueeze", "Cast", "Reshape")
    if (node := g.maker_of(value, "Range")) is not None:
        return g.scalar(node.inputs[0]) == 0 and g.scalar(node.inputs[2]) == 1
    tensor = g.constant(value)
    if tensor is None or tensor.size > _LONGEST_ROW:
        return False
    flat = tensor.numpy().ravel()
    return bool((flat == np.arange(flat.size)).all())


def hides_what_follows(value: ir.Value, wide: bool = False) -> bool:
    """Whether a mask is causal: 0 up to the query's position, hidden after it."""
    if not _square(value, wide):
        return False
    node = value.producer()
    if (source := _source(node, wide)) is not None:
        return hides_what_follows(source, wide)
    if node is not None and node.op_type == "Trilu":
        number = filled(node.inputs[0])
        return _is_above(node) and number is not None and is_low(number)
    if node is not None and node.op_type == "Where":
        condition, yes, no = node.inputs
        high, low = g.scalar(yes), g.scalar(no)
        if condition is None or high is None or low is None:
            return False
        if high == 0 and is_low(low):
            return is_triangle(condition, wide)
        return low == 0 and is_low(high) and is_triangle(condition, wide, lower=False)
    table = _table(value)
    if table is None:
        return False
    lower = np.tri(*table.shape) == 1
    return bool(np.where(lower, table == 0, table <= _LOW).all())


def _diagonal(node: ir.Node) -> float | None:
    given = node.inputs[1] if len(node.inputs) > 1 else None
    return 0 if given is None else g.scalar(given)


def _is_below(node: ir.Node) -> bool:
    """Whether a Trilu keeps the diagonal and what is below it."""
    return not g.attribute(node, "upper", 1) and _diagonal(node) == 0


def _is_above(node: ir.Node) -> bool:
    """Whether a Trilu keeps what is above the diagonal."""
    return bool(g.attribute(node, "upper", 1)) and _diagonal(node) == 1


_PICKING = (
    *("Cast", "Expand", "Gather", "GatherElements", "Reshape"),
    *("Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
)
"""Operators whose output has only elements of the first input."""


def filled(value: ir.Value | None) -> float | None:
    """The one number that a value is full of."""
    value = None if value is None else g.behind(value, *_PICKING)
    if (maker := g.maker_of(value, "ConstantOfShape")) is not None:
        held = maker.attributes.get_tensor("value")
        return 0.0 if held is None else float(held.numpy().reshape(-1)[0])
    tensor = g.constant(value)
    if tensor is None or not 0 < tensor.size <= LARGEST or not _counts(tensor):
        return None
    array = tensor.numpy()
    first = array.reshape(-1)[0]
    return float(first) if (array == first).all() else None


def _counts(tensor: ir.TensorProtocol) -> bool:
    """Whether it holds numbers."""
    return tensor.dtype != ir.DataType.STRING and not np.iscomplexobj(tensor.numpy())
