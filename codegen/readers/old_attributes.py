"""Bring opsets 1 to 6 to 7: attributes that were dropped, or became inputs.

ONNX's converter asks for shapes that it does not infer, and refuses most such files.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from burnish.codegen.errors import UnsupportedError, silent
from burnish.codegen.readers.sizes import shapes

TARGET = 7
"""The first opset whose operators broadcast as NumPy does."""

_BROADCAST = (
    *("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor"),
    *("Equal", "Greater", "Less"),
)
_COMPARES = ("Equal", "Greater", "Less")
_SELU = {"alpha": 1.6732, "gamma": 1.0507}


def modernise(model: ir.Model, declared: int) -> int:
    """Rewrite the nodes in place; the opset that they are of then."""
    if declared >= TARGET:
        return declared
    aligned: list[ir.Node] = []
    for graph in model.graphs():
        for node in tuple(graph):
            if node.domain == "":
                node.attributes.pop("consumed_inputs", None)
                if adapt := _ADAPTERS.get(node.op_type):
                    adapt(node, declared)
                if node.op_type in (*_BROADCAST, "PRelu") and _is_aligned(node):
                    aligned.append(node)
    model.opset_imports[""] = TARGET
    if aligned:
        _infer_around(model, aligned)
    for node in aligned:
        _align(node)
    return TARGET


def _is_aligned(node: ir.Node) -> bool:
    """Whether the second input's first axis is said, rather than the last axes meet."""
    if node.op_type == "PRelu":
        return True
    broadcast = node.attributes.get_int("broadcast", 0)
    node.attributes.pop("broadcast", None)
    if not broadcast or "axis" not in node.attributes:
        node.attributes.pop("axis", None)
        return False
    return True


def _infer_around(model: ir.Model, aligned: list[ir.Node]) -> None:
    """Infer shapes; such a node's result has the shape of its first input."""
    was = [(node, node.op_type, node.inputs[1]) for node in aligned]
    for node in aligned:
        node.resize_inputs(1)
        node.op_type = "Identity"
    axes = [node.attributes.pop("axis", None) for node in aligned]
    try:
        shapes.infer(model, silent)
    finally:
        for (node, kind, second), axis in zip(was, axes, strict=True):
            node.op_type = kind
            node.resize_inputs(2)
            node.replace_input_with(1, second)
            if axis is not None:
                node.attributes.add(axis)
            if kind in _COMPARES:
                node.outputs[0].type = ir.TensorType(ir.DataType.BOOL)


def _align(node: ir.Node) -> None:
    """Give the second input axes of size 1 at its end."""
    first, second = node.inputs
    axis = node.attributes.pop("axis", None)
    if first is None or second is None or first.shape is None or second.shape is None:
        raise UnsupportedError(
            f"node {node.name!r} ({node.op_type}): expected inputs whose number of "
            "axes is known, to align them as opset 6 and older do; export the model "
            f"with opset {TARGET} or newer"
        )
    rank, own = len(first.shape), len(second.shape)
    if node.op_type == "PRelu":
        start = 1 if own == 1 and second.shape[0] != 1 and rank > 1 else rank - own
    else:
        start = axis.as_int() % rank if axis is not None else rank - own
    if start + own < rank:
        axes = ir.AttrInt64s("axes", range(own, rank - start))
        wider = ir.Node("", "Unsqueeze", [second], [axes])
        dims = [*second.shape, *[1] * (rank - start - own)]
        wider.outputs[0].shape, wider.outputs[0].type = ir.Shape(dims), second.type
        wider.outputs[0].name = f"{node.outputs[0].name}_aligned"
        _insert(node, wider)
        node.replace_input_with(1, wider.outputs[0])


def _insert(node: ir.Node, before: ir.Node) -> None:
    assert node.graph is not None
    node.graph.insert_before(node, before)


def _constant(node: ir.Node, name: str, numbers: object, dtype: type) -> ir.Value:
    """A Constant node before this one."""
    held = ir.tensor(np.array(numbers, dtype), name=f"{node.outputs[0].name}_{name}")
    made = ir.Node("", "Constant", [], [ir.AttrTensor("value", held)])
    made.outputs[0].name = held.name
    _insert(node, made)
    return made.outputs[0]


def _drop(*names: str) -> Callable[[ir.Node, int], None]:
    def drop(node: ir.Node, _declared: int) -> None:
        for name in names:
            node.attributes.pop(name, None)

    return drop


def _batch_norm(node: ir.Node, declared: int) -> None:
    """Without is_test it is for training, where it has results to keep."""
    tested = node.attributes.get_int("is_test", 0)
    node.attributes.pop("is_test", None)
    if not tested and any(output.uses() for output in node.outputs[1:]):
        raise UnsupportedError(
            f"node {node.name!r} (BatchNormalization, opset {declared}): expected "
            "is_test=1, got training; export the model for inference"
        )
    if len(node.outputs) > 1:
        node.resize_outputs(1)


def per_element(model: ir.Model, declared: int) -> None:
    """Write batch normalizations of `spatial=0`, which opset 9 dropped, as arithmetic.

    Their statistics are those of each element of a sample rather than of each channel.
    """
    for graph in model.graphs():
        for node in tuple(graph):
            if node.op_type != "BatchNormalization":
                continue
            if not node.attributes.get_int("spatial", 1):
                _batch_norm(node, declared)
                _normalize_elements(node)


