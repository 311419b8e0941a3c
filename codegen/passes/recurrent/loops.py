"""Loops over a recurrent cell become RNN or GRU nodes.

TensorFlow's exporter knows the LSTM; Keras' GRU and SimpleRNN come as a Loop that reads
x[i], updates the last state and collects the states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.constants.partial import Evaluator, Unknown
from burnish.codegen.passes.recurrent.cells import Cell, cell_of

_MONOTONE = {"Add", "And", "Cast", "Greater", "GreaterOrEqual", "Identity", "Less"}
_MONOTONE |= {"LessOrEqual", "Not"}


@dataclass
class _Loop:
    """A Loop by the roles of its loop-carried values.

    outer: what stays the same, by its name inside. counters: whole numbers that grow by
    one. state: the place of the one other value.
    """

    node: ir.Node
    body: ir.Graph
    outer: dict[ir.Value, ir.Value]
    counters: dict[ir.Value, int]
    state: int


def recurrent_loops(model: ir.Model, account: Account) -> bool:
    """Write every Loop that is a recurrent layer as that layer."""
    changed = False
    for node in g.all_nodes(model):
        if node.op_type == "Loop" and not node.domain and node.graph is not None:
            found = _layer(model, node)
            if found is None:
                continue
            _write(model, *found)
            account.did("loop that is a recurrent layer", g.label(node))
            changed = True
    return changed


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
    inside, result = loop.body.inputs[2 + loop.state], loop.body.outputs[1 + loop.state]
    scans = loop.body.outputs[len(node.inputs) - 1 :]
    if len(scans) > 1 or any(
        g.behind_identities(s) is not g.behind_identities(result) for s in scans
    ):
        return None
    held = _constants(loop, result, {inside, reads.outputs[0]})
    start = node.inputs[2 + loop.state]
    dims = inside.shape or (None if start is None else start.shape)
    size = None if dims is None or len(dims) != 2 else dims[1]
    if held is None or not isinstance(size, int):
        return None

    def step(x: np.ndarray, h: np.ndarray) -> np.ndarray:
        return run(result, {inside: h, reads.outputs[0]: x, **held})

    floats = [a for a in held.values() if a.size > 1 and a.dtype.kind == "f"]
    cell = cell_of(step, floats, size)
    return None if cell is None else (loop, sequence, cell)


def _loop(node: ir.Node, run: Evaluator) -> _Loop | None:
    body = node.attributes["body"].as_graph()
    outer: dict[ir.Value, ir.Value] = {}
    counters: dict[ir.Value, int] = {}
    states = []
    for place, start in enumerate(node.inputs[2:]):
        inside, result = body.inputs[2 + place], body.outputs[1 + place]
        if g.behind_identities(result) is inside and start is not None:
            outer[inside] = start
        elif (first := g.integers(start)) is not None and len(first) == 1:
            if node.outputs[place].uses() or not _counts(inside, result, run):
                return None
            counters[inside] = first[0]
        else:
            states.append(place)
    if len(states) != 1:
        return None
    return _Loop(node, body, outer, counters, states[0])


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
    if not isinstance(count, int) or count < 1:
        return False
    try:
        limit, going = (None if v is None else run(v, {}) for v in loop.node.inputs[:2])
        if going is not None and not going.item():
            return False
        continues = [
            _continues(loop, i, run) for i in sorted({0, max(count - 2, 0), count - 1})
        ]
    except Unknown:
        return False
    most = None if limit is None else int(limit.item())
    if most is not None and most < count:
        return False
    return all(continues[:-1]) and (most == count or not continues[-1])


def _continues(loop: _Loop, step: int, run: Evaluator) -> bool:
    """Whether another step follows; it must not once it has not."""
    known = {v: np.array(start + step, np.int64) for v, start in loop.counters.items()}
    known[loop.body.inputs[0]] = np.array(step, np.int64)
    known |= {v: n.astype(_numpy(v)) for v, n in known.items()}
    for inside, start in loop.outer.items():
        if (tensor := g.constant(start)) is not None and tensor.size == 1:
            known[inside] = tensor.numpy()
    known[loop.body.inputs[1]] = np.array(True)
    return bool(run(loop.body.outputs[0], known, _MONOTONE).item())


def _numpy(value: ir.Value) -> np.dtype:
    return np.dtype(np.int64 if value.dtype is None else value.dtype.numpy())


def _constants(
    loop: _Loop, result: ir.Value, given: set[ir.Value]
) -> dict[ir.Value, np.ndarray] | None:
    """The constants that a step reads, if its other operands are the given ones."""
    found: dict[ir.Value, np.ndarray] = {}
    seen, waiting = set(given), [result]
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


def _axes_node(kind: str, value: ir.Value, axes: ir.Value, name: str) -> ir.Node:
    """Squeeze or Unsqueeze with its axes as an input, which the file's may not have."""
    return ir.Node("", kind, [value, axes], name=name, version=13)


def _write(model: ir.Model, loop: _Loop, sequence: ir.Value, cell: Cell) -> None:
    """Replace the loop by the layer, with the same initial state."""
    node, state = loop.node, loop.state
    start, last = node.inputs[2 + state], node.outputs[state]
    assert start is not None
    states = node.outputs[len(node.inputs) - 2 :]
    first, second = (g.new_constant(model, "axes", [n]) for n in (0, 1))
    begin = _axes_node("Unsqueeze", start, first, f"{node.name}_start")
    inputs = [sequence, *_weights(model, node, cell), None, begin.outputs[0]]
    made = ir.node(cell.kind, inputs, _options(cell), num_outputs=2, name=node.name)
    every = _axes_node("Squeeze", made.outputs[0], second, f"{node.name}_all")
    end = _axes_node("Squeeze", made.outputs[1], first, f"{node.name}_last")
    nodes = [begin, made, every, end]
    assert sequence.shape is not None
    time, batch, _ = sequence.shape
    shapes = {
        begin: [1, batch, cell.size],
        made: [time, 1, batch, cell.size],
        every: [time, batch, cell.size],
        end: [batch, cell.size],
    }
    for each in nodes:
        each.metadata_props.update(node.metadata_props)
        each.outputs[0].type = sequence.type
        each.outputs[0].shape = ir.Shape(shapes[each])
    made.outputs[1].type = sequence.type
    made.outputs[1].shape = ir.Shape(shapes[begin])
    for place, output in enumerate(node.outputs[: len(node.inputs) - 2]):
        inside = loop.body.inputs[2 + place]
        if inside in loop.outer:
            ir.convenience.replace_all_uses_with(output, loop.outer[inside])
    new = [*([every.outputs[0]] * len(states)), end.outputs[0]]
    for old, value in zip((*states, last), new, strict=True):
        _note(model, old, value)
    ir.convenience.replace_nodes_and_values(
        g.owner(node), node, [node], nodes, [*states, last], new
    )


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


def _weights(model: ir.Model, node: ir.Node, cell: Cell) -> list[ir.Value | None]:
    def weight(name: str, array: np.ndarray | None) -> ir.Value | None:
        if array is None:
            return None
        like = ir.Value(name=f"{node.name}/{name}__0")
        tensor = ir.tensor(np.ascontiguousarray(array))
        return g.initializer(model, like, tensor, trains=True)

    return [weight("W", cell.W), weight("R", cell.R), weight("B", cell.B)]


def _options(cell: Cell) -> dict[str, int | list[str]]:
    options: dict[str, int | list[str]] = {"hidden_size": cell.size}
    if cell.linear_before_reset:
        options["linear_before_reset"] = 1
    if cell.activation != "Tanh":
        options["activations"] = [cell.activation]
    return options
