"""Check that an attribute is written once, and in the field that its type names."""

from __future__ import annotations

from typing import Any

from onnx import AttributeProto

from burnish.codegen.errors import ReadError

#: Fields of an attribute that hold no value.
_ABOUT = frozenset(("name", "type", "doc_string", "ref_attr_name"))
_SHORT = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g"}
_SHORT |= {"TYPE_PROTO": "tp"}
_FIELDS = {
    number: _SHORT.get(name, name.lower())
    for name, number in AttributeProto.AttributeType.items()
    if number != AttributeProto.UNDEFINED
}


def check(node: Any) -> None:
    """Raise a ReadError for a NodeProto that says one thing in two ways.

    A zero may be left out, as some writers do.
    """
    seen = set[str]()
    for attribute in node.attribute:
        name, where = attribute.name, f"node {node.name!r} ({node.op_type})"
        if name in seen:
            raise ReadError(f"{where}: expected one attribute {name}, got several")
        seen.add(name)
        if (field := _FIELDS.get(attribute.type)) is None:
            continue  # its operator says that no such type is expected
        held = {descriptor.name for descriptor, _ in attribute.ListFields()} - _ABOUT
        if held - {field}:
            kind = AttributeProto.AttributeType.Name(attribute.type)
            raise ReadError(
                f"{where}: expected {name} in the field {field!r} of type {kind}, got "
                f"{', '.join(sorted(held))}; export the model again"
            )
