"""Long attribute lists: taken out of the ModelProto, held as arrays in the Graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.errors import ReadError
from burnish.codegen.readers.message import all_bodies
from burnish.codegen.readers.wire import Table, table_of

_FIELDS = {
    ir.AttributeType.FLOATS: "floats",
    ir.AttributeType.INTS: "ints",
    ir.AttributeType.STRINGS: "strings",
}


class ArrayAttr(ir.Attr):
    """An attribute of numbers whose value is an array, not a tuple of objects."""

    __slots__ = ()

    def __init__(self, name: str, kind: ir.AttributeType, array: np.ndarray):
        super().__init__(name, kind, None)
        self._value = array

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ir.Attr)
            and (self.name, self.type) == (other.name, other.type)
            and np.array_equal(self.value, other.value)
        )

    __hash__ = None  # type: ignore[assignment]


def fill_in(model: ir.Model, tables: dict[int, Table]) -> None:
    """Give attributes the lists that their doc_strings name, each once."""
    left = dict(tables)
    bodies: tuple[ir.Graph | ir.Function, ...] = (
        model.graph,
        *model.functions.values(),
    )
    for node in (node for body in bodies for node in body.all_nodes()):
        for name, attribute in list(node.attributes.items()):
            if attribute.is_ref() or (number := table_of(attribute)) is None:
                continue
            kind = attribute.type
            values = _taken(left, number, kind, name)
            is_text = kind is ir.AttributeType.STRINGS
            made = (ir.Attr if is_text else ArrayAttr)(name, kind, values)
            node.attributes[name] = made


def write_back(message: Any, tables: dict[int, Table]) -> None:
    """Write the lists into the attributes of a ModelProto, for tools that read it."""
    left = dict(tables)
    for body in all_bodies([message.graph, *message.functions]):
        for node in body.node:
            for attribute in node.attribute:
                if (number := table_of(attribute)) is not None:
                    kind = ir.AttributeType(attribute.type)
                    values = _taken(left, number, kind, attribute.name)
                    if kind is ir.AttributeType.STRINGS:
                        values = [word.encode() for word in values]
                    getattr(attribute, _FIELDS[kind]).extend(values)
                    attribute.ClearField("doc_string")


def _taken(
    left: dict[int, Table], number: int, kind: ir.AttributeType, name: str
) -> Any:
    table = left.pop(number, None)
    if table is None or table.field != _FIELDS.get(kind):
        raise ReadError(
            f"attribute {name!r}: expected elements of type {kind.name}, got others; "
            "export the model again"
        )
    return table.values
