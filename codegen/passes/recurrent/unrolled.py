"""Steps of one recurrent layer, written out one after the other, become the layer.

Keras' layers on PyTorch's backend are exported so: one product of the whole sequence
with the kernel, whose rows the steps read in turn, or a product with each row; on
TensorFlow the products are in the cell that a layer has as its own. An author's loop
over a cell has a product in the cell's module, and stays a loop.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops.layers.recurrent import GATES
from burnish.codegen.ops.shapes.dims import axes_of
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.recurrent.cells import Cell
from burnish.codegen.passes.recurrent.sequence_forms import layer_step_of
from burnish.codegen.passes.recurrent.step_forms import Product, Step
from burnish.codegen.passes.recurrent.written import written
from burnish.codegen.scopes import scope_of, write_scope


def unrolled_layers(model: ir.Model, account: Account) -> bool:
    """Write every row of steps through a whole sequence as a layer."""
    rows: dict[tuple[ir.Value, ir.Value], list[ir.Node]] = {}
    for node in g.all_nodes(model):
        step = layer_step_of(node)
        if step is not None:
            rows.setdefault((step.of_x.value, step.of_x.matrix), []).append(node)
    changed = False
    for roots in rows.values():
        # again: a layer before this one may have replaced what the steps read
        steps = [step for root in roots if (step := layer_step_of(root)) is not None]
        steps.sort(key=lambda step: step.of_x.turn or 0)
        if steps and _is_layer(steps):
            account.did(f"{steps[0].kind} of {len(steps)} steps", g.label(roots[0]))
            _write(model, steps)
            changed = True
    return changed


# --- checks ---


def _is_layer(steps: list[Step]) -> bool:
    """Whether the steps are one cell's, through all of the sequence in turn."""
    first = steps[0]
    x = first.of_x.value.shape
    turns = [step.of_x.turn for step in steps]
    if x is None or len(x) != 3 or turns != list(range(len(steps))):
        return False
    return (
        x[0] == len(steps)
        and _fits(first)
        and all(_are_alike(first, step) for step in steps[1:])
        and all(
            one is other
            for before, after in pairwise(steps)
            for one, other in zip(before.results, after.states, strict=True)
        )
        and _is_apart(steps)
    )


def _fits(step: Step) -> bool:
    """Whether weights and initial states are those of a layer of PyTorch's."""
    rows, size = step.of_h.sizes
    x = step.of_x.value.shape
    if rows != size * len(step.order) or step.of_x.sizes[0] != rows or x is None:
        return False
    for state in step.states:
        shape = state.shape
        if shape is None or len(shape) != 2 or shape[1] != size:
            return False
        if shape[0] != x[1] and 1 in (shape[0], x[1]):
            return False  # it broadcasts
    biases = (step.of_x.bias, step.of_h.bias)
    return all(b is None or g.static_dims(b) == (rows,) for b in biases)


def _are_alike(one: Step, other: Step) -> bool:
    return (
        (one.kind, one.order) == (other.kind, other.order)
        and one.root.op_type == other.root.op_type
        and _are_same(one.of_x, other.of_x)
        and _are_same(one.of_h, other.of_h)
    )


def _are_same(one: Product, other: Product) -> bool:
    """Whether both multiply by equal weights and add equal biases."""
    return (
        one.transposed == other.transposed
        and _are_equal(one.matrix, other.matrix)
        and _are_equal(one.bias, other.bias)
    )


def _are_equal(one: ir.Value | None, other: ir.Value | None) -> bool:
    """Whether both are the same constant, or nothing."""
    if one is other:
        return True
    held = g.constant(one), g.constant(other)
    if held[0] is None or held[1] is None or held[0].shape != held[1].shape:
        return False
    return np.array_equal(held[0].numpy(), held[1].numpy())


def _inner(steps: list[Step]) -> list[ir.Node]:
    """The nodes of all steps; the product of the sequence is theirs together."""
    each = [(*s.nodes, *s.of_x.nodes, *s.of_h.nodes) for s in steps]
    return list(dict.fromkeys(node for nodes in each for node in nodes))


