"""Rename axes of several inputs that share a name but need not be equal.

Two towers with a batch "N" each: onnxruntime takes any two sizes. What an elementwise
operator, a layer or control flow brings together keeps one name. So do sequences.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import onnx_ir as ir

from burnish.codegen.errors import Explain
from burnish.codegen.readers import native
from burnish.codegen.readers.inlining.inline import bodies
from burnish.codegen.readers.sizes import shapes
from burnish.codegen.readers.sizes.axes import words
from burnish.codegen.symbolic import transfer
from burnish.codegen.symbolic.known import Checked
from burnish.codegen.symbolic.sizes import Size, parse

_JOINS = ("Concat", "MatMul")
"""Operators whose operands may differ in some axes: the joined or the outer ones."""


def rename_input_axes(model: ir.Model, explain: Explain) -> None:
    """Give axes of independent inputs names of their own, in place.

    Only where inference knows the axes of all that depends on several of them.
    """
    held = model.graph.initializers
    named: dict[str, list[ir.Value]] = defaultdict(list)
    for value in model.graph.inputs:
        if value.name not in held:
            for name in dict.fromkeys(dim.value for dim in _symbols(value)):
                if name:
                    named[name].append(value)
    shared = {
        name: values
        for name, values in named.items()
        if len(values) > 1 and all(map(_is_tensor, values))
    }
    if not shared:
        return
    groups = _Groups(model.graph, {v for values in shared.values() for v in values})
    changes: dict[ir.Value, dict[str, str]] = defaultdict(dict)
    taken = set(_all_words(model))
    for name, values in shared.items():
        news = {groups.of(values[0]): name}
        for value in values:
            if (group := groups.of(value)) not in news:
                tries = (f"{name}_{number}" for number in itertools.count(2))
                news[group] = next(other for other in tries if other not in taken)
                taken.add(news[group])
            if news[group] != name:
                changes[value][name] = news[group]
    if changes and _stay_apart(model, changes, groups.mixed):
        _rename(model, changes)
        for value, renamed in changes.items():
            for name, new in renamed.items():
                explain(f"input {value.name!r}: axis {name!r} may differ, now {new!r}")


class _Groups:
    """The inputs in groups: of one group are those that some operator ties."""

    def __init__(self, graph: ir.Graph, inputs: set[ir.Value]):
        self.parent = {value: value for value in inputs}
        made = {value: frozenset((value,)) for value in inputs}
        several: list[ir.Value] = []
        for node in graph:
            operands = [v for v in _read(node) if v in made]
            sets = {made[v] for v in operands}
            found = {self.of(v) for one in sets for v in one} if sets else set()
            if len(found) > 1 and not _may_differ(node, operands):
                first, *others = sorted(found, key=lambda v: v.name or "")
                self.parent.update(dict.fromkeys(others, first))
                found = {first}
            if found:
                one = next(iter(sets)) if len(sets) == 1 else frozenset(found)
                made.update(dict.fromkeys(node.outputs, one))
                several += node.outputs if len(one) > 1 else ()
        self.mixed = {v.name for v in several if len(set(map(self.of, made[v]))) > 1}

    def of(self, value: ir.Value) -> ir.Value:
        while (parent := self.parent[value]) is not value:
            self.parent[value] = value = self.parent[parent]
        return value


def _may_differ(node: ir.Node, operands: list[ir.Value]) -> bool:
    """Whether the node may take axes of different sizes; `_fits` checks which axes."""
    alone = len(operands) == 1 and next(bodies(node), None) is None
    return node.domain == "" and (alone or node.op_type in _JOINS)


def _read(node: ir.Node) -> Iterator[ir.Value]:
    """The values that a node reads, those of its bodies included."""
    yield from (value for value in node.inputs if value is not None)
    for body in bodies(node):
        for inner in body:
            yield from _read(inner)
        yield from (value for value in body.outputs if value is not None)


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.TensorType)


def _all_words(model: ir.Model) -> Iterator[str]:
    """The names that the sizes of any value are computed from."""
    for graph in model.graphs():
        for value in ir.convenience.create_value_mapping(graph).values():
            for dim in _symbols(value):
                yield from words(dim.value or "")


def _symbols(value: ir.Value) -> list[ir.SymbolicDim]:
    return [dim for dim in value.shape or () if isinstance(dim, ir.SymbolicDim)]


def _stay_apart(
    model: ir.Model,
    changes: dict[ir.Value, dict[str, str]],
    mixed: set[str | None],
) -> bool:
    """Whether no operator needs sizes of different names to be equal."""
    if not mixed:
        return True
    message = shapes.without_weights(model)
    news = {value.name: renamed for value, renamed in changes.items()}
    stale = _mentions(changes)
    for info in message.graph.input:
        renamed = news.get(info.name, {})
        for dim in _dims(info):
            if dim.dim_param in renamed:
                dim.dim_param = renamed[dim.dim_param]
    for info in (*message.graph.value_info, *message.graph.output):
        for dim in _dims(info):
            if stale(dim.dim_param):
                dim.ClearField("dim_param")
    try:
        graph: Any = native.infer_shapes(message, data_prop=True).graph
    except native.NativeError:
        return False
    known = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for info in (*graph.input, *graph.value_info, *graph.output):
        dims = _dims(info)
        declared = all(dim.dim_param or dim.HasField("dim_value") for dim in dims)
        if info.type.tensor_type.HasField("shape") and declared:
            known[info.name] = [dim.dim_param or dim.dim_value for dim in dims]
    joins = (node for node in graph.node if not mixed.isdisjoint(node.output))
    return all(_fits(node, known) for node in joins)


def _dims(info: Any) -> Any:
    return info.type.tensor_type.shape.dim


def _fits(node: Any, known: dict[str, list[Any]]) -> bool:
    """Whether a node's operands agree in the axes that have to be equal."""
    shapes: list[list[Size | None]] = [
        [parse(dim) for dim in known[name]] for name in node.input if name in known
    ]
    if len(shapes) < len(node.input):
        return False
    sizes = Checked()
    if node.op_type == "Concat" and not node.domain:
        (axis,) = (each.i for each in node.attribute if each.name == "axis")
        if transfer.concat(shapes, axis, sizes) is None:
            return False
    elif node.op_type == "MatMul" and not node.domain:
        a, b = shapes
        transfer.matmul(a, b, sizes)
    else:
        transfer.broadcast(shapes, sizes.spread)
    return all(one == other for one, other in sizes.pairs)


def _rename(model: ir.Model, changes: dict[ir.Value, dict[str, str]]) -> None:
    """Set the new names; what the file says of other values in the old is dropped."""
    stale = _mentions(changes)
    inputs = set(model.graph.inputs)
    for graph in model.graphs():
        for value in ir.convenience.create_value_mapping(graph).values():
            if value in inputs or value.shape is None:
                continue
            dims = [None if stale(_word(dim)) else dim for dim in value.shape]
            if None in dims:
                value.shape = ir.Shape(dims)
    for value, renamed in changes.items():
        shape = value.shape or ()
        value.shape = ir.Shape([renamed.get(_word(dim), dim) for dim in shape])


def _word(dim: int | ir.SymbolicDim) -> str:
    return "" if isinstance(dim, int) else dim.value or ""


def _mentions(changes: dict[ir.Value, dict[str, str]]) -> Callable[[str], object]:
    """Whether a size is computed from one of the names that change."""
    names = {name for renamed in changes.values() for name in renamed}
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)").search
