"""One step of an LSTM or a GRU, written out gate by gate, becomes `RecurrentCell`.

PyTorch exports `nn.LSTMCell` and `nn.GRUCell` so, once for each step of the author's
loop. `burnish.RecurrentCell(x, W, R[, b, b'][, h[, c]])` is one step: W (G * H, I) and
R (G * H, H) as PyTorch's cells have them, turned where `transposed` says so; `order`
are the places of PyTorch's gates (i f g o; r z n) among the G blocks of rows. An LSTM's
states are left out where both are zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import (
    Any,
    Match,
    Number,
    Pattern,
    either,
    match,
    op,
)
from burnish.codegen.passes.recurrent.layer import is_zero


@dataclass(frozen=True)
class _Product:
    """value @ matrix.T + bias; `transposed`: the matrix is (I, G * H)."""

    node: ir.Node
    nodes: tuple[ir.Node, ...]
    value: ir.Value
    matrix: ir.Value
    transposed: bool
    bias: ir.Value | None

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows, G * H, and columns."""
        rows, columns = g.static_dims(self.matrix) or (0, 0)
        return (columns, rows) if self.transposed else (rows, columns)


@dataclass(frozen=True)
class _Step:
    """A step; its root gives the next h, of_x and of_h are summed into the gates."""

    kind: str
    root: ir.Node
    nodes: tuple[ir.Node, ...]
    of_x: _Product
    of_h: _Product
    states: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]
    order: tuple[int, ...]


def recurrent_steps(model: ir.Model, account: Account) -> bool:
    """Write every step of an LSTM or a GRU as one node."""
    changed = False
    for node in g.all_nodes(model):
        if node.domain or node.op_type not in _READ or node.graph is None:
            continue
        step = _READ[node.op_type](node)
        if step is not None and _fits(step) and _is_apart(step):
            _write(model, step)
            account.did(f"{step.kind} step", g.label(node))
            changed = True
    return changed


# --- the forms ---


_C = op("Sigmoid", Any("f")) * Any("c") + op("Sigmoid", Any("i")) * op("Tanh", Any("g"))
_LSTM = op("Sigmoid", Any("o")) * op("Tanh", _C)
_NEW = op("Tanh", Any("in") + op("Sigmoid", Any("ir") + Any("hr")) * Any("hn"))
_UPDATE = op("Sigmoid", Any("iz") + Any("hz"))
_GRU = either(
    (Any("h") - _NEW) * _UPDATE + _NEW,
    (Number(1) - _UPDATE) * _NEW + _UPDATE * Any("h"),
)


def _lstm(root: ir.Node) -> _Step | None:
    for found in _matches(_LSTM, root):
        gates = _blocks([found[name] for name in "ifgo"])
        cell = next(n for n in found.nodes if n.op_type == "Add").outputs[0]
        total = None if gates is None else gates[0].inputs[0]
        made = None if total is None else total.producer()
        if gates is None or made is None or made.op_type != "Add" or made.domain:
            continue
        both = [_product(value) for value in made.inputs]
        if both[0] is None or both[1] is None:
            continue
        of_h, of_x = both if _is_hidden(both[0], both[1], found["c"]) else both[::-1]
        assert of_h is not None
        assert of_x is not None
        nodes = (*found.nodes, gates[0], made)
        states, results = (of_h.value, found["c"]), (root.outputs[0], cell)
        return _Step("LSTM", root, nodes, of_x, of_h, states, results, gates[1])
    return None


def _is_hidden(one: _Product, other: _Product, c: ir.Value) -> bool:
    """Whether `one` is of h, which comes from where c comes from, else the first.

    PyTorch writes the product of h first; where both fit, the numbers are the same.
    """
    size = one.sizes[0] // 4
    if size not in (one.sizes[1], other.sizes[1]) or one.sizes[1] != other.sizes[1]:
        return one.sizes[1] == size
    before = _origin(c)
    return _origin(one.value) is before or _origin(other.value) is not before


def _origin(state: ir.Value) -> ir.Node | ir.Value:
    """The step that made a state, or the value that it is a part of."""
    node = state.producer()
    while node is not None and not node.domain and node.op_type in _PARTS:
        assert node.inputs[0] is not None
        state = node.inputs[0]
        node = state.producer()
    return state if node is None else node


_PARTS = frozenset(("Expand", "Gather", "Identity", "Slice", "Split", "Squeeze"))


def _gru(root: ir.Node) -> _Step | None:
    for found in _matches(_GRU, root):
        ways = [("i", "h"), ("h", "i")]
        for r, z in ((r, z) for r in ways for z in ways):
            of_x = _blocks([found[f"{r[0]}r"], found[f"{z[0]}z"], found["in"]])
            of_h = _blocks([found[f"{r[1]}r"], found[f"{z[1]}z"], found["hn"]])
            if of_x is None or of_h is None or of_x[1] != of_h[1]:
                continue
            x, h = (_product(split.inputs[0]) for split in (of_x[0], of_h[0]))
            if x is None or h is None or h.value is not found["h"]:
                continue
            nodes = (*found.nodes, of_x[0], of_h[0])
            results = (root.outputs[0],)
            return _Step("GRU", root, nodes, x, h, (h.value,), results, of_x[1])
    return None


_READ: dict[str, Callable[[ir.Node], _Step | None]] = {"Mul": _lstm, "Add": _gru}


def _matches(pattern: Pattern, root: ir.Node) -> Iterator[Match]:
    return match(pattern, root.outputs[0], Match())


