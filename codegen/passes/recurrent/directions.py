"""Merge a recurrent layer with one that reads the same sequence backwards.

Keras' Bidirectional is two layers: the second one reads the reversed sequence, and what
it returns is reversed again. Together they are one layer of two directions, (T, N, H)
each and (T, N, 2 * H) both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import axes_of
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.recurrent.layer import (
    SWAP,
    instead,
    joins,
    perm,
    recurrent,
    swap,
    swapped,
)
from burnish.codegen.passes.recurrent.parts import (
    are_alike,
    depth_of,
    directions_of,
    is_layer,
    joined_states,
    options_of,
    part_states,
    states_of,
    weights_of,
)

_Sequence = tuple[ir.Value, bool]
"""A value, and whether its first axis is the batch: time is the second one then."""


def merge_directions(model: ir.Model, nodes: list[ir.Node]) -> Iterator[ir.Node]:
    """Replace each pair of layers by one of both directions."""
    single = [n for n in nodes if is_layer(n) and directions_of(n) == depth_of(n) == 1]
    while (pair := _pair(single)) is not None:
        yield _merge(model, *pair)
        single = [node for node in single if node not in pair[:2]]


# --- checks ---


def _pair(nodes: list[ir.Node]) -> tuple[ir.Node, ir.Node, list[_Sequence]] | None:
    """A layer, one that reads its sequence backwards, and what is read of that one."""
    forwards: dict[_Sequence, list[ir.Node]] = defaultdict(list)
    for node in nodes:
        forwards[_unswapped(node.inputs[0], False)].append(node)
    for other in nodes:
        source, by_batch = _unswapped(other.inputs[0], False)
        before = _before_reversal(source, by_batch)
        turned = None if before is None else _reversed_results(other)
        if before is None or turned is None:
            continue
        for node in forwards[_unswapped(before, by_batch)]:
            if are_alike(node, other) and _are_of_one_size(node, other):
                return node, other, turned
    return None


def _unswapped(value: ir.Value | None, by_batch: bool) -> _Sequence:
    """What is before a swap of time and batch, if there is one."""
    assert value is not None
    maker = g.maker_of(value, "Transpose")
    if maker is None or perm(maker) != SWAP or maker.inputs[0] is None:
        return value, by_batch
    return maker.inputs[0], not by_batch


def _before_reversal(value: ir.Value, by_batch: bool) -> ir.Value | None:
    """What a Slice reverses along time."""
    cut, time = g.cut_of(g.maker_of(value)), int(by_batch)
    if cut is None or cut[3] not in (time, time - 3):
        return None
    source, start, stop, _, step = cut
    length = None if source.shape is None else source.shape[time]
    if not isinstance(length, int) or step != -1:
        return None
    return source if start in (-1, length - 1) and stop < -length else None


def _reversed_results(node: ir.Node) -> list[_Sequence] | None:
    """Its results in the sequence's own order; None if others are read too."""
    found: list[_Sequence] = []
    waiting: list[_Sequence] = [(node.outputs[0], False)]
    while waiting:
        value, by_batch = waiting.pop()
        if value.is_graph_output():
            return None
        for user, _ in value.uses():
            result = user.outputs[0]
            if user.graph is not node.graph:
                return None
            if perm(user) == SWAP and not by_batch:
                waiting.append((result, True))
            elif _before_reversal(result, by_batch) is value:
                found.append((result, by_batch))
            else:
                return None
    return found


def _are_of_one_size(node: ir.Node, other: ir.Node) -> bool:
    pairs = zip(weights_of(node), weights_of(other), strict=True)
    return all(g.static_dims(a) == g.static_dims(b) is not None for a, b in pairs)


# --- rewriting ---


