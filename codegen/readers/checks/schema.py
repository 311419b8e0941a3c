"""Check nodes against their operator schemas: inputs, outputs and attributes.

What comes after may rely on it: a rule or a pass never meets a node without the input
that its operator needs, or text where a number belongs.
"""

from __future__ import annotations

import functools
from typing import Any

import onnx
import onnx_ir as ir

from burnish.codegen.errors import ReadError


def check(model: ir.Model) -> None:
    """Raise a ReadError that names the first node which is no node of its operator."""
    for graph in model.graphs():
        for node in graph:
            version = node.version or model.opset_imports.get(node.domain, 1)
            schema = _schema(node.op_type, version, node.domain)
            if schema is not None:
                _check(node, schema)


@functools.lru_cache(maxsize=1024)
def _schema(op_type: str, version: int, domain: str) -> Any:
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


def _check(node: ir.Node, schema: Any) -> None:
    where = f"node {node.name or '-> ' + str(node.outputs[:1])!r} ({node.op_type})"
    _check_count(where, "inputs", len(node.inputs), schema.min_input, schema.max_input)
    count = len(node.outputs)
    _check_count(where, "outputs", count, schema.min_output, schema.max_output)
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    for formal, value in zip(schema.inputs, node.inputs, strict=False):
        if value is None and formal.option == single:
            raise ReadError(f"{where}: expected an input {formal.name}, got none")
    _check_attributes(where, node, schema)


def _check_attributes(where: str, node: ir.Node, schema: Any) -> None:
    for attribute in node.attributes.values():
        if attribute.is_ref():
            raise ReadError(
                f"{where}: expected {attribute.name} to have a value, got a reference "
                "to an attribute of a function, and this is none"
            )
    for name, attribute in schema.attributes.items():
        given = node.attributes.get(name)
        if given is None:
            if attribute.required:
                raise ReadError(f"{where}: expected an attribute {name}, got none")
        elif int(given.type) != int(attribute.type):
            kind = ir.AttributeType(int(attribute.type)).name
            raise ReadError(
                f"{where}: expected {name} to be {kind}, got {given.type.name}"
            )
        elif isinstance(given.value, bytes):
            raise ReadError(f"{where}: expected {name} to be text in UTF-8")
    _check_order(where, node.attributes.get("perm"))


def _check_order(where: str, perm: ir.Attr | None) -> None:
    """An order of axes has each axis once."""
    order = [] if perm is None else list(perm.as_ints())
    if sorted(order) != list(range(len(order))):
        raise ReadError(
            f"{where}: expected perm to have each axis from 0 once, got {order[:8]}"
        )


def _check_count(where: str, what: str, got: int, least: int, most: int) -> None:
    if not least <= got <= most:
        expected = f"{least} to {most}" if least != most else str(least)
        raise ReadError(f"{where}: expected {expected} {what}, got {got}")
