"""Export modules as FunctionProtos: each call of a module becomes one node."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import onnx_ir as ir

from burnish.codegen.passes.graph import bodies
from burnish.codegen.writers.traced.emitter import Emitter, opsets
from burnish.codegen.writers.traced.tape import Inside

DOMAIN = "modules"


class Functions:
    """Folds the nodes of each module's call into a function; equal ones are one."""

    def __init__(self, emit: Emitter, results: list[ir.Value]):
        self.emit, self.results = emit, results
        self.made: dict[Any, ir.Function] = {}

    def fold(self, nodes: Sequence[ir.Node], depth: int, inside: str) -> list[ir.Node]:
        """The nodes of one call, those of deeper calls as one node each."""
        folded: list[ir.Node] = []
        calls: Counter[str] = Counter()
        for number, run in itertools.groupby(nodes, lambda n: self._number(n, depth)):
            part = list(run)
            if number is None:
                folded += part
                continue
            called = self.emit.paths[part[0]][depth]
            local = called.path.removeprefix(f"{inside}.") if inside else called.path
            body = self.fold(part, depth + 1, called.path)
            calls[local] += 1
            if calls[local] > 1:  # names of nodes are unique
                local = f"{local}_{calls[local] - 1}"
            folded.append(self._call(body, called, local))
        return folded

    def _number(self, node: ir.Node, depth: int) -> int | None:
        path = self.emit.paths.get(node, ())
        return path[depth].number if len(path) > depth else None

    def _call(self, body: list[ir.Node], called: Inside, local: str) -> ir.Node:
        within = set(everyone(body))
        own = set(_made(body))
        given = list(dict.fromkeys(v for v in asked_by(body) if v not in own))
        kept = [
            v for n in body for v in n.outputs
            if any(v is r for r in self.results)
            or any(user not in within for user, _ in v.uses())
        ]  # fmt: skip
        function = self._function(body, given, kept, type(called.module).__name__)
        outputs = [ir.Value(name=v.name, shape=v.shape, type=v.type) for v in kept]
        node = ir.Node(DOMAIN, function.name, given, outputs=outputs, name=local)
        for old, new in zip(kept, outputs, strict=True):
            ir.convenience.replace_all_uses_with(old, new)
            self.results[:] = [new if r is old else r for r in self.results]
        for each in within:
            for place in range(len(each.inputs)):
                each.replace_input_with(place, None)
        return node

    def _function(
        self, body: list[ir.Node], given: list[Any], kept: list[Any], kind: str
    ) -> ir.Function:
        places = {value: i for i, value in enumerate(given)}
        for value in _made(body):
            places[value] = len(places)
        key = (
            kind,
            len(given),
            tuple(places[v] for v in kept),
            tuple(_alike(node, places) for node in body),
        )
        if key not in self.made:
            count = sum(made.name.rpartition("_")[0] == kind or made.name == kind
                        for made in self.made.values())  # fmt: skip
            name = f"{kind}_{count}" if count else kind
            self.made[key] = _written(name, body, given, kept, places)
        return self.made[key]


def everyone(nodes: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """Nodes, and those in the bodies of their conditions."""
    for node in nodes:
        yield node
        for body in bodies(node):
            yield from everyone(body)


def _made(nodes: Iterable[ir.Node]) -> Iterator[ir.Value]:
    """Every value that nodes and their bodies make."""
    for node in everyone(nodes):
        yield from node.outputs
        for body in bodies(node):
            yield from body.inputs


def asked_by(nodes: Iterable[ir.Node]) -> Iterator[ir.Value]:
    """Every value that nodes are given, also in the bodies of their conditions."""
    for node in nodes:
        yield from (value for value in node.inputs if value is not None)
        for body in bodies(node):
            yield from asked_by(body)
            yield from body.outputs


def _alike(node: ir.Node, places: dict[Any, int]) -> Any:
    """A structural hash of a node; its operands are hashed by their places."""
    attributes = tuple(
        (name, _content(each, places)) for name, each in sorted(node.attributes.items())
    )
    inputs = tuple(None if v is None else places[v] for v in node.inputs)
    name = node.name if node.domain == DOMAIN else ""
    return node.domain, node.op_type, name, attributes, inputs, len(node.outputs)


def _content(attribute: ir.Attr, places: dict[Any, int]) -> Any:
    if attribute.type is ir.AttributeType.GRAPH:
        body = attribute.as_graph()
        ends = [[places[v] for v in values] for values in (body.inputs, body.outputs)]
        return repr(ends), tuple(_alike(node, places) for node in body)
    if attribute.type is ir.AttributeType.TENSOR:
        tensor = attribute.as_tensor()
        return str(tensor.dtype), tuple(tensor.shape), tensor.tobytes()
    return repr(attribute.value)


def _written(
    name: str, body: list[ir.Node], given: list[Any], kept: list[Any], places: Any
) -> ir.Function:
    """A function with copies of the nodes; its values are numbered."""
    values = {v: ir.Value(name=f"v{i}") for v, i in places.items()}
    nodes = _copied(body, values)
    graph = ir.Graph(
        [values[v] for v in given],
        [values[v] for v in kept],
        nodes=nodes,
        opset_imports=opsets(everyone(nodes)) | {DOMAIN: 1},
    )
    return ir.Function(DOMAIN, name, graph=graph, attributes=[])


def _copied(nodes: Iterable[ir.Node], values: dict[Any, ir.Value]) -> list[ir.Node]:
    """Nodes of other values, with the bodies of their conditions."""
    return [
        ir.Node(
            node.domain,
            node.op_type,
            [None if v is None else values[v] for v in node.inputs],
            [_attribute(each, values) for each in node.attributes.values()],
            outputs=[values[v] for v in node.outputs],
            name=node.name if node.domain == DOMAIN else f"{node.op_type}_{i}",
        )
        for i, node in enumerate(nodes)
    ]


def _attribute(attribute: ir.Attr, values: dict[Any, ir.Value]) -> ir.Attr:
    if attribute.type is not ir.AttributeType.GRAPH:
        return attribute
    body = attribute.as_graph()
    ends = ([values[v] for v in body.inputs], [values[v] for v in body.outputs])
    for old in (*body.inputs, *body.outputs):
        values[old].shape, values[old].type = old.shape, old.type
    made = ir.Graph(*ends, nodes=_copied(body, values), name=body.name)
    return ir.AttrGraph(attribute.name, made)