def _merge(
    model: ir.Model, node: ir.Node, other: ir.Node, turned: list[_Sequence]
) -> ir.Node:
    weights = [
        _stacked(model, *pair)
        for pair in zip(weights_of(node), weights_of(other), strict=True)
    ]
    both = zip(states_of(node), states_of(other), strict=True)
    states = [joined_states(node, pair) for pair in both]
    attributes = {**options_of(node), "directions": 2}
    made = recurrent(node, [node.inputs[0], *weights, *states], attributes)
    y, shape = made.outputs[0], node.outputs[0].shape
    y.shape = None if shape is None else ir.Shape([*shape[:2], _twice(shape[2])])
    _replace(model, made, node, turned)
    for place in range(1, len(made.outputs)):
        whole = made.outputs[place]
        if whole.shape is not None:
            whole.shape = ir.Shape([2, *whole.shape[1:]])
        parts = [node.outputs[place], other.outputs[place]]
        _take(model, parts, whole)
        part_states(model, parts, whole, [1, 1])
    graph = g.owner(node)
    graph.remove([*_readers(other), other, node], safe=True)
    graph.sort()
    return made


def _twice(size: int | ir.SymbolicDim) -> int | ir.SymbolicDim:
    return size * 2 if isinstance(size, int) else ir.SymbolicDim(None)


def _stacked(model: ir.Model, one: ir.Value | None, two: ir.Value | None) -> ir.Value:
    """The weights of both directions along the first axis, as ONNX has them."""
    held = [tensor.numpy() for v in (one, two) if (tensor := g.constant(v)) is not None]
    assert one is not None
    return g.initializer(model, one, ir.tensor(np.concatenate(held)), trains=True)


def _readers(node: ir.Node) -> list[ir.Node]:
    """The nodes that only pass on its results, which nobody reads any more."""
    found: list[ir.Node] = []
    for user, _ in node.outputs[0].uses():
        found = [*(u for u, _ in user.outputs[0].uses()), user, *found]
    return found


def _take(model: ir.Model, parts: list[ir.Value], whole: ir.Value) -> None:
    """Let who reads the last state of one direction without its axis index it."""
    for place, part in enumerate(parts):
        for user in dict.fromkeys(user for user, _ in part.uses()):
            if user.op_type == "Squeeze" and axes_of(user, g.integers) == [0]:
                at = g.new_constant(model, "direction", np.array(place))
                taken = ir.node("Gather", [whole, at], {"axis": 0}, name=user.name)
                old, new = user.outputs[0], taken.outputs[0]
                new.type, new.shape = old.type, old.shape
                g.owner(user).insert_before(user, taken)
                instead(old, new)
                g.owner(user).remove(user, safe=True)


def _replace(
    model: ir.Model, made: ir.Node, node: ir.Node, turned: list[_Sequence]
) -> None:
    """Let a Concat of both directions read all of y, and others their half."""
    y, first = made.outputs[0], node.outputs[0]
    by_batch = [u.outputs[0] for u, _ in first.uses() if perm(u) == SWAP]
    second: dict[bool, list[ir.Value]] = {False: [], True: []}
    for value, order in turned:
        second[order].append(value)
    wholes = {False: y}
    if by_batch or second[True]:
        wholes[True] = swap(node, y)
        wholes[True].type, wholes[True].shape = y.type, swapped(y.shape)
    for order, whole in wholes.items():
        one = by_batch if order else [first]
        for concat in dict.fromkeys(user for v in one for user, _ in v.uses()):
            if joins(concat, one, second[order]):
                instead(concat.outputs[0], whole)
                g.owner(concat).remove(concat, safe=True)
    if True in wholes:
        _split(model, node, wholes[True], (by_batch, second[True]))
        graph = g.owner(node)
        graph.remove([m for v in by_batch if (m := v.producer())], safe=True)
    _split(model, node, y, ([first], second[False]))


def _split(
    model: ir.Model, node: ir.Node, whole: ir.Value, halves: Iterable[list[ir.Value]]
) -> None:
    """Let who reads one direction read its half of the features."""
    size = (g.static_dims(node.inputs[2]) or (0,))[-1]
    if not any(v.uses() or v.is_graph_output() for vs in halves for v in vs):
        return
    sizes = g.new_constant(model, "directions", [size, size])
    split = ir.node(
        *("Split", [whole, sizes], {"axis": 2}),
        num_outputs=2,
        version=18,
        name=node.name,
    )
    g.owner(node).insert_before(node, split)
    for part, old in zip(split.outputs, halves, strict=True):
        for value in old:
            part.type, part.shape = value.type, value.shape
            instead(value, part)