def _normalize_elements(node: ir.Node) -> None:
    x, scale, bias, mean, var = node.inputs
    name = node.outputs[0].name

    def before(op_type: str, *inputs: ir.Value | None) -> ir.Value:
        made = ir.Node("", op_type, inputs)
        made.outputs[0].name = f"{name}_{op_type.lower()}"
        _insert(node, made)
        return made.outputs[0]

    epsilon = node.attributes.get_float("epsilon", 1e-5)
    eps = _constant(node, "epsilon", epsilon, np.float32)
    factor = before("Div", scale, before("Sqrt", before("Add", var, eps)))
    scaled = before("Mul", before("Sub", x, mean), factor)
    node.op_type = "Add"
    node.attributes.clear()
    node.resize_inputs(2)
    node.replace_input_with(0, scaled)
    node.replace_input_with(1, bias)


def _cast(node: ir.Node, _declared: int) -> None:
    """Its type was a word."""
    to = node.attributes.get("to")
    if to is not None and to.type == ir.AttributeType.STRING:
        node.attributes.add(ir.AttrInt64("to", ir.DataType[to.as_string()].value))


def _concat(node: ir.Node, declared: int) -> None:
    if declared < 4 and "axis" not in node.attributes:
        node.attributes.add(ir.AttrInt64("axis", 1))


def _reshape(node: ir.Node, declared: int) -> None:
    shape = node.attributes.pop("shape", None)
    if declared < 5 and shape is not None:
        node.resize_inputs(2)
        made = _constant(node, "shape", list(shape.as_ints()), np.int64)
        node.replace_input_with(1, made)


def _pad(node: ir.Node, _declared: int) -> None:
    paddings = node.attributes.pop("paddings", None)
    if paddings is not None:
        node.attributes.add(ir.AttrInt64s("pads", paddings.as_ints()))


def _split(node: ir.Node, declared: int) -> None:
    """Its sizes were an attribute, or floats."""
    if declared >= 2 or len(node.inputs) < 2 or node.inputs[1] is None:
        return
    sizes = node.inputs[1].const_value
    if sizes is None:
        raise UnsupportedError(
            f"node {node.name!r} (Split, opset {declared}): expected constant sizes; "
            f"export the model with opset {TARGET} or newer"
        )
    node.resize_inputs(1)
    node.attributes.add(ir.AttrInt64s("split", np.asarray(sizes).astype(int).tolist()))


def _tile(node: ir.Node, declared: int) -> None:
    """So many copies along one axis."""
    if declared >= 6 or len(node.inputs) < 3:
        return
    data, tiles, axis = node.inputs
    constants = [v.const_value for v in (tiles, axis) if v is not None]
    if data is None or data.shape is None or None in constants or len(constants) < 2:
        raise UnsupportedError(
            f"node {node.name!r} (Tile, opset {declared}): expected constant tiles and "
            f"axis and a known rank; export the model with opset {TARGET} or newer"
        )
    count, place = (int(np.asarray(c).item()) for c in constants if c is not None)
    repeats = [1] * len(data.shape)
    repeats[place] = count
    node.resize_inputs(2)
    node.replace_input_with(1, _constant(node, "repeats", repeats, np.int64))


def _upsample(node: ir.Node, _declared: int) -> None:
    if "height_scale" in node.attributes:
        names = ("height_scale", "width_scale")
        scales = [node.attributes.pop(name).as_float() for name in names]
        node.attributes.add(ir.AttrFloat32s("scales", [1.0, 1.0, *scales]))
    mode = node.attributes.get("mode")
    if mode is not None and mode.as_string() == "bilinear":
        node.attributes.add(ir.AttrString("mode", "linear"))


def _selu(node: ir.Node, declared: int) -> None:
    """Its defaults had four digits."""
    for name, value in _SELU.items():
        if declared < 6 and name not in node.attributes:
            node.attributes.add(ir.AttrFloat32(name, value))


def _lp_pool(node: ir.Node, _declared: int) -> None:
    """Its exponent was a float."""
    p = node.attributes.get("p")
    if p is not None and p.type == ir.AttributeType.FLOAT:
        if not p.as_float().is_integer():
            raise UnsupportedError(
                f"node {node.name!r} ({node.op_type}): expected a whole p, got "
                f"{p.as_float()}"
            )
        node.attributes.add(ir.AttrInt64("p", int(p.as_float())))


_ADAPTERS: dict[str, Callable[[ir.Node, int], None]] = {
    "BatchNormalization": _batch_norm,
    "Cast": _cast,
    "Concat": _concat,
    "Dropout": _drop("is_test"),
    "GRU": _drop("output_sequence"),
    "Gemm": _drop("broadcast"),
    "GlobalLpPool": _lp_pool,
    "LSTM": _drop("output_sequence"),
    "LpPool": _lp_pool,
    "Pad": _pad,
    "RNN": _drop("output_sequence"),
    "Reshape": _reshape,
    "Selu": _selu,
    "Split": _split,
    "Tile": _tile,
    "Upsample": _upsample,
}
