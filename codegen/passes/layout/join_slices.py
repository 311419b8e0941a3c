"""Apply layers once to a whole axis instead of slice by slice with a Concat.

Keras' TimeDistributed of a known length comes unrolled: a Slice and a Squeeze for each
step, the same layer on every one, and a Concat of what comes out. A layer that works on
the last axis, or on each element, gives the same numbers for the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops import Trait, having
from burnish.codegen.ops.shapes.dims import declared, numbers
from burnish.codegen.passes import graph as g

_LEAST = 3
"""Two steps are more often a pair, such as both inputs of a siamese network."""
_ELEMENTWISE = having(Trait.ELEMENTWISE | Trait.BROADCAST)
_LAYERS = having(Trait.PRODUCT)


@dataclass
class _Step:
    """The computation on one slice of x: elements along the axis, from `index` on."""

    x: ir.Value
    axis: int
    index: int
    nodes: list[ir.Node]


def join_slices(model: ir.Model, account: Account) -> bool:
    """Run the nodes between Slices and their Concat once, on the whole axis."""
    rewrites = {"layers on each slice joined": _joined}
    return g.rewrite_nodes(model, account, rewrites, "Concat")


def _joined(_model: ir.Model, node: ir.Node) -> bool:
    if len(node.inputs) < _LEAST:
        return False
    first, *others = (_step(node, value) for value in node.inputs)
    if first is None or not _are_all(first, [first, *others]):
        return False
    _write(node, first)
    return True


def _step(concat: ir.Node, value: ir.Value | None) -> _Step | None:
    """The step behind a Concat's input: a slice, then layers; None for others."""
    grow = g.made_for(concat, value)
    if grow is None or grow.op_type != "Unsqueeze" or grow.domain:
        return None
    rank = len(concat.outputs[0].shape or ())
    if _axes(grow, rank) != _axes(concat, rank):
        return None
    nodes: list[ir.Node] = []
    node = g.made_for(concat, grow.inputs[0])
    while node is not None and node.op_type != "Squeeze":
        if not _works_on_the_last_axis(node):
            return None
        nodes.insert(0, node)
        node = g.made_for(concat, node.inputs[0])
    cut = None if node is None else g.made_for(concat, node.inputs[0])
    if node is None or cut is None or cut.op_type != "Slice" or not nodes:
        return None
    return _cut(cut, _axes(node, rank), nodes)


def _cut(
    cut: ir.Node, squeezed: list[int] | None, nodes: list[ir.Node]
) -> _Step | None:
    """The step of one element along one axis, which is not the last."""
    found, sizes = g.cut_of(cut), declared(cut.inputs[0])
    if found is None or not sizes:
        return None
    x, start, stop, axis, step = found
    axis %= len(sizes)
    whole = numbers(sizes[axis : axis + 1])
    if squeezed != [axis] or axis == len(sizes) - 1 or not whole:
        return None
    start, stop = (min(n + whole[0] if n < 0 else n, whole[0]) for n in (start, stop))
    return _Step(x, axis, start, nodes) if (stop, step) == (start + 1, 1) else None


def _axes(node: ir.Node, rank: int) -> list[int] | None:
    """The axes of a Concat, Squeeze or Unsqueeze among `rank`."""
    if node.op_type == "Concat":
        axes = [node.attributes.get_int("axis", 0)]
    else:
        axes = g.integers((*node.inputs, None)[1]) or []
    return [axis % rank for axis in axes] if axes and rank else None


def _works_on_the_last_axis(node: ir.Node) -> bool:
    """Whether one more axis in front of its input's last leaves its numbers alone."""
    held = [g.constant(value) for value in node.inputs[1:] if value is not None]
    if any(tensor is None for tensor in held) or node.domain not in ("", "burnish"):
        return False
    ranks = [len(tensor.shape) for tensor in held if tensor is not None]
    if node.op_type in _LAYERS:
        plain = all(g.attribute(node, name, 1) == 1 for name in ("alpha", "beta"))
        return plain and not g.attribute(node, "transA", 0) and ranks in ([2], [2, 1])
    return node.op_type in _ELEMENTWISE and all(rank < 2 for rank in ranks)


def _are_all(first: _Step, steps: list[_Step | None]) -> bool:
    """Whether they are the same for each place of the axis, in order."""
    if numbers((declared(first.x) or [])[first.axis : first.axis + 1]) != [len(steps)]:
        return False
    return all(
        step is not None
        and step.x is first.x
        and (step.axis, step.index) == (first.axis, place)
        and list(map(_form, step.nodes)) == list(map(_form, first.nodes))
        for place, step in enumerate(steps)
    )


def _form(node: ir.Node) -> tuple[object, ...]:
    attributes = {name: a.value for name, a in node.attributes.items()}
    return node.domain, node.op_type, node.inputs[1:], attributes


def _write(concat: ir.Node, step: _Step) -> None:
    """Apply the step's nodes to all of x, and replace the Concat."""
    value, made = step.x, []
    for node in step.nodes:
        gemm = node.op_type == "Gemm"  # which takes matrices alone
        kept = [
            attribute
            for name, attribute in node.attributes.items()
            if not gemm or name == "transB"
        ]
        domain, kind = ("burnish", "Linear") if gemm else (node.domain, node.op_type)
        again = ir.Node(domain, kind, [value, *node.inputs[1:]], kept)
        g.named_like(again, node)
        before, after = value.shape, node.outputs[0].shape
        if before is not None and after is not None:
            dims = [*list(before)[:-1], list(after)[-1]]
            again.outputs[0].shape = ir.Shape(dims)
        again.outputs[0].type = node.outputs[0].type
        value = again.outputs[0]
        made.append(again)
    axis, rank = concat.attributes.get_int("axis", 0), len(step.x.shape or ())
    order = [i for i in range(rank) if i != step.axis]
    order.insert(axis % rank, step.axis)
    if order != list(range(rank)):
        made.append(ir.Node("", "Transpose", [value], [ir.AttrInt64s("perm", order)]))
    old, end = concat.outputs[0], made[-1].outputs[0]
    end.shape, end.type = old.shape, old.type
    g.substitute(concat, made)
