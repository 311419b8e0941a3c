"""Recognise one step of an LSTM or a GRU that is written out gate by gate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import onnx_ir as ir

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


@dataclass(frozen=True)
class Product:
    """value @ matrix.T + bias; `transposed`: the matrix is (I, G * H).

    turn: the step whose rows are read, where the value is a whole sequence (T, N, I).
    """

    node: ir.Node
    nodes: tuple[ir.Node, ...]
    value: ir.Value
    matrix: ir.Value
    transposed: bool
    bias: ir.Value | None
    turn: int | None = None

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows, G * H, and columns."""
        rows, columns = g.static_dims(self.matrix) or (0, 0)
        return (columns, rows) if self.transposed else (rows, columns)


@dataclass(frozen=True)
class Step:
    """A step; its root gives the next h, of_x and of_h are summed into the gates."""

    kind: str
    root: ir.Node
    nodes: tuple[ir.Node, ...]
    of_x: Product
    of_h: Product
    states: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]
    order: tuple[int, ...]


def step_of(root: ir.Node) -> Step | None:
    """The step whose next h is this node's result; None if it is no such step."""
    if root.domain:
        return None
    match root.op_type:
        case "Mul":
            return _lstm(root)
        case "Add":
            return _gru(root)
    return None


_C = op("Sigmoid", Any("f")) * Any("c") + op("Sigmoid", Any("i")) * op("Tanh", Any("g"))
_LSTM = op("Sigmoid", Any("o")) * op("Tanh", _C)
_NEW = op("Tanh", Any("in") + op("Sigmoid", Any("ir") + Any("hr")) * Any("hn"))
_UPDATE = op("Sigmoid", Any("iz") + Any("hz"))
_GRU = either(
    (Any("h") - _NEW) * _UPDATE + _NEW,
    (Number(1) - _UPDATE) * _NEW + _UPDATE * Any("h"),
)


def _lstm(root: ir.Node) -> Step | None:
    for found in _matches(_LSTM, root):
        gates = _blocks([found[name] for name in "ifgo"])
        cell = next(n for n in found.nodes if n.op_type == "Add").outputs[0]
        made = None if gates is None else g.maker_of(gates.value, "Add")
        if gates is None or made is None:
            continue
        both = _summed(made)
        if both is None:
            continue
        of_h, of_x = both if _is_hidden(*both, found["c"]) else both[::-1]
        if of_h.turn is not None:
            continue
        nodes = (*found.nodes, *gates.nodes, made)
        states, results = (of_h.value, found["c"]), (root.outputs[0], cell)
        return Step("LSTM", root, nodes, of_x, of_h, states, results, gates.order)
    return None


def _summed(made: ir.Node) -> tuple[Product, Product] | None:
    """The two products in a sum; a bias behind both, as Keras has it, is of one."""
    one, two = map(product_of, made.inputs)
    if one is not None and two is not None:
        return one, two
    for inner, bias in (made.inputs, made.inputs[::-1]):
        sum_ = g.maker_of(inner, "Add") if _is_vector(bias) else None
        both = None if sum_ is None else _summed(sum_)
        if both is not None and sum_ is not None and both[0].bias is None:
            return replace(both[0], nodes=(*both[0].nodes, sum_), bias=bias), both[1]
    return None


def _is_hidden(one: Product, other: Product, c: ir.Value) -> bool:
    """Whether `one` is of h, which comes from where c comes from, else the first.

    PyTorch writes the product of h first; where both fit, the numbers are the same.
    """
    if one.turn is not None or other.turn is not None:
        return other.turn is not None
    size = one.sizes[0] // 4
    if size not in (one.sizes[1], other.sizes[1]) or one.sizes[1] != other.sizes[1]:
        return one.sizes[1] == size
    before = _origin(c)
    return _origin(one.value) is before or _origin(other.value) is not before


def _origin(state: ir.Value) -> ir.Node | ir.Value:
    """The step that made a state, or the value that it is a part of."""
    whole = g.behind(state, *_PARTS)
    return whole.producer() or whole


_PARTS = ("Expand", "Gather", "Identity", "Slice", "Split", "Squeeze")


