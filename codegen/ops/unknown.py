"""Operators without a rule, as calls of method stubs for the user to fill in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from burnish.codegen.names.identifier import Identifier, Names
from burnish.codegen.ops.rule.expressions import operand
from burnish.codegen.program import Expression, Literal, Unwritten

_PLAIN = frozenset(
    ir.AttributeType[name]
    for name in ("FLOAT", "INT", "STRING", "TENSOR", "FLOATS", "INTS", "STRINGS")
)


def fits_a_call(node: ir.Node) -> bool:
    """Whether arguments can say all that the node says: it has no graphs inside."""
    return bool(node.outputs) and all(
        attribute.type in _PLAIN for attribute in node.attributes.values()
    )


class Unknown:
    """The methods of one program; every operator has one for each count of results.

    nodes: the names of an operator's nodes, by its kind: "com.acme.Foo (opset 1)".
    """

    def __init__(self) -> None:
        self.nodes: dict[str, list[str]] = {}
        self._names: dict[tuple[str, int], str] = {}
        self._taken = Names()

    def met(self, kind: str, node: str) -> None:
        """Note that a node of this kind is there."""
        self.nodes.setdefault(kind, []).append(node)

    def method(self, kind: str, op_type: str, outputs: int) -> str:
        """The method's name."""
        key = kind, outputs
        if key not in self._names:
            wanted = Identifier.variable(f"unknown_{op_type}")
            self._names[key] = self._taken.new(wanted)
        return self._names[key]

    def called(
        self,
        kind: str,
        node: ir.Node,
        inputs: list[Expression | None],
        attributes: Mapping[str, Any],
    ) -> Unwritten:
        """The call for a node: inputs are positional, attributes are keywords."""
        names = Names(("self",))
        options = tuple(
            (names.new(Identifier.attribute(name)), operand(value))
            for name, value in attributes.items()
        )
        args = tuple(Literal(None) if x is None else operand(x) for x in inputs)
        method = self.method(kind, node.op_type, len(node.outputs))
        gives, takes = (
            tuple(map(_annotation, values)) for values in (node.outputs, node.inputs)
        )
        return Unwritten(f"self.{method}", args, options, kind, gives, takes)


def _annotation(value: ir.Value | None) -> str:
    """What a method calls a value of the graph."""
    match value and value.type:
        case ir.SequenceType():
            return "list[Tensor]"
        case ir.OptionalType(elem_type=ir.SequenceType()):
            return "list[Tensor] | None"
        case ir.OptionalType():
            return "Tensor | None"
    return "Tensor"
