"""One step of an LSTM or a GRU, written out gate by gate, becomes `RecurrentCell`.

PyTorch exports `nn.LSTMCell` and `nn.GRUCell` so, once for each step of the author's
loop. `burnish.RecurrentCell(x, W, R[, b, b'][, h[, c]])` is one step: W (G * H, I) and
R (G * H, H) as PyTorch's cells have them, turned where `transposed` says so; `order`
are the places of PyTorch's gates (i f g o; r z n) among the G blocks of rows. An LSTM's
states are left out where both are zeros.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.recurrent.layer import is_zero
from burnish.codegen.passes.recurrent.step_forms import Product, Step, step_of


def recurrent_steps(model: ir.Model, account: Account) -> bool:
    """Write every step of an LSTM or a GRU as one node."""
    changed = False
    for node in g.all_nodes(model):
        step = None if node.graph is None else step_of(node)
        if step is not None and _fits(step) and _is_apart(step):
            _write(model, step)
            account.did(f"{step.kind} step", g.label(node))
            changed = True
        elif node.op_type == "Shape" and not node.domain and _asks_states(node):
            account.did("shape of a step, which is its state's", g.label(node))
            changed = True
    return changed


def _asks_states(node: ir.Node) -> bool:
    """Read the shape of a state, where a step is made for the shape of its results.

    Keras makes the first outputs of a masked layer like those of a step.
    """
    value = node.inputs[0]
    step = None if value is None else value.producer()
    if value is None or step is None or step.op_type != "RecurrentCell":
        return False
    readers = [user for output in step.outputs for user, _ in output.uses()]
    if any(reader.op_type != "Shape" for reader in readers):
        return False
    states = step.inputs[5 if step.attributes["bias"].as_int() else 3 :]
    if not states or states[0] is None or not g.proven_equal(states[0], value):
        return False
    node.replace_input_with(0, states[0])
    return True


# --- checks ---


def _fits(step: Step) -> bool:
    """Whether the weights and the states are those of one cell."""
    rows, size = step.of_h.sizes
    if step.of_x.turn is not None:
        return False
    if not _start_from_nothing(step) and not (
        any(_is_whole(step, state) for state in step.states)
        and all(_broadcasts(step, state) for state in step.states)
    ):
        return False
    biases = (step.of_x.bias, step.of_h.bias)
    if rows != size * len(step.order) or step.of_x.sizes[0] != rows:
        return False
    return all(b is None or g.static_dims(b) == (rows,) for b in biases)


def _inner(step: Step) -> set[ir.Node]:
    return {*step.nodes, *step.of_x.nodes, *step.of_h.nodes}


def _is_apart(step: Step) -> bool:
    """Whether nobody else reads what the step computes on its way."""
    inside = _inner(step)
    return all(
        node.graph is step.root.graph
        and (output in step.results or _is_read_by(output, inside))
        for node in inside
        for output in node.outputs
    )


def _is_read_by(value: ir.Value, nodes: set[ir.Node]) -> bool:
    """Whether nobody else reads it."""
    users = (user for user, _ in value.uses())
    return not value.is_graph_output() and all(user in nodes for user in users)


# --- rewriting ---


def _start_from_nothing(step: Step) -> bool:
    """Whether the states are those of an LSTM without any: zeros, a row for each of x.

    A GRU's zeros stay: the loop over its steps is whole with them.
    """
    if step.kind != "LSTM" or not all(map(is_zero, step.states)):
        return False
    rows = _dims(step.of_x.value)[:-1]
    return len(rows) == 1 and all(
        state.shape is not None and _dims(state)[:-1] in ([], rows)
        for state in step.states
    )


def _biases(model: ir.Model, *products: Product) -> list[ir.Value]:
    """Both biases or none, as PyTorch's cells: an exporter drops one that is zeros."""
    given = [p.bias for p in products if p.bias is not None]
    if not given:
        return []
    return [p.bias or _zeros(model, p.matrix, given[0]) for p in products]


def _zeros(model: ir.Model, matrix: ir.Value, like: ir.Value) -> ir.Value:
    """A matrix' bias of zeros, the same one for all steps."""
    name = f"{matrix.name}".replace("weight", "bias")
    name = name if name != matrix.name else f"{name}_bias"
    held = model.graph.initializers.get(name)
    if held is not None and is_zero(held) and held.shape == like.shape:
        return held
    assert like.const_value is not None
    zeros = ir.tensor(np.zeros_like(like.const_value.numpy()))
    return g.initializer(model, ir.Value(name=name), zeros, trains=True)


def _dims(value: ir.Value) -> list[int | ir.SymbolicDim]:
    """The dimensions, none where the rank is unknown."""
    return [] if value.shape is None else list(value.shape)


def _is_whole(step: Step, state: ir.Value) -> bool:
    """Whether it is (N, H) beside x (N, I); a length that is not known is N."""
    x, given = _dims(step.of_x.value), _dims(state)
    if len(x) != 2 or len(given) != 2 or given[1] != step.of_h.sizes[1]:
        return False
    return x[0] == given[0] or 1 not in (x[0], given[0])


def _broadcasts(step: Step, state: ir.Value) -> bool:
    """Whether it is (N, H), or becomes so in a sum."""
    *rows, size = _dims(state) or [0]
    known = size in (1, step.of_h.sizes[1]) and rows in ([], [1])
    return known or state.shape == () or _is_whole(step, state)


def _whole(step: Step) -> tuple[list[ir.Value], list[ir.Node]]:
    """The states with the shape of one of them, where sums and products broadcast."""
    like = next(state for state in step.states if _is_whole(step, state))
    values: list[ir.Value] = []
    nodes: list[ir.Node] = []
    for value in step.states:
        if not _is_whole(step, value):
            sizes = ir.Node("", "Shape", [like])
            spread = ir.Node("", "Expand", [value, sizes.outputs[0]], version=13)
            spread.outputs[0].type, spread.outputs[0].shape = like.type, like.shape
            nodes += [sizes, spread]
            value = spread.outputs[0]
        values.append(value)
    return values, nodes


def _write(model: ir.Model, step: Step) -> None:
    x, h = step.of_x, step.of_h
    biases = _biases(model, x, h)
    states, spread = ([], []) if _start_from_nothing(step) else _whole(step)
    made = ir.node(
        "RecurrentCell",
        [x.value, x.matrix, h.matrix, *biases, *states],
        {
            "kind": step.kind,
            "bias": len(biases) > 0,
            "order": step.order,
            "transposed": [int(x.transposed), int(h.transposed)],
        },
        domain="burnish",
        num_outputs=len(step.results),
    )
    model.opset_imports.setdefault("burnish", 1)
    for node in (made, *spread):
        g.named_like(node, h.node)
    for old, new in zip(step.results, made.outputs, strict=True):
        new.type, new.shape = old.type, old.shape
    # an LSTM's c may be read before h is made
    first = g.unwrap(step.results[-1].producer())
    ir.convenience.replace_nodes_and_values(
        *(g.owner(step.root), first, list(_inner(step)), [*spread, made]),
        *(list(step.results), list(made.outputs)),
    )
