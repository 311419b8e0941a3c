"""Shape and type inference on a model without its weights; it never fails."""

from __future__ import annotations

from typing import Any

import onnx.shape_inference
import onnx_ir as ir

from burnish.codegen.errors import Explain

SMALL = 1024  # bytes; larger initializers say only their type and shape


def infer(model: ir.Model, explain: Explain) -> bool:
    """Fill in what ONNX's inference knows and the file does not say; True if any."""
    try:
        message = onnx.shape_inference.infer_shapes(
            without_weights(model), check_type=False, strict_mode=False, data_prop=True
        )
        inferred = ir.from_proto(message)
    except Exception as error:  # inference is C++ and raises many kinds
        explain(f"shapes could not be inferred: {str(error).splitlines()[:1]}")
        return False
    changed = False
    for ours, theirs in zip(model.graphs(), inferred.graphs(), strict=False):
        known = ir.convenience.create_value_mapping(theirs)
        for name, value in ir.convenience.create_value_mapping(ours).items():
            if name in known:
                changed |= _adopt(value, known[name])
    return changed


def _adopt(value: ir.Value, other: ir.Value) -> bool:
    changed = False
    if value.type is None and other.type is not None:
        value.type, changed = other.type, True
    if other.shape is None or (value.shape and len(value.shape) != len(other.shape)):
        return changed
    if value.shape is None:
        value.shape = other.shape
        return True
    dims = [_dim(a, b) for a, b in zip(value.shape, other.shape, strict=True)]
    if dims != list(value.shape):
        value.shape = ir.Shape(dims)
        return True
    return changed


def _dim(ours: Any, theirs: Any) -> Any:
    """The more telling of two: a number, then our name, then their name."""
    if isinstance(ours, int) or isinstance(theirs, int):
        return ours if isinstance(ours, int) else theirs
    return ours if ours.value is not None else theirs


def without_weights(model: ir.Model) -> Any:
    """A ModelProto where large initializers are inputs of the same type and shape."""
    held: list[tuple[ir.Value, ir.TensorProtocol]] = []
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if tensor is not None and tensor.nbytes > SMALL:
            held.append((value, tensor))
            value.const_value = _placeholder(tensor)
    try:
        message: Any = ir.to_proto(model)
    finally:
        for value, tensor in held:
            value.const_value = tensor
    small = [t for t in message.graph.initializer if not t.external_data]
    large = [t for t in message.graph.initializer if t.external_data]
    message.graph.input.extend(
        onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims))
        for t in large
    )
    del message.graph.initializer[:]
    message.graph.initializer.extend(small)
    return message


def _placeholder(tensor: ir.TensorProtocol) -> ir.ExternalTensor:
    return ir.ExternalTensor(
        "weights",
        0,
        0,
        tensor.dtype,
        shape=ir.Shape(tensor.shape.numpy()),
        name=tensor.name or "",
    )