def _gru(root: ir.Node) -> Step | None:
    for found in _matches(_GRU, root):
        ways = [("i", "h"), ("h", "i")]
        for r, z in ((r, z) for r in ways for z in ways):
            of_x = _blocks([found[f"{r[0]}r"], found[f"{z[0]}z"], found["in"]])
            of_h = _blocks([found[f"{r[1]}r"], found[f"{z[1]}z"], found["hn"]])
            if of_x is None or of_h is None or of_x.order != of_h.order:
                continue
            x, h = product_of(of_x.value), product_of(of_h.value)
            if x is None or h is None or h.turn is not None:
                continue
            if h.value is not found["h"]:
                continue
            nodes = (*found.nodes, *of_x.nodes, *of_h.nodes)
            results = (root.outputs[0],)
            return Step("GRU", root, nodes, x, h, (h.value,), results, of_x.order)
    return None


def _matches(pattern: Pattern, root: ir.Node) -> Iterator[Match]:
    return match(pattern, root.outputs[0], Match())


@dataclass(frozen=True)
class _Blocks:
    """The gates as equal parts of one value's last axis; `order`: their places."""

    nodes: tuple[ir.Node, ...]
    value: ir.Value
    order: tuple[int, ...]


def _blocks(gates: list[ir.Value]) -> _Blocks | None:
    """How the gates are cut out of one value (N, gates * H): by a Split, or one by one.

    PyTorch's older exporter writes `chunk` as a Slice for each part.
    """
    shapes = [gate.shape or ir.Shape([]) for gate in gates]
    if any(len(shape) != 2 or shape[1] != shapes[0][1] for shape in shapes):
        return None
    size = shapes[0][1]
    split = g.maker_of(gates[0], "Split")
    if not isinstance(size, int):
        return None
    if split is None:
        return _sliced(gates, size)
    parts = list(split.outputs)
    if g.attribute(split, "axis", 0) not in (1, -1) or split.inputs[0] is None:
        return None
    if len(parts) != len(gates) or {id(p) for p in parts} != {id(v) for v in gates}:
        return None
    order = tuple(parts.index(gate) for gate in gates)
    return _Blocks((split,), split.inputs[0], order)


def _sliced(gates: list[ir.Value], size: int) -> _Blocks | None:
    nodes = [g.maker_of(gate, "Slice") for gate in gates]
    value = nodes[0].inputs[0] if nodes[0] is not None else None
    whole = None if value is None else value.shape
    if value is None or whole is None or whole[-1] != size * len(gates):
        return None
    order = []
    for node in nodes:
        if node is None or node.inputs[0] is not value or len(node.inputs) < 4:
            return None
        starts, _, axes, *steps = (g.integers(given) for given in node.inputs[1:])
        if not starts or not axes or steps not in ([], [[1] * len(axes)]):
            return None
        begins = dict(zip((axis % len(whole) for axis in axes), starts, strict=True))
        start, rows = begins.pop(1, 0), node.outputs[0].shape
        if start % size or any(begins.values()) or rows is None or rows[0] != whole[0]:
            return None
        order.append(start // size)
    if sorted(order) != list(range(len(gates))):
        return None
    return _Blocks(tuple(node for node in nodes if node), value, tuple(order))


def product_of(value: ir.Value | None) -> Product | None:
    """How a value is a product with a weight."""
    node = g.maker_of(value)
    if node is None:
        return None
    if node.op_type == "Add" and not node.domain:
        for factor, bias in (node.inputs, node.inputs[::-1]):
            inner = product_of(factor) if _is_vector(bias) else None
            if inner is not None and inner.bias is None:
                return replace(inner, nodes=(*inner.nodes, node), bias=bias)
        return None
    if node.op_type == "Gather" and not node.domain:
        return _turn(node)
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
    return Product(node, (node,), x, matrix, turned, bias)


def _turn(node: ir.Node) -> Product | None:
    """The rows of one step, taken from the product of a whole sequence."""
    whole, index = product_of(node.inputs[0]), g.constant(node.inputs[1])
    if whole is None or whole.turn is not None or g.attribute(node, "axis", 0) != 0:
        return None
    if index is None or len(index.shape) > 0 or len(whole.value.shape or ()) != 3:
        return None
    return replace(whole, nodes=(*whole.nodes, node), turn=int(index.numpy()))


def _is_plain(node: ir.Node) -> bool:
    """Whether a Gemm only multiplies and adds."""
    scaled = ["alpha"] + ["beta"] * any(node.inputs[2:])
    plain = all(g.attribute(node, name, 1.0) == 1 for name in scaled)
    return plain and not g.attribute(node, "transA", 0)


def _is_vector(value: ir.Value | None) -> bool:
    tensor = g.constant(value)
    return tensor is not None and len(tensor.shape) == 1