def _blocks(gates: list[ir.Value]) -> tuple[ir.Node, tuple[int, ...]] | None:
    """The Split of two axes' last into equal parts, the gates, and their places."""
    split = gates[0].producer()
    if split is None or split.op_type != "Split" or split.domain:
        return None
    parts = list(split.outputs)
    shapes = [part.shape or ir.Shape([]) for part in parts]
    if any(len(shape) != 2 or shape[1] != shapes[0][1] for shape in shapes):
        return None
    if not isinstance(shapes[0][1], int):
        return None
    if g.attribute(split, "axis", 0) not in (1, -1):
        return None
    if len(parts) != len(gates) or {id(p) for p in parts} != {id(v) for v in gates}:
        return None
    return split, tuple(parts.index(gate) for gate in gates)


def _product(value: ir.Value | None) -> _Product | None:
    """How a value is a product with a weight."""
    node = None if value is None else value.producer()
    if node is None:
        return None
    if node.op_type == "Add" and not node.domain:
        for factor, bias in (node.inputs, node.inputs[::-1]):
            inner = _product(factor) if _is_vector(bias) else None
            if inner is not None and inner.bias is None:
                return _Product(
                    inner.node,
                    (*inner.nodes, node),
                    inner.value,
                    inner.matrix,
                    inner.transposed,
                    bias,
                )
        return None
    linear = (node.domain, node.op_type) == ("burnish", "Linear")
    if not linear and (node.domain or node.op_type not in ("Gemm", "MatMul")):
        return None
    if node.op_type == "Gemm" and not _is_plain(node):
        return None
    x, matrix, *rest = node.inputs
    bias = rest[0] if rest else None
    tensor = g.constant(matrix)
    if x is None or matrix is None or tensor is None or len(tensor.shape) != 2:
        return None
    if bias is not None and not _is_vector(bias):
        return None
    turned = not g.attribute(node, "transB", 0)
    return _Product(node, (node,), x, matrix, turned, bias)


def _is_plain(node: ir.Node) -> bool:
    """Whether a Gemm only multiplies and adds."""
    scaled = ["alpha"] + ["beta"] * any(node.inputs[2:])
    plain = all(g.attribute(node, name, 1.0) == 1 for name in scaled)
    return plain and not g.attribute(node, "transA", 0)


def _is_vector(value: ir.Value | None) -> bool:
    tensor = g.constant(value)
    return tensor is not None and len(tensor.shape) == 1


# --- checks ---


def _fits(step: _Step) -> bool:
    """Whether the weights and the states are those of one cell."""
    rows, size = step.of_h.sizes
    if not _start_from_nothing(step) and not (
        any(_is_whole(step, state) for state in step.states)
        and all(_broadcasts(step, state) for state in step.states)
    ):
        return False
    biases = (step.of_x.bias, step.of_h.bias)
    if rows != size * len(step.order) or step.of_x.sizes[0] != rows:
        return False
    return all(b is None or g.static_dims(b) == (rows,) for b in biases)


def _inner(step: _Step) -> set[ir.Node]:
    return {*step.nodes, *step.of_x.nodes, *step.of_h.nodes}


def _is_apart(step: _Step) -> bool:
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


def _start_from_nothing(step: _Step) -> bool:
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


def _biases(model: ir.Model, *products: _Product) -> list[ir.Value]:
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


def _is_whole(step: _Step, state: ir.Value) -> bool:
    """Whether it is (N, H) beside x (N, I); a length that is not known is N."""
    x, given = _dims(step.of_x.value), _dims(state)
    if len(x) != 2 or len(given) != 2 or given[1] != step.of_h.sizes[1]:
        return False
    return x[0] == given[0] or 1 not in (x[0], given[0])


def _broadcasts(step: _Step, state: ir.Value) -> bool:
    """Whether it is (N, H), or becomes so in a sum."""
    *rows, size = _dims(state) or [0]
    known = size in (1, step.of_h.sizes[1]) and rows in ([], [1])
    return known or state.shape == () or _is_whole(step, state)


def _whole(step: _Step) -> tuple[list[ir.Value], list[ir.Node]]:
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


def _write(model: ir.Model, step: _Step) -> None:
    x, h = step.of_x, step.of_h
    biases = _biases(model, x, h)
    states, spread = ([], []) if _start_from_nothing(step) else _whole(step)
    made = ir.Node(
        "burnish",
        "RecurrentCell",
        [x.value, x.matrix, h.matrix, *biases, *states],
        [
            ir.AttrString("kind", step.kind),
            ir.AttrInt64("bias", len(biases) > 0),
            ir.AttrInt64s("order", step.order),
            ir.AttrInt64s("transposed", [int(x.transposed), int(h.transposed)]),
        ],
        num_outputs=len(step.results),
        name=h.node.name,
        metadata_props=dict(h.node.metadata_props),
    )
    model.opset_imports.setdefault("burnish", 1)
    for node in spread:
        node.name = made.name
        node.metadata_props.update(made.metadata_props)
    for old, new in zip(step.results, made.outputs, strict=True):
        new.type, new.shape = old.type, old.shape
    first = step.results[-1].producer()  # an LSTM's c may be read before h is made
    assert first is not None
    ir.convenience.replace_nodes_and_values(
        g.owner(step.root),
        first,
        list(_inner(step)),
        [*spread, made],
        list(step.results),
        list(made.outputs),
    )
