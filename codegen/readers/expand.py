"""Expand operators that the specification defines as functions of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import onnx_ir as ir
from onnx_ir.passes import common

from burnish.codegen.account import Account
from burnish.codegen.errors import Explain
from burnish.codegen.readers import native
from burnish.codegen.readers.inlining.inline import inline_calls
from burnish.codegen.readers.normal import lift_constants
from burnish.codegen.readers.sizes import shapes

_DOMAIN = "burnish.expanded"
_DEEPEST = 8

HasRule = Callable[[ir.Node, int], bool]


def expand(model: ir.Model, has_rule: HasRule, explain: Explain) -> bool:
    """Replace every operator without a rule by its function body, if it has one.

    The nodes inherit the operator's metadata, so they stay where the author had it.
    """
    _widen_masks(model)
    changed = False
    account = Account()
    for _ in range(_DEEPEST):
        if not _once(model, has_rule, account):
            break
        changed = True
        inline_calls(model)
        model.opset_imports.pop(_DOMAIN, None)
        common.NameFixPass()(model)
        lift_constants(model)
        shapes.infer(model, explain)
    for line in account.lines({}):
        explain(line)
    return changed


def _widen_masks(model: ir.Model) -> None:
    """Attention's mask of integers becomes one of the scores' type.

    The definition computes in the mask's own type, where no integer is -inf.
    """
    for node in list(model.graph.all_nodes()):
        if node.op_type != "Attention" or node.domain != "" or len(node.inputs) < 4:
            continue
        query, mask = node.inputs[0], node.inputs[3]
        if query is None or mask is None or query.dtype is None:
            continue
        if mask.dtype is None or not mask.dtype.is_integer():
            continue
        to = ir.AttrInt64("to", query.dtype)
        cast = ir.Node("", "Cast", [mask], [to], name=f"{node.name or ''}/mask")
        cast.outputs[0].name = f"{node.outputs[0].name}_mask"
        cast.outputs[0].type = ir.TensorType(query.dtype)
        cast.outputs[0].shape = mask.shape
        cast.metadata_props.update(node.metadata_props)
        node.replace_input_with(3, cast.outputs[0])
        assert node.graph is not None
        node.graph.insert_before(node, cast)


def _once(model: ir.Model, has_rule: HasRule, account: Account) -> bool:
    """Make a function of every operator to expand, and its node a call of it."""
    found = 0
    for node in list(model.graph.all_nodes()):
        version = node.version or model.opset_imports.get(node.domain, 1)
        if has_rule(node, version):
            continue
        body = _body(node, version)
        if body is None:
            continue
        account.did(f"{node.op_type} expanded to its definition", node.name or "")
        body.domain, body.name = _DOMAIN, f"{node.op_type}_{found}"
        _only_asked_for(body, len(node.outputs))
        _take_along(node, body)
        function = ir.from_proto(body)
        for inner in function.all_nodes():
            inner.version = function.opset_imports.get(inner.domain)
        function.opset_imports.update(model.opset_imports)
        model.functions[function.identifier()] = function
        node.domain, node.op_type, node.version = _DOMAIN, body.name, None
        found += 1
    if found:
        model.opset_imports[_DOMAIN] = 1
    return found > 0


def _body(node: ir.Node, version: int) -> Any:
    """The FunctionProto that defines the node's operator, or None."""
    if not onnx.defs.has(node.op_type, node.domain):
        return None
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return None
    for name, attribute in schema.attributes.items():
        if name not in node.attributes and attribute.default_value.type:
            default: Any = ir.from_proto(attribute.default_value)
            node.attributes[name] = default
    plain = _newest(schema.function_opset_versions, version)
    if plain is not None:
        return _parsed(schema.get_function_with_opset_version(plain))
    dependent = _newest(schema.context_dependent_function_opset_versions, version)
    if dependent is None:
        return None
    types = [_type(value) for value in node.inputs]
    written = ir.to_proto(node).SerializeToString()
    kind = (node.op_type, version, node.domain)
    try:
        body = _parsed(native.function_body(kind, dependent, written, types))
    except native.NativeError:
        return None  # it stays, and is reported as an operator without a rule
    return body if body.node else None  # it is empty where types are not known


def _only_asked_for(body: Any, outputs: int) -> None:
    """Bodies list every output, also those that this node's body does not make."""
    made = {name for node in body.node for name in node.output} | set(body.input)
    del body.output[outputs:]
    for name in body.output:
        if name not in made:
            body.node.add(op_type="Identity", input=[body.output[0]], output=[name])


def _take_along(node: ir.Node, body: Any) -> None:
    """A body has the node's graphs in place; what those read becomes inputs of both."""
    graphs = {
        name: attribute.as_graph()
        for name, attribute in node.attributes.items()
        if attribute.type == ir.AttributeType.GRAPH
    }
    made = {name for inner in body.node for name in inner.output} | set(body.input)
    outer: dict[str, ir.Value] = {}
    for name, graph in graphs.items():
        for value in (v for inner in graph.all_nodes() for v in inner.inputs):
            if value is not None and value.name and value.name not in made:
                outer[value.name] = value
        del node.attributes[name]
    count = len(node.inputs)
    missing = len(body.input) - count
    node.resize_inputs(count + missing + len(outer))
    for place, (name, value) in enumerate(outer.items(), count + missing):
        body.input.append(name)
        node.replace_input_with(place, value)


def _newest(versions: list[int], limit: int) -> int | None:
    return max((v for v in versions if v <= limit), default=None)


def _parsed(function: bytes) -> Any:
    return onnx.FunctionProto.FromString(function)


def _type(value: ir.Value | None) -> bytes:
    if value is None or value.type is None:
        return onnx.TypeProto().SerializeToString()
    message = onnx.TypeProto()
    ir.serde.serialize_type_into(message, value.type)
    if value.shape is not None:
        ir.serde.serialize_shape_into(message, value.shape)
    return message.SerializeToString()
