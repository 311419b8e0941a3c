"""Inline calls of model-local functions, in time linear in the result.

onnx-ir's own pass finds names by counting from one again for each, and compares every
function with all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx_ir as ir

from burnish.codegen.errors import CALL, ReadError
from burnish.codegen.readers.message import NEWEST

_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def inline_calls(model: ir.Model) -> None:
    """Replace each call by its function's body, in place; no functions are left.

    Calls inside bodies too: functions must not be recursive.
    """
    inliner = _Inliner(model)
    inliner.inline(model.graph)
    model.functions.clear()


class _Names:
    """Names in use; of those that clash the second gets `_2`, and so on."""

    def __init__(self) -> None:
        self.used = set[str]()
        self.last: dict[str, int] = {}

    def unused(self, name: str) -> str:
        """The name, or it with the next number; it is in use from now on."""
        made, count = name, self.last.get(name, 1)
        while made in self.used:
            count += 1
            made = f"{name}_{count}"
        self.last[name] = count
        self.used.add(made)
        return made


class _Inliner:
    """Inlines the calls in the graphs of one model."""

    def __init__(self, model: ir.Model):
        self.functions, self.opsets = dict(model.functions), model.opset_imports
        self.values, self.nodes = _Names(), _Names()
        for function in self.functions.values():
            try:
                function.sort()
            except ValueError:
                raise ReadError(
                    f"function {function.name!r}: expected nodes without cycles, got "
                    "one; export the model again"
                ) from None

    def inline(self, graph: ir.Graph) -> None:
        """Inline every call in a graph, and in the graphs of its nodes."""
        self._note_names(graph)
        places: dict[ir.Value, list[int]] = {}
        for place, value in enumerate(graph.outputs):
            places.setdefault(value, []).append(place)
        calls = []
        for node in graph:  # the nodes of a body are met next
            function = self.functions.get(node.op_identifier())
            if function is None:
                for inner in bodies(node):
                    self.inline(inner)
                continue
            calls.append(node)
            nodes, results = self._body(node, function)
            graph.insert_after(node, nodes)
            for old, new in zip(node.outputs, results, strict=False):
                for place in places.get(old, ()):
                    graph.outputs[place] = new
                    places.setdefault(new, []).append(place)
                for user, index in tuple(old.uses()):
                    user.replace_input_with(index, new)
            for index in range(len(node.inputs)):
                node.replace_input_with(index, None)
        graph.remove(calls)

    def _note_names(self, graph: ir.Graph) -> None:
        self.values.used.update(v.name for v in graph.inputs if v.name)
        self.values.used.update(graph.initializers)
        for node in graph:
            self.values.used.update(v.name for v in node.outputs if v.name)
            if node.name:
                self.nodes.used.add(node.name)

    def _body(
        self, call: ir.Node, function: ir.Function
    ) -> tuple[list[ir.Node], list[ir.Value]]:
        """Copies of a function's nodes for one call, and the call's outputs."""
        self._check(call, function)
        copy = _Copy(call, function, self.values, self.nodes)
        nodes = [copy.node(node) for node in function]
        made = {value for node in nodes for value in node.outputs}
        results = []
        for old, inner in zip(call.outputs, function.outputs, strict=False):
            new = copy.value(inner)
            if new not in made:  # an input of the function, or an output once more
                nodes.append(self._identity(new, call))
                new = nodes[-1].outputs[0]
            made.discard(new)
            new.name = old.name or self.values.unused(inner.name or "val")
            if old.type is not None:
                new.type = old.type
            if old.shape is not None:
                new.shape = old.shape
            results.append(new)
        return nodes, results

    def _identity(self, value: ir.Value, call: ir.Node) -> ir.Node:
        self.opsets.setdefault("", NEWEST)
        name = self.nodes.unused(call.name or "node")
        made = ir.Node("", "Identity", [value], num_outputs=1, name=name)
        made.metadata_props.update(call.metadata_props)
        made.outputs[0].type, made.outputs[0].shape = value.type, value.shape
        return made

    def _check(self, call: ir.Node, function: ir.Function) -> None:
        what = f"function {function.name!r} cannot be inlined"
        for domain, version in function.opset_imports.items():
            known = self.opsets.setdefault(domain, version)
            if known != version:
                raise ReadError(
                    f"{what}: expected opset {known} of domain {domain!r}, as the "
                    f"model imports, got {version}"
                )
        for kind, given, most in (
            ("inputs", call.inputs, function.inputs),
            ("outputs", call.outputs, function.outputs),
        ):
            if len(given) > len(most):
                raise ReadError(
                    f"{what}: expected at most {len(most)} {kind}, got {len(given)} at "
                    f"node {call.name!r}"
                )
        held = (*call.attributes.values(), *function.attributes.values())
        if any(attribute.type in _GRAPHS for attribute in held):
            raise ReadError(
                f"{what}: expected attributes that are no graphs, got one at node "
                f"{call.name!r}"
            )


class _Copy:
    """One copy of a function's body: the call's values and attributes are in it."""

    def __init__(
        self, call: ir.Node, function: ir.Function, values: _Names, nodes: _Names
    ):
        self.values, self.nodes = values, nodes
        self.metadata = call.metadata_props
        self.call = call.meta.get(CALL) or call.name
        defaults = function.attributes.values()
        self.attributes = {a.name: a for a in defaults if a.value is not None}
        self.attributes |= call.attributes
        self.made: dict[ir.Value, ir.Value | None] = dict.fromkeys(function.inputs)
        self.made.update(zip(function.inputs, call.inputs, strict=False))

    def value(self, value: ir.Value) -> ir.Value:
        """The caller's value for one of the function; ReadError if there is none."""
        made = self.made.get(value)
        if made is None:
            raise ReadError(
                f"functions cannot be inlined: nothing makes {value.name!r}, which one "
                "of them returns"
            )
        return made

    def node(self, node: ir.Node) -> ir.Node:
        """A copy of a node; its name and those of its outputs are its own."""
        inputs = [v if v is None else self.made.get(v, v) for v in node.inputs]
        held = (self._attribute(*item) for item in node.attributes.items())
        made = ir.Node(
            node.domain,
            node.op_type,
            inputs,
            [attribute for attribute in held if attribute is not None],
            overload=node.overload,
            num_outputs=len(node.outputs),
            version=node.version,
            name=self.nodes.unused(node.name or "node"),
            doc_string=node.doc_string,
            metadata_props={**self.metadata, **node.metadata_props},
        )
        made.meta.update(node.meta)
        made.meta[CALL] = self.call
        for old, new in zip(node.outputs, made.outputs, strict=True):
            self._describe(new, old)
            new.name = self.values.unused(old.name or "val")
        return made

    def _describe(self, new: ir.Value, old: ir.Value) -> None:
        """Copy type, shape and notes of a value to its copy."""
        new.type, new.const_value = old.type, old.const_value
        new.doc_string = old.doc_string
        new.shape = None if old.shape is None else old.shape.copy()
        new.metadata_props.update(old.metadata_props)
        new.meta.update(old.meta)
        self.made[old] = new

    def _attribute(self, key: str, attribute: ir.Attr) -> ir.Attr | None:
        if attribute.is_ref():  # one that the call does not have is left out
            given = self.attributes.get(attribute.ref_attr_name or "")
            if given is None or given.is_ref():
                return None
            return ir.Attr(key, given.type, given.value, doc_string=given.doc_string)
        if attribute.type not in _GRAPHS:
            return attribute
        graphs = [self._graph(graph) for graph in _graphs_of(attribute)]
        held: Any = graphs if attribute.type == ir.AttributeType.GRAPHS else graphs[0]
        return ir.Attr(key, attribute.type, held, doc_string=attribute.doc_string)

    def _graph(self, graph: ir.Graph) -> ir.Graph:
        def copied(value: ir.Value) -> ir.Value:
            new = ir.Value(name=value.name)
            self._describe(new, value)
            return new

        inputs = [copied(value) for value in graph.inputs]
        initializers = [
            self.made.get(value) or copied(value)  # an input may have a default
            for value in graph.initializers.values()
        ]
        nodes = [self.node(node) for node in graph]
        made = ir.Graph(
            inputs,
            [self.value(value) for value in graph.outputs],
            nodes=nodes,
            initializers=initializers,
            doc_string=graph.doc_string,
            opset_imports=dict(graph.opset_imports),
            name=graph.name,
        )
        made.metadata_props.update(graph.metadata_props)
        made.meta.update(graph.meta)
        return made


def bodies(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs in a node's attributes."""
    for attribute in node.attributes.values():
        if not attribute.is_ref() and attribute.type in _GRAPHS:
            yield from _graphs_of(attribute)


def _graphs_of(attribute: ir.Attr) -> list[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return list(attribute.as_graphs())
