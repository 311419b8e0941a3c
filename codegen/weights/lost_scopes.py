"""Restore the module scopes of nodes that an optimizer or quantizer replaced.

An optimiser forgets what it fuses: a sum with a norm behind it has no scope. A
quantizer forgets whose product it replaces, and a simplifier names what it merges by
counting. Weights still have their modules in their names; what has none is where its
neighbours meet.
"""

from __future__ import annotations

from collections.abc import Set
from itertools import combinations, pairwise

import onnx_ir as ir

from burnish.codegen.program import Level, Scope, level_names
from burnish.codegen.scopes import is_placed, scope_of, write_scope

_ROUNDS = 4
_PRODUCTS = frozenset(("Cast", "ConvInteger", "MatMul", "MatMulInteger", "Mul"))
"""Of floats or integers, and what brings those to their scale."""
_LAYERS = frozenset(("ConvInteger", "MatMul", "MatMulInteger"))
_OF_BODIES = frozenset(("MatMul", "Reshape", "Transpose"))
"""What a module with layers of its own computes, and no norm or activation."""


def settle(model: ir.Model, groups: list[list[ir.Node]]) -> None:
    """Write the scopes of nodes that have none, each group from one operator."""
    known = _Known(model)
    if not known.kinds:
        return
    lost = [group for group in groups if not any(map(scope_of, group))]
    _place(_strays(model, {node for group in groups for node in group}), known)
    for group in lost:
        for node in group:
            path = known.by_weight(node) or _before_bias(node)
            if path := path or known.of_layer(node, *_around(node)):
                write_scope(node, path)
    for _ in range(_ROUNDS):
        for group in lost:
            whole = _has_product(group)
            if whole and (scope := known.around(group)):
                for node in group:
                    write_scope(node, scope)
            for node in group:
                if not scope_of(node) and (scope := known.between(node)):
                    write_scope(node, scope)


def _strays(model: ir.Model, grouped: Set[ir.Node]) -> list[ir.Node]:
    """Nodes that no exporter placed, in a file where most nodes have places.

    What casts an input or an output for all of the model is of no module.
    """
    nodes = [node for node in model.graph if node not in grouped]
    strays = [node for node in nodes if not is_placed(node)]
    ends = {*model.graph.inputs, *model.graph.outputs}
    if len(strays) > len(nodes) // 2:
        return []
    return [
        node
        for node in strays
        if node.op_type != "Cast" or ends.isdisjoint((*node.inputs, *node.outputs))
    ]


def _place(strays: list[ir.Node], known: _Known) -> None:
    """Write where strays are: at their weights, else between nodes of one module."""
    before: dict[ir.Node, set[Scope]] = {}
    behind: dict[ir.Node, set[Scope]] = {}
    for node in strays:
        path = known.by_weight(node)
        if path and known.kinds.get((path[0].name,)) is not None:
            write_scope(node, path)
    strays = [node for node in strays if not scope_of(node)]
    for node in reversed(strays):
        if path := _before_bias(node):
            write_scope(node, path)
    strays = [node for node in strays if not scope_of(node)]
    for node in strays:
        makers = {value.producer() for value in node.inputs if value is not None}
        before[node] = _nearest(makers, before)
    for node in reversed(strays):
        readers = {user for output in node.outputs for user, _ in output.uses()}
        behind[node] = _nearest(readers, behind)
    for node in strays:
        scope = known.of_layer(node, before[node], behind[node])
        if scope := scope or _inside([*before[node], *behind[node]]):
            write_scope(node, scope)


def _nearest(
    nodes: Set[ir.Node | None], strays: dict[ir.Node, set[Scope]]
) -> set[Scope]:
    """The scopes of nodes; in the place of a stray, those that are nearest to it."""
    there = (node for node in nodes if node is not None)
    return {s for node in there for s in strays.get(node, {scope_of(node)})} - {()}


def _inside(scopes: list[Scope]) -> Scope:
    """The deepest module that two of them share; () for a list, which has no body.

    Of several as deep it is the first by name, whatever order sets have.
    """
    found: Scope = ()
    by_name = sorted(scopes, key=lambda scope: [(e.name, e.kind) for e in scope])
    for one, other in pairwise(by_name):  # neighbours share the most
        shared = _common(one, other)
        between = one[len(shared) : len(shared) + 1]
        if len(shared) > len(found) and not any(e.name.isdigit() for e in between):
            found = shared
    return found


def _has_product(group: list[ir.Node]) -> bool:
    """Whether it is attention whose projection lost its name as well."""
    kinds = {node.op_type for node in group}
    return {"Attention", "MatMul"} <= kinds and not any(map(scope_of, group))