def _is_apart(steps: list[Step]) -> bool:
    """Whether others read nothing of the steps but every h and the last c.

    Nor the matrices: those of a layer that is called twice stay shared.
    """
    inside = set(_inner(steps))
    left = {*(step.results[0] for step in steps), *steps[-1].results}
    graph = steps[0].root.graph
    matrices = [p.matrix for step in steps for p in (step.of_x, step.of_h)]
    return not any(_users(matrix) - inside for matrix in matrices) and all(
        node.graph is graph
        and (
            output in left or not (output.is_graph_output() or _users(output) - inside)
        )
        for node in inside
        for output in node.outputs
    )


def _users(value: ir.Value) -> set[ir.Node]:
    return {user for user, _ in value.uses()}


# --- rewriting ---


def _cell(step: Step) -> Cell:
    """The weights as ONNX packs them."""
    size = step.of_h.sizes[1]
    blocks = [step.order[place] for place in GATES[step.kind]]
    rows = np.concatenate([np.arange(size) + size * block for block in blocks])
    W, R = (_matrix(product)[rows][None] for product in (step.of_x, step.of_h))
    given = [g.constant(product.bias) for product in (step.of_x, step.of_h)]
    biases = [
        np.zeros_like(W[0, :, 0]) if b is None else b.numpy()[rows] for b in given
    ]
    B = None if given == [None, None] else np.concatenate(biases)[None]
    activation = step.root.op_type if step.kind == "RNN" else "Tanh"
    return Cell(step.kind, W, R, B, step.kind == "GRU", activation)


def _matrix(product: Product) -> np.ndarray:
    """(G * H, I)."""
    tensor = g.unwrap(g.constant(product.matrix))
    array = tensor.numpy()
    return array.T if product.transposed else array


def _write(model: ir.Model, steps: list[Step]) -> None:
    """Replace the steps, and the Concat of every h, by the layer."""
    first, last = steps[0], steps[-1]
    sequence, graph = first.of_x.value, g.owner(first.root)
    made = written(model, first.of_h.node, sequence, _cell(first), first.states)
    if scope := scope_of(first.of_h.node):  # the cell's: the layer has it
        for node in made.nodes:
            write_scope(node, scope[:-1])
    stack = _stack(steps)
    removed = [*_inner(steps), *stack]
    old, new = list(last.results), list(made.ends)
    if stack:
        old.append(stack[-1].outputs[0])
        new.append(made.every)
    nodes = list(made.nodes)
    for place, step in enumerate(steps[:-1]):
        h = step.results[0]
        if h.is_graph_output() or _users(h) - set(removed):
            turn = g.new_constant(model, "turn", np.array(place))
            take = ir.node(
                "Gather", [made.every, turn], {"axis": 0}, name=f"{step.root.name}_h"
            )
            take.outputs[0].type, take.outputs[0].shape = h.type, h.shape
            nodes.append(take)
            old.append(h)
            new.append(take.outputs[0])
    ir.convenience.replace_nodes_and_values(
        graph, first.of_x.node, removed, nodes, old, new
    )
    graph.sort()


def _stack(steps: list[Step]) -> list[ir.Node]:
    """The nodes that stack every h along a new first axis, the Concat last."""
    for user in _users(steps[0].results[0]):
        for concat in _users(user.outputs[0]):
            if concat.op_type != "Concat" or g.attribute(concat, "axis", 0) != 0:
                continue
            parts = [g.maker_of(value, "Unsqueeze") for value in concat.inputs]
            wanted = [step.results[0] for step in steps]
            if len(parts) != len(wanted):
                continue
            if all(
                part is not None
                and part.inputs[0] is h
                and axes_of(part, g.integers) == [0]
                and _users(part.outputs[0]) == {concat}
                for part, h in zip(parts, wanted, strict=True)
            ):
                return [*(part for part in parts if part is not None), concat]
    return []
