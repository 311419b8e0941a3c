"""Rewrite single operators from channels-last to channels-first.

`LAST` of a rank is the order that brings channels from axis 1 to the end: axis `a` of
a value with channels last is axis `LAST[a]` of the same value with channels first.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from burnish.codegen.ops import Trait, find, having
from burnish.codegen.ops.shapes.dims import axes_of, declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.shapes.softmax_rows import ALONG_AN_AXIS

Order = list[int]

ARITHMETIC = having(Trait.ELEMENTWISE | Trait.BROADCAST)
"""What has one axis as the other."""
_REDUCE = having(Trait.REDUCTION)
#: Where the operator takes its axes from, if not from an attribute.
_AXES_INPUT = {"Pad": 3, "Slice": 3, "Squeeze": 1, **dict.fromkeys(_REDUCE, 1)}


def last(rank: int) -> Order:
    """The order that brings channels from axis 1 to the end."""
    return [0, *range(2, rank), 1]


def first(rank: int) -> Order:
    """The order that brings channels from the end to axis 1."""
    return [0, rank - 1, *range(1, rank - 1)]


def inverse(order: Order) -> Order:
    """The order that undoes another."""
    return [order.index(axis) for axis in range(len(order))]


def moved(node: ir.Node) -> list[int] | None:
    """The places of the inputs that have channels, if the node may be rewritten."""
    test = _TESTS.get(node.op_type)
    if node.domain not in ("", "burnish") or test is None:
        return None
    return test(node)


def keeps_axes(node: ir.Node) -> bool:
    """Whether the outputs have the axes of the inputs."""
    if node.op_type == "Squeeze":
        return False
    return node.op_type not in _REDUCE or bool(g.attribute(node, "keepdims", 1))


def rewrite(model: ir.Model, node: ir.Node, order: Order) -> None:
    """Number the node's axes for channels first; its inputs are moved already."""
    axis = _axis(model, node)
    if axis is not None:
        node.attributes["axis"] = ir.AttrInt64("axis", order[axis % len(order)])
    elif node.op_type in _AXES_INPUT:
        axes = _axes(node)
        if axes is not None:
            _set_axes(model, node, [order[axis % len(order)] for axis in axes])
        elif node.op_type == "Pad":
            pads, rank = g.integers(node.inputs[1]) or [], len(order)
            ends = [[*side] for side in (pads[:rank], pads[rank:])]
            permuted = [side[axis] for side in ends for axis in inverse(order)]
            node.replace_input_with(1, _numbers(model, node, permuted))


def _axis(model: ir.Model, node: ir.Node) -> int | None:
    """The one axis along which the operator works, if it has such an attribute."""
    rule = find(node.domain, node.op_type, g.version(model, node))
    if rule is None or "axis" not in rule.attributes:
        return None
    return node.attributes.get_int("axis", rule.default("axis"))


def _axes(node: ir.Node) -> list[int] | None:
    """The axes that the node names, None if it names none that are known."""
    place = _AXES_INPUT[node.op_type]
    given = len(node.inputs) > place and node.inputs[place] is not None
    if given or "axes" in node.attributes:
        return axes_of(node, g.integers, place)
    if node.op_type == "Slice":
        count = declared(node.inputs[1])
        known = count is not None and count[0] is not None
        number = count[0].value if known and count and count[0] else None
        return None if number is None else list(range(number))
    return None


def _set_axes(model: ir.Model, node: ir.Node, axes: list[int]) -> None:
    if "axes" in node.attributes:
        node.attributes["axes"] = ir.AttrInt64s("axes", axes)
        return
    place = _AXES_INPUT[node.op_type]
    if len(node.inputs) <= place:
        node.resize_inputs(place + 1)
    node.replace_input_with(place, _numbers(model, node, axes))


def _numbers(model: ir.Model, node: ir.Node, numbers: list[int]) -> ir.Value:
    return g.new_constant(model, f"{node.outputs[0].name}_axes", numbers)


# --- which operators ---


def _of_first(node: ir.Node) -> list[int] | None:
    return [0]


def _along_axis(node: ir.Node) -> list[int] | None:
    """Not that of several axes as one row: `softmax_rows` has named its opset."""
    return None if (node.version or ALONG_AN_AXIS) < ALONG_AN_AXIS else [0]


def _of_all(node: ir.Node) -> list[int] | None:
    return list(range(len(node.inputs)))


def _padded(node: ir.Node) -> list[int] | None:
    if len(node.inputs) < 2:  # before opset 11 an attribute says how much
        return None
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        return None if _axes(node) is None else [0]
    return None if g.integers(node.inputs[1]) is None else [0]


def _with_axes(node: ir.Node) -> list[int] | None:
    """Axes that are known; those that remain without them stay in order."""
    axes, dims = _axes(node), declared(node.inputs[0])
    if axes is None or dims is None:
        return None
    if keeps_axes(node):
        return [0]
    order = last(len(dims))
    dropped = {axis % len(dims) for axis in axes}
    kept = [order[axis] for axis in range(len(dims)) if axis not in dropped]
    return [0] if kept == sorted(kept) else None


_TESTS: dict[str, Callable[[ir.Node], list[int] | None]] = {
    **dict.fromkeys(having(Trait.ELEMENTWISE), _of_first),
    **dict.fromkeys(having(Trait.BROADCAST), _of_all),
    **dict.fromkeys(_REDUCE, _with_axes),
    "Concat": _of_all,
    "LogSoftmax": _along_axis,
    "Pad": _padded,
    "Slice": _with_axes,
    "Softmax": _along_axis,
    "Split": _of_first,
    "Squeeze": _with_axes,
}
