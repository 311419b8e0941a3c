"""Merge the split directions of a bidirectional layer: joined outputs, or last states.

tf2onnx takes the directions of y (T, D, N, H) apart for Keras' Bidirectional: a Concat
of their features joins them again, or all that is read is the row where each ends.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import axes_of
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.recurrent.layer import STATES, instead, joins

_BOTH = 2
_JOINED = (0, 2, 1, 3)
"""(T, D, N, H) as (T, N, D, H)."""


def join_directions(model: ir.Model, node: ir.Node) -> bool:
    """Read the directions from the node's results where slices take them apart."""
    if not _is_whole(node):
        return False
    changed = False
    apart = list(_taken(node.outputs[0], axis=1, size=_BOTH))
    for place, every in apart:
        end = -1 if place == 0 else 0
        for row, result in list(_taken(every, axis=0, size=_size(every))):
            if row == end:
                _replace(result, [_state(model, node.outputs[1], place)])
                changed = True
    for place, every in apart:
        others = [value for at, value in apart if at != place]
        for user, _ in list(every.uses()) if place == 0 else ():
            if joins(user, [every], others):
                _replace(user.outputs[0], _all(model, user, node.outputs[0]))
                changed = True
    for _, every in apart:
        _drop(every)
    return changed


def _is_whole(node: ir.Node) -> bool:
    """Whether both directions run through the whole sequence, and tell their ends."""
    both = g.attribute(node, "direction", "forward") == "bidirectional"
    plain = (
        not g.attribute(node, "layout", 0) and (*node.inputs, *[None] * 5)[4] is None
    )
    return both and plain and len(node.outputs) > 1


def _size(value: ir.Value) -> int | None:
    size = None if value.shape is None else value.shape[0]
    return size if isinstance(size, int) else None


def _taken(
    value: ir.Value, axis: int, size: int | None
) -> Iterator[tuple[int, ir.Value]]:
    """What is one element along an axis, without it, and which: -1 is the last one."""
    for user in dict.fromkeys(user for user, _ in value.uses()):
        if user.graph is not _graph(value) or user.domain:
            continue
        row = _row(user, axis, size)
        if row is None or user.inputs[0] is not value:
            continue
        if user.op_type == "Gather":
            yield row, user.outputs[0]
            continue
        for reader in dict.fromkeys(reader for reader, _ in user.outputs[0].uses()):
            squeezes = reader.op_type == "Squeeze" and not reader.domain
            if squeezes and axes_of(reader, g.integers) == [axis]:
                yield row, reader.outputs[0]


def _graph(value: ir.Value) -> object:
    maker = value.producer()
    return None if maker is None else maker.graph


def _row(node: ir.Node, axis: int, size: int | None) -> int | None:
    """Which row a Slice or a Gather takes; the last one of a known time is -1."""
    if node.op_type == "Gather":
        index = g.constant(node.inputs[1])
        single = index is not None and not len(index.shape)
        if not single or g.attribute(node, "axis", 0) != axis or index is None:
            return None
        return _from_the_end(int(index.numpy()), axis, size)
    cut = g.cut_of(node)
    if cut is None or cut[3:] != (axis, 1):
        return None
    start, stop = cut[1:3]
    if size is not None:
        start, stop = (n + size if n < 0 else min(n, size) for n in (start, stop))
        one = 0 <= start < size and stop == start + 1
    else:
        one = (start, stop) == (0, 1) or (start == -1 and stop > np.iinfo("i4").max - 1)
    return _from_the_end(start, axis, size) if one else None


def _from_the_end(row: int, axis: int, size: int | None) -> int:
    """A direction counts from 0; the last of several steps is -1."""
    if size is None:
        return row
    row %= size
    return -1 if axis == 0 and row == size - 1 and row else row


def _state(model: ir.Model, states: ir.Value, place: int) -> ir.Node:
    at = g.new_constant(model, "direction", np.array(place))
    states.name = states.name or f"{at.name}/states"  # an output that nobody asked for
    return ir.node("Gather", [states, at], {"axis": 0})


def _all(model: ir.Model, joined: ir.Node, y: ir.Value) -> list[ir.Node]:
    turned = ir.node("Transpose", [y], {"perm": list(_JOINED)})
    turned.outputs[0].type = y.type
    if y.shape is not None:
        turned.outputs[0].shape = ir.Shape([y.shape[axis] for axis in _JOINED])
    sizes = g.new_constant(model, joined.name or "joined", [0, 0, -1])
    return [turned, ir.node("Reshape", [turned.outputs[0], sizes])]


def _replace(old: ir.Value, nodes: list[ir.Node]) -> None:
    """Replace the node that makes a value."""
    maker = g.unwrap(old.producer())
    g.before(maker, *nodes)
    new = nodes[-1].outputs[0]
    new.type, new.shape = old.type, old.shape
    instead(old, new)
    _drop(old)


def _drop(value: ir.Value) -> None:
    """Remove dead code from a value down to the recurrent layer."""
    maker = value.producer()
    if maker is None or maker.op_type in STATES or maker.graph is None:
        return
    if value.uses() or value.is_graph_output():
        return
    sources = list(maker.inputs[:2])
    g.owner(maker).remove(maker, safe=True)
    for source in sources:
        if source is not None:
            _drop(source)
