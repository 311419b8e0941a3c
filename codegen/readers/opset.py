"""Opsets 16 to 28 are native; older models are converted, newer ones refused."""

from __future__ import annotations

from typing import Any

import onnx.version_converter
import onnx_ir as ir

from burnish.codegen import constants
from burnish.codegen.errors import Explain, ReadError, UnsupportedError
from burnish.codegen.readers import old_scan
from burnish.codegen.readers.normal import build, lift_constants
from burnish.codegen.readers.proto import NEWEST

OLDEST = 16


def bring_up(model: ir.Model, declared: int, explain: Explain) -> ir.Model:
    """The model at opset 16 or newer; its tensors must still be references."""
    if declared > NEWEST:
        raise UnsupportedError(
            f"expected opset {OLDEST} to {NEWEST}, got {declared}; export the model "
            f"with opset {NEWEST}"
        )
    if declared >= OLDEST:
        return model
    converted = convert(model, declared, OLDEST)
    explain(f"opset {declared} was upgraded to {OLDEST}")
    lift_constants(converted)
    return converted


def convert(model: ir.Model, declared: int, target: int) -> ir.Model:
    """The model at opset `target`, with what the converter loses put back."""
    model.ir_version = max(model.ir_version or 0, 10)
    old_scan.hide(model, declared, target)
    message: Any = ir.to_proto(model)
    try:
        message = onnx.version_converter.convert_version(message, target)
    except Exception as error:  # the C++ converter raises many kinds
        reason = str(error).strip().splitlines()[0] if str(error).strip() else error
        raise UnsupportedError(
            f"opset {declared} cannot be upgraded to {target} ({reason}); export the "
            "model again with a newer opset, for PyTorch "
            f"`torch.onnx.export(..., opset_version={target})`"
        ) from error
    converted = build(message)
    old_scan.restore(converted)
    _restore_metadata(model, converted)
    if converted.opset_imports.get("") != target:
        raise ReadError(f"the converter did not reach opset {target}")
    return converted


def _restore_metadata(before: ir.Model, after: ir.Model) -> None:
    """The converter drops metadata; a node is known by the value that it makes."""
    after.metadata_props.update(before.metadata_props)
    origin = {
        output.name: node
        for graph in before.graphs()
        for node in graph
        for output in node.outputs
    }
    for graph in after.graphs():
        for node in graph:
            old = origin.get(node.outputs[0].name) if node.outputs else None
            if old is not None:
                node.metadata_props.update(old.metadata_props)
                node.name = node.name or old.name
    for name, value in before.graph.initializers.items():
        if name in after.graph.initializers and constants.is_marked(value):
            constants.mark(after.graph.initializers[name])
