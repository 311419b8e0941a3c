"""Loops over a recurrent cell become RNN, GRU or LSTM nodes.

TensorFlow's exporter knows some layers; others of Keras come as a Loop that reads x[i],
updates the last state, an LSTM's two, and collects the states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops import Trait, having
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.constants.partial import Evaluator, Unknown, before
from burnish.codegen.passes.recurrent.cells import Cell, cell_of
from burnish.codegen.passes.recurrent.written import written

_MONOTONE = {"Add", "And", "Cast", "Greater", "GreaterOrEqual", "Identity", "Less"}
_MONOTONE |= {"LessOrEqual", "Not"}
_MOVES = having(Trait.VIEW | Trait.SELECTION) | {"Cast", "Concat", "Shape"}
"""They take sizes as they are: a number that follows two lengths is the length."""


_WHOLE = (ir.DataType.INT32, ir.DataType.INT64)


@dataclass
class _Loop:
    """A Loop by the roles of its loop-carried values.

    outer: what stays the same, by its name inside. counters: whole numbers that grow by
    one. states: the places of the other values: h, or h and c.
    """

    node: ir.Node
    body: ir.Graph
    outer: dict[ir.Value, ir.Value]
    counters: dict[ir.Value, int]
    states: tuple[int, ...]


def recurrent_loops(model: ir.Model, account: Account) -> bool:
    """Write every Loop that is a recurrent layer as that layer."""
    rewrites = {"loop that is a recurrent layer": _rewritten}
    return g.rewrite_nodes(model, account, rewrites, "Loop")


def _rewritten(model: ir.Model, node: ir.Node) -> bool:
    found = _layer(model, node)
    if found is not None:
        _write(model, *found)
    return found is not None


def _layer(model: ir.Model, node: ir.Node) -> tuple[_Loop, ir.Value, Cell] | None:
    """The loop, the sequence that it reads and the cell, if it is a layer."""
    run = Evaluator(model.opset_imports.get("", 17))
    loop = _loop(node, run)
    reads = None if loop is None else _reading(loop)
    if loop is None or reads is None:
        return None
    read = reads.inputs[0]
    sequence = None if read is None else loop.outer.get(read, read)
    if sequence is None or not _runs_through(loop, sequence, run):
        return None
    for places in permutations(loop.states):
        ordered = replace(loop, states=places)
        cell = _cell(ordered, reads.outputs[0], run)
        if cell is not None:
            return ordered, sequence, cell
    return None


def _cell(loop: _Loop, read: ir.Value, run: Evaluator) -> Cell | None:
    """The cell that the body is for its states in this order, its output first."""
    node, body = loop.node, loop.body
    inside = [body.inputs[2 + place] for place in loop.states]
    results = [body.outputs[1 + place] for place in loop.states]
    scans = body.outputs[len(node.inputs) - 1 :]
    output = g.behind_identities(results[0])
    if any(g.behind_identities(scan) is not output for scan in scans):
        return None
    held = _constants(loop, results, {*inside, read})
    start = node.inputs[2 + loop.states[0]]
    dims = inside[0].shape or (None if start is None else start.shape)
    size = None if dims is None or len(dims) != 2 else dims[1]
    if held is None or not isinstance(size, int):
        return None

    def step(x: np.ndarray, *states: np.ndarray) -> list[np.ndarray]:
        given = {**dict(zip(inside, states, strict=True)), read: x, **held}
        return [run(result, given) for result in results]

    floats = [a for a in held.values() if a.size > 1 and a.dtype.kind == "f"]
    return cell_of(step, floats, size, len(inside))


def _loop(node: ir.Node, run: Evaluator) -> _Loop | None:
    body = node.attributes["body"].as_graph()
    outer: dict[ir.Value, ir.Value] = {}
    counters: dict[ir.Value, int] = {}
    states = []
    for place, start in enumerate(node.inputs[2:]):
        inside, result = body.inputs[2 + place], body.outputs[1 + place]
        left = node.outputs[place]
        if not inside.uses() and not left.uses() and not left.is_graph_output():
            continue
        if g.behind_identities(result) is inside and start is not None:
            if left.is_graph_output():
                return None
            outer[inside] = start
        elif (first := g.integers(start)) is not None and len(first) == 1:
            if left.uses() or left.is_graph_output():
                return None
            if not _counts(inside, result, run):
                return None
            counters[inside] = first[0]
        else:
            states.append(place)
    if len(states) not in (1, 2):
        return None
    return _Loop(node, body, outer, counters, tuple(states))


def _counts(inside: ir.Value, result: ir.Value, run: Evaluator) -> bool:
    """Whether the value grows by one at each step."""
    try:
        given = [np.array(i, _numpy(inside)) for i in (0, 5)]
        found = [run(result, {inside: number}) for number in given]
    except Unknown:
        return False
    return [n.item() for n in found if n.size == 1] == [1, 6]


def _reading(loop: _Loop) -> ir.Node | None:
    """The one node that takes the element of a sequence whose turn it is."""
    firsts = [value for value, start in loop.counters.items() if start == 0]
    turns = {loop.body.inputs[0], *firsts}
    found = [
        node
        for node in loop.body
        if node.op_type == "Gather" and node.inputs[1] in turns and not node.domain
    ]
    if len(found) != 1 or g.attribute(found[0], "axis", 0) != 0:
        return None
    return found[0]


def _runs_through(loop: _Loop, sequence: ir.Value, run: Evaluator) -> bool:
    """Whether there is a step for each element of the sequence, and no other."""
    if sequence.shape is None or len(sequence.shape) != 3:
        return False
    count = sequence.shape[0]
    if not isinstance(count, int):
        return _counts_to(loop, sequence, run)
    if count < 1:
        return False
    try:
        limit, going = (None if v is None else run(v, {}) for v in loop.node.inputs[:2])
        if going is not None and not going.item():
            return False
        continues = [
            _continues(loop, i, run, {})
            for i in sorted({0, max(count - 2, 0), count - 1})
        ]
    except Unknown:
        return False
    most = None if limit is None else int(limit.item())
    if most is not None and most < count:
        return False
    return all(continues[:-1]) and (most == count or not continues[-1])


def _counts_to(loop: _Loop, sequence: ir.Value, run: Evaluator) -> bool:
    """Whether the loop ends with the sequence, whose length is no number yet.

    Its limit and what its condition reads are computed for several lengths, from the
    sizes that have the same name. The last one is beyond a bound of the loop's own.
    """
    if sequence.shape is None or str(sequence.shape[0]) == "None":
        return False
    length = str(sequence.shape[0])
    limit, going = loop.node.inputs[:2]
    always = loop.body.outputs[0] is loop.body.inputs[1]
    try:
        for count in (1, 7, 1 << 20):
            known = _sizes([] if limit is None else [limit], length, count)
            if known is None:
                return False
            most = None if limit is None else run(limit, known, _MOVES).item()
            if most is not None and most < count:
                return False
            if always and going is None:
                if most != count:
                    return False
            elif not _ends_at(loop, length, count, run):
                return False
    except Unknown:
        return False
    return True


def _ends_at(loop: _Loop, length: str, count: int, run: Evaluator) -> bool:
    """Whether the condition holds for so many steps, where the length is as many."""
    going, goes = loop.node.inputs[1], loop.body.outputs[0]
    numbers = {v: start for v, start in loop.outer.items() if start.dtype in _WHOLE}
    read = [goes, *numbers.values(), *([] if going is None else [going])]
    known = _sizes(read, length, count)
    if known is None:
        return False
    outside = [n for n in before(goes, known) if n.graph is not loop.body]
    numbers |= {v: v for node in outside for v in node.outputs}
    if going is not None and not run(going, known, _MOVES | _MONOTONE).item():
        return False
    outer = {inside: run(start, known, _MOVES) for inside, start in numbers.items()}
    steps = sorted({0, max(count - 2, 0), count - 1})
    continues = [_continues(loop, i, run, outer) for i in steps]
    return all(continues[:-1]) and not continues[-1]


def _sizes(
    values: Sequence[ir.Value], length: str, count: int
) -> dict[ir.Value, np.ndarray] | None:
    """What the Shape nodes before these values give, where the length is so many."""
    known = {}
    for node in (n for value in values for n in before(value, {})):
        if node.op_type != "Shape" or node.domain:
            continue
        dims = None if node.inputs[0] is None else node.inputs[0].shape
        if dims is None:
            return None
        sizes = [count if str(size) == length else size for size in dims]
        held = node.attributes
        part = slice(held.get_int("start", 0), held.get_int("end", len(sizes)))
        known[node.outputs[0]] = np.array(
            [size if isinstance(size, int) else -1 for size in sizes[part]],
            np.int64,
        )
    return known


def _continues(
    loop: _Loop, step: int, run: Evaluator, outer: Mapping[ir.Value, np.ndarray]
) -> bool:
    """Whether another step follows; it must not once it has not.

    outer: the sizes that the steps read.
    """
    known = {v: np.array(start + step, np.int64) for v, start in loop.counters.items()}
    known[loop.body.inputs[0]] = np.array(step, np.int64)
    known |= {v: n.astype(_numpy(v)) for v, n in known.items()}
    for inside, start in loop.outer.items():
        if (tensor := g.constant(start)) is not None and tensor.size == 1:
            known[inside] = tensor.numpy()
    known |= outer
    known[loop.body.inputs[1]] = np.array(True)
    return bool(run(loop.body.outputs[0], known, _MONOTONE).item())


def _numpy(value: ir.Value) -> np.dtype:
    return np.dtype(np.int64 if value.dtype is None else value.dtype.numpy())


def _constants(
    loop: _Loop, results: list[ir.Value], given: set[ir.Value]
) -> dict[ir.Value, np.ndarray] | None:
    """The constants that a step reads, if its other operands are the given ones."""
    found: dict[ir.Value, np.ndarray] = {}
    seen, waiting = set(given), list(results)
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        tensor = g.constant(loop.outer.get(value, value))
        if tensor is not None:
            found[value] = tensor.numpy()
            continue
        maker = value.producer()
        if maker is None or maker.graph is not loop.body or maker.domain:
            return None
        waiting += [v for v in maker.inputs if v is not None]
    return found


# --- rewriting ---


def _write(model: ir.Model, loop: _Loop, sequence: ir.Value, cell: Cell) -> None:
    """Replace the loop by the layer, with the same initial state."""
    node = loop.node
    scans = node.outputs[len(node.inputs) - 2 :]
    starts = [v for p in loop.states if (v := node.inputs[2 + p]) is not None]
    assert len(starts) == len(loop.states)
    made = written(model, node, sequence, cell, starts)
    for place, output in enumerate(node.outputs[: len(node.inputs) - 2]):
        inside = loop.body.inputs[2 + place]
        if inside in loop.outer:
            ir.convenience.replace_all_uses_with(output, loop.outer[inside])
    old = [*scans, *(node.outputs[place] for place in loop.states)]
    new = [*([made.every] * len(scans)), *made.ends]
    for one, other in zip(old, new, strict=True):
        _note(model, one, other)
    owner = g.owner(node)
    ir.convenience.replace_nodes_and_values(owner, node, [node], made.nodes, old, new)


def _note(model: ir.Model, old: ir.Value, new: ir.Value) -> None:
    """Sizes of a loop's results that were not known are known now, everywhere."""
    if old.shape is None or new.shape is None or len(old.shape) != len(new.shape):
        return
    pairs = zip(old.shape, new.shape, strict=True)
    names = {dim.value: size for dim, size in pairs if isinstance(dim, ir.SymbolicDim)}
    names.pop(None, None)
    old.shape = None
    for node in g.all_nodes(model) if names else ():
        for value in node.outputs:
            if value.shape is not None and not value.shape.is_static():
                value.shape = ir.Shape(
                    names.get(dim.value, dim)
                    if isinstance(dim, ir.SymbolicDim)
                    else dim
                    for dim in value.shape
                )
