"""Merge QuantizeLinear and DequantizeLinear to one FakeQuantize."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish import ops
from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.quantized._values import (
    Scale,
    moves,
    put,
    replace,
    same,
    scale_of,
    scale_of_rounding,
    scale_of_tensor,
    source_of,
)
from burnish.codegen.passes.quantized.places import place, sort_by_need
from burnish.codegen.scopes import scope_of
from burnish.codegen.weights import constants
from burnish.codegen.weights.dequantized import Dequantized
from burnish.codegen.weights.origin import computed
from burnish.ops.quantized.small import saturated, small

_SUMS = frozenset(
    ("Add", "BatchNormalization", "Conv", "ConvTranspose", "Gemm", "MatMul", "Sub")
)
"""Operators that give numbers below 0, unless a clip follows."""
_PARTS = frozenset(("Gather", "GatherElements", "GatherND", "Slice", "Split"))
_ROUNDINGS = frozenset(("DequantizeLinear", "FakeQuantize", "QuantizeLinear"))
_SCALE = "burnish.scale"  # of a FakeQuantize: what the file calls its scale


def fake_quantize_pairs(
    model: ir.Model, account: Account, *, dequantize: bool = False
) -> bool:
    """One node for each pair; none where the numbers have been rounded so before."""
    changed = False
    made: list[ir.Node] = []
    for node in g.nodes_of(model, "QuantizeLinear"):
        scale, behind = scale_of(node), _behind(node)
        value = node.inputs[0]
        if scale is None or not behind or value is None:
            continue
        starts_at_0 = scale.scales.size == 1 and (scale.zeros == scale.lowest).all()
        if starts_at_0 and np.isfinite(scale.scales[0]):
            value = _cut_off(node, value)
            relu = value.producer()
            if relu is not None and value is not node.inputs[0] and not scope_of(node):
                made.append(relu)
        if not dequantize and not _is_rounded(value, scale, node.inputs[1]):
            value = _rounded(model, node, value, scale)
            maker = value.producer()
            made += [] if maker is None else [maker]
        for reader in behind:
            _forward(reader, value)
        g.owner(node).remove(node, safe=True)
        account.did("numbers rounded between layers", g.label(node))
        changed = True
    for node in made:
        _measure_rounded(node)
    if changed:
        sort_by_need(model.graph)
    place(model, made)
    return changed


def _measure_rounded(node: ir.Node) -> None:
    """Read sizes from the quantized value, so that the other has one reader."""
    source = node.inputs[0]
    for reader, index in list(source.uses() if source is not None else ()):
        if reader.op_type in ("Shape", "Size") and reader.graph is node.graph:
            reader.replace_input_with(index, node.outputs[0])


def move_floats(model: ir.Model) -> None:
    """Move DequantizeLinear before nodes that select elements."""
    for node in g.nodes_of(model, "DequantizeLinear"):
        _above_moves(node)
    waiting = list(g.nodes_of(model, "QuantizeLinear"))
    while waiting:
        node = waiting.pop()
        scale = scale_of(node)
        if scale is not None and scale.scales.size == 1:
            waiting += _behind_moves(node)


def _behind_moves(node: ir.Node) -> list[ir.Node]:
    """Propagate scales through nodes that select elements."""
    small, made = node.outputs[0], []
    for reader, index in list(small.uses()):
        if reader.op_type in ("Shape", "Size") and not reader.domain:
            reader.replace_input_with(index, node.inputs[0])
        pads = _pads_zero(reader, node)
        if reader.domain or not (moves(reader) or pads) or index:
            continue
        wide = put(reader, "DequantizeLinear", [small, *node.inputs[1:]])
        wide.outputs[0].type = _type_of(node.inputs[1])
        wide.outputs[0].shape = small.shape
        reader.replace_input_with(0, wide.outputs[0])
        if pads:
            reader.replace_input_with(2, None)
        for old in reader.outputs:
            again = _quantized_again(node, reader, old)
            old.type = wide.outputs[0].type
            made.append(again)
    return made


def _quantized_again(node: ir.Node, reader: ir.Node, old: ir.Value) -> ir.Node:
    """Quantize a result of a reader that takes numbers now; others read that."""
    again = ir.Node("", "QuantizeLinear", [None, *node.inputs[1:]], name=node.name)
    for attribute in node.attributes.values():
        again.attributes.add(attribute)
    again.metadata_props.update(reader.metadata_props)
    g.owner(reader).insert_after(reader, again)
    new = again.outputs[0]
    new.type, new.shape, name = old.type, old.shape, old.name
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    again.replace_input_with(0, old)
    old.name, new.name = f"{name}_moved", name
    return again


def _pads_zero(reader: ir.Node, node: ir.Node) -> bool:
    """Whether a reader pads with the code of zero."""
    if reader.op_type != "Pad" or len(reader.inputs) < 3:
        return False
    if reader.attributes.get_string("mode", "constant") != "constant":
        return False
    code = g.constant(reader.inputs[2])
    zero = g.constant(node.inputs[2]) if len(node.inputs) > 2 else None
    number = 0 if zero is None else zero.numpy().reshape(-1)[0]
    return code is not None and code.size == 1 and bool(code.numpy() == number)


def _type_of(value: ir.Value | None) -> ir.TypeProtocol | None:
    tensor = g.constant(value)
    return None if tensor is None else ir.TensorType(tensor.dtype)


def _behind(node: ir.Node) -> list[ir.Node]:
    """The nodes that undo a QuantizeLinear; none where something else reads it."""
    output, scale = node.outputs[0], scale_of(node)
    readers = [reader for reader, _ in output.uses()]
    axis = node.attributes.get_int("axis", 1)
    for reader in readers:
        undone = reader.op_type == "DequantizeLinear" and reader.inputs[0] is output
        if not undone or not same(scale_of(reader), scale):
            return []
        if reader.attributes.get_int("axis", 1) != axis:
            return []
        if reader.attributes.get_int("output_dtype", 0) not in (0, 1):
            return []
    return [] if output.is_graph_output() else readers


def _forward(node: ir.Node, value: ir.Value) -> None:
    """Let everybody who reads a node read `value`; an output of the graph is a copy."""
    output = node.outputs[0]
    if output.is_graph_output():
        replace(node, put(node, "Identity", [value]).outputs[0])
        return
    ir.convenience.replace_all_uses_with(output, value)
    g.owner(node).remove(node, safe=True)


def _rounded(model: ir.Model, node: ir.Node, value: ir.Value, scale: Scale) -> ir.Value:
    known = g.behind_identities(value)
    tensor = g.constant(known)
    is_float = tensor is not None and tensor.dtype == ir.DataType.FLOAT
    if tensor is not None and is_float and scale.scales.size == 1:
        name = value.name or "weight"
        trains = tensor.size > 1 and constants.trains(known)
        tensor = _rounded_weight(name, tensor, scale)
        return g.initializer(model, ir.Value(name=name), tensor, trains=trains)
    scales = g.new_constant(model, f"{value.name}_scale", scale.scales)
    zeros = g.new_constant(model, f"{value.name}_zero_point", scale.zeros)
    made = put(node, "FakeQuantize", [value, scales, zeros], "burnish")
    made.meta[_SCALE] = _name(node.inputs[1])
    if scale.value != "q8f":
        made.attributes.add(ir.AttrString("value", scale.value))
    if scale.scales.size > 1:
        axis = node.attributes.get_int("axis", 1)
        made.attributes.add(ir.AttrInt64("axis", axis))
    made.outputs[0].type, made.outputs[0].shape = value.type, value.shape
    return made.outputs[0]


def _rounded_weight(
    name: str, tensor: ir.TensorProtocol, scale: Scale
) -> ir.TensorProtocol:
    """A constant that is rounded whenever the model runs, as it is then."""
    if scale.value != "q8f":
        return _rounded_floats(tensor, scale)
    zero = scale.zeros.astype(np.float32)[0]
    whole = np.rint(tensor.numpy() / scale.scales[0]) + zero
    codes = ir.tensor(saturated(whole, -128, 127).astype(np.int8))
    parts = [ir.tensor(part.reshape(())) for part in scale[:2]]
    made = Dequantized(name, codes, parts[0], parts[1], 1, 0)
    return made if tensor.size > 1 else ir.tensor(np.asarray(made.numpy()))


def _rounded_floats(tensor: ir.TensorProtocol, scale: Scale) -> ir.TensorProtocol:
    """One whose codes no weights file holds: the values that they stand for."""
    zeros = scale.zeros if small(scale.value).whole else None

    def read() -> ir.TensorProtocol:
        held = np.asarray(tensor.numpy())
        made = ops.fake_quantize(
            held, scale.scales, zeros, value=scale.value, blocks=(held.size,)
        )
        return ir.tensor(made)

    return computed(read(), read) if tensor.size > 1 else read()


def _cut_off(node: ir.Node, value: ir.Value) -> ir.Value:
    """Restore the ReLU that quantizers omit where the lowest code means 0."""
    maker = value.producer()
    if maker is None or maker.domain or maker.op_type not in _SUMS:
        return value
    if any(g.scalar(part) is not None for part in maker.inputs):
        return value  # of a function, as GELU's 1 + erf
    if _are_scores(maker) or any(_are_scores(g.maker_of(v)) for v in maker.inputs):
        return value  # of an attention, which happened to be none below 0
    made = put(node, "Relu", [value]).outputs[0]
    made.type, made.shape = value.type, value.shape
    return made


def _are_scores(node: ir.Node | None) -> bool:
    """Whether a node is a product of two values that are computed."""
    while node is not None and node.op_type in _ROUNDINGS:
        node = g.maker_of(node.inputs[0])
    if node is None or node.op_type != "MatMul" or node.domain:
        return False
    return all(part is not None and g.constant(part) is None for part in node.inputs)


def _is_rounded(value: ir.Value, scale: Scale, scales: ir.Value | None) -> bool:
    """Whether the numbers are some that the same rounding gives.

    A part may have its whole's scale by chance, in one of many equal blocks: its own
    rounding, which changes no number, is kept where the file has another scale for it.
    """
    start = source_of(value)
    maker, tensor = start.producer(), g.constant(start)
    if scale.scales.size > 1:
        return False
    if isinstance(tensor, Dequantized):
        return same(scale_of_tensor(tensor), scale)
    if maker is None or maker.op_type != "FakeQuantize":
        return False
    named = maker.meta.get(_SCALE)
    if _is_part(value, start) and named is not None and named != _name(scales):
        return False
    return same(scale_of_rounding(maker), scale)


def _is_part(value: ir.Value, whole: ir.Value) -> bool:
    """Whether some elements were left out on the way from the whole."""
    while value is not whole:
        maker = value.producer()
        if maker is None or maker.inputs[0] is None:
            return False
        if maker.op_type in _PARTS:
            return True
        value = maker.inputs[0]
    return False


def _name(value: ir.Value | None) -> str | None:
    return None if value is None else value.name


def _above_moves(node: ir.Node) -> None:
    """Dequantize before numbers are moved: the moves are then those of floats."""
    value, scale = node.inputs[0], scale_of(node)
    if value is None or scale is None or scale.scales.size > 1:
        return
    path: list[ir.Node] = []
    floats: list[tuple[ir.Node, ir.Value]] = []  # readers, and what they will read
    while value is not None and (maker := _mover(value)) is not None:
        alike = [r for r, _ in value.uses() if not path or r is not path[-1]]
        undone = all(
            r.op_type == "DequantizeLinear" and same(scale_of(r), scale) for r in alike
        )
        if not undone or value.is_graph_output():
            return
        floats += ((reader, value) for reader in alike)
        path.append(maker)
        value = maker.inputs[0]
    if not path or path[-1].inputs[0] is None:
        return
    above = put(path[-1], "DequantizeLinear", [path[-1].inputs[0], *node.inputs[1:]])
    above.outputs[0].type = node.outputs[0].type
    above.outputs[0].shape = path[-1].inputs[0].shape
    path[-1].replace_input_with(0, above.outputs[0])
    for step in path:
        step.outputs[0].type = node.outputs[0].type
    for reader, moved in floats:
        _forward(reader, moved)


def _mover(value: ir.Value) -> ir.Node | None:
    """The node that makes a value by moving numbers."""
    maker = value.producer()
    if maker is None or maker.domain or len(maker.outputs) > 1:
        return None
    return maker if moves(maker) else None
