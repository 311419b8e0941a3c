"""Opsets: 16 to 28 are read as they are, older ones converted, newer ones refused.

Older models are read as they are where every operator has an import rule of that
version, else they are upgraded with ONNX's converter, which does not know every change
of meaning (it leaves Hardmax-11 and the linear Resize-10 as if they were today's).
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from burnish.codegen.errors import Explain, ReadError, UnsupportedError
from burnish.codegen.ops import find, has_rule
from burnish.codegen.readers import native, old_attributes, old_scan
from burnish.codegen.readers.message import NEWEST, OLDEST
from burnish.codegen.readers.normal import build, lift_constants
from burnish.codegen.weights import constants


def bring_up(model: ir.Model, declared: int, explain: Explain) -> ir.Model:
    """The model at opset 16 or newer; its tensors must still be references."""
    if declared > NEWEST:
        raise UnsupportedError(
            f"expected opset {OLDEST} to {NEWEST}, got {declared}; export the model "
            f"with opset {NEWEST}"
        )
    if declared >= OLDEST or is_native(model, declared):
        return model
    opset = old_attributes.modernise(model, declared)
    if opset > declared and is_native(model, opset):
        lift_constants(model)
        return model
    converted = convert(model, opset, OLDEST)
    explain(f"opset {declared} was upgraded to {OLDEST}")
    lift_constants(converted)
    return converted


def is_native(model: ir.Model, opset: int) -> bool:
    """Whether every node has a rule in this opset."""
    return all(
        node.domain != "" or _has_own_rule(node, node.version or opset)
        for node in model.graph.all_nodes()
    )


def _has_own_rule(node: ir.Node, opset: int) -> bool:
    rule = find("", node.op_type, opset)
    return (
        rule is not None
        and has_rule(node, opset)
        and node.attributes.keys() <= rule.attributes.keys()
    )


def convert(model: ir.Model, declared: int, target: int) -> ir.Model:
    """The model at opset `target`, with metadata that the converter loses restored."""
    model.ir_version = max(model.ir_version or 0, 10)
    declared = old_attributes.modernise(model, declared)
    old_attributes.per_element(model, declared)
    old_scan.hide(model, declared, target)
    message: Any = ir.to_proto(model)
    try:
        message = native.convert_version(message, target)
    except native.NativeError as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else error
        raise UnsupportedError(
            f"opset {declared} cannot be upgraded to {target} ({reason}); export the "
            "model again with a newer opset, for PyTorch "
            f"`torch.onnx.export(..., opset_version={target})`"
        ) from error
    converted = build(message)
    old_scan.restore(converted)
    _restore_metadata(model, converted)
    _restore_meaning(model, converted, declared, target)
    if converted.opset_imports.get("") != target:
        raise ReadError(f"the converter did not reach opset {target}")
    return converted


def _restore_meaning(
    before: ir.Model, after: ir.Model, declared: int, target: int
) -> None:
    """Write out attributes whose defaults changed since that opset.

    Resize-10 and Upsample aligned corners asymmetrically; Hardmax-11 took all axes from
    its own on as one, which no later node says alone: it is refused.
    """
    old = {
        output.name: node.op_type
        for node in before.graph.all_nodes()
        for output in node.outputs
        if node.domain == ""
    }
    for node in after.graph.all_nodes():
        was = old.get(node.outputs[0].name) if node.outputs else None
        resized = node.op_type == "Resize" and was in ("Resize", "Upsample")
        if resized and declared < 11 <= target:
            mode = ir.AttrString("coordinate_transformation_mode", "asymmetric")
            node.attributes.add(mode)
            node.attributes.add(ir.AttrString("nearest_mode", "floor"))
        if node.op_type == was == "Hardmax" and declared < 13 <= target:
            raise UnsupportedError(
                f"node {node.name!r}: Hardmax of opset {declared} has no equal in "
                f"opset {target}; keep the file as it is"
            )


def _restore_metadata(before: ir.Model, after: ir.Model) -> None:
    """The converter drops metadata; a node is known by the value that it makes."""
    after.metadata_props.update(before.metadata_props)
    origin = {
        output.name: node
        for node in before.graph.all_nodes()
        for output in node.outputs
    }
    for node in after.graph.all_nodes():
        old = origin.get(node.outputs[0].name) if node.outputs else None
        if old is not None:
            node.metadata_props.update(old.metadata_props)
            node.name = node.name or old.name
    for name, value in before.graph.initializers.items():
        if name in after.graph.initializers and constants.is_marked(value):
            constants.mark(after.graph.initializers[name])