def _before_bias(node: ir.Node) -> Scope:
    """The module whose bias is added to a product: they are a layer together.

    A quantizer's product of integers is brought to its scale before.
    """
    if node.op_type not in _PRODUCTS:
        return ()
    readers = {user for output in node.outputs for user, _ in output.uses()}
    if len(readers) != 1:
        return ()
    (reader,) = readers
    if reader.op_type == "Add":
        has_bias = any(_parameter(value) is not None for value in reader.inputs)
        return scope_of(reader) if has_bias else ()
    return _before_bias(reader) if node.op_type != "MatMul" else ()


def _parameter(value: ir.Value | None) -> ir.Value | None:
    """The initializer, also behind the Reshape of a quantized convolution's bias."""
    maker = None if value is None else value.producer()
    if maker is not None and maker.op_type == "Reshape":
        value = maker.inputs[0]
    return value if value is not None and value.is_initializer() else None


class _Known:
    """The scopes that the file still tells of."""

    def __init__(self, model: ir.Model):
        self.kinds: dict[tuple[str, ...], str] = {}
        self.inside: dict[tuple[str, ...], int] = {}
        self.bodies: set[tuple[str, ...]] = set()
        for node in model.graph:
            names = level_names(scope_of(node))
            for depth, level in enumerate(scope_of(node), 1):
                self.kinds[names[:depth]] = level.kind
                self.inside[names[:depth]] = self.inside.get(names[:depth], 0) + 1
                if depth < len(names) or node.op_type in _OF_BODIES:
                    self.bodies.add(names[:depth])

    def by_weight(self, node: ir.Node) -> Scope:
        """The module that a norm's, a table's or a bias's name tells of."""
        for value in node.inputs:
            value = _parameter(value)
            if value is None or value.is_graph_input():
                continue
            path = tuple((value.name or "").split(".")[:-1])
            if path and all(part.isidentifier() or part.isdigit() for part in path):
                return self._scope(path)
        return ()

    def _scope(self, path: tuple[str, ...]) -> Scope:
        return tuple(
            Level(name, self.kinds.get(path[:depth], ""))
            for depth, name in enumerate(path, 1)
        )

    def between(self, node: ir.Node) -> Scope:
        """The deepest module that two of a node's neighbours share."""
        found = list(_neighbours([node]))
        if len(found) == 1:
            return found[0][:-1]
        shared = [_common(one, other) for one, other in combinations(found, 2)]
        return max(shared, key=len, default=())

    def of_layer(self, node: ir.Node, before: Set[Scope], behind: Set[Scope]) -> Scope:
        """The module of a layer without bias: the deeper one of what is around it.

        Norms and activations are beside it, in the module that they are part of.
        """
        weight = node.inputs[1] if node.op_type in _LAYERS else None
        if weight is None or not weight.is_initializer():
            return ()
        modules = [self._body(scope) for scope in (*before, *behind)]
        modules.sort(key=len, reverse=True)
        deepest = [scope for scope in modules if len(scope) == len(modules[0])]
        return deepest[0] if len({level_names(scope) for scope in deepest}) == 1 else ()

    def _body(self, scope: Scope) -> Scope:
        while scope and level_names(scope) not in self.bodies:
            scope = scope[:-1]
        return scope

    def around(self, group: list[ir.Node]) -> Scope:
        """The module whose layer reads what a group makes; larger if it is alone."""
        readers = _neighbours(group, before=False)
        if not readers:
            return ()
        scope = readers[0][:-1]
        while len(scope) > 1:
            names = level_names(scope)
            if self.inside.get(names[:-1]) != self.inside.get(names):
                break
            scope = scope[:-1]
        return scope


def _around(node: ir.Node) -> tuple[Set[Scope], Set[Scope]]:
    """The scopes of what a node reads, and of what reads it."""
    return _nearest({*node.predecessors()}, {}), _nearest({*node.successors()}, {})


def _neighbours(group: list[ir.Node], before: bool = True) -> list[Scope]:
    """The scopes of the nodes that a group reads of, and of those that read it."""
    around: list[ir.Node | None] = []
    for node in group:
        if before:
            around += [value.producer() for value in node.inputs if value is not None]
        around += [user for output in node.outputs for user, _ in output.uses()]
    others = [node for node in around if node is not None and node not in group]
    return [scope for scope in map(scope_of, others) if scope]


def _common(one: Scope, other: Scope) -> Scope:
    depth = 0
    for a, b in zip(one, other, strict=False):
        if a.name != b.name:
            break
        depth += 1
    return one[:depth]
