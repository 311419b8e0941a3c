"""Count multiply-accumulates of one forward pass from shapes.

Counted are the operators that cost: convolutions, matrix products, recurrences and
attention, of a graph (`macs`) or as the runtime runs them (`operator_macs`). One
multiply-accumulate is two FLOPs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from burnish.codegen.passes.graph import attribute, static_dims

Shape = tuple[int, ...]


class Unknown(Exception):
    """A shape that is needed is not known."""


def macs(node: ir.Node) -> int | None:
    """The node's multiply-accumulates; None for an operator that is not counted.

    Raises Unknown where a shape has an open dimension.
    """
    count = _COUNTED.get((node.domain, node.op_type))
    return None if count is None else count(node, _Shapes(node))


def operator_macs(
    name: str, given: Sequence[Any], options: Mapping[str, Any], results: Any
) -> int:
    """The multiply-accumulates of a call of the runtime's operator; 0 if not counted.

    Attention is made of products there, and counts as these.
    """
    count = _OPERATORS.get(name)
    if count is None:
        return 0
    first = results[0] if isinstance(results, tuple) else results
    shapes = [tuple(getattr(each, "shape", ())) for each in given]
    return count(shapes, tuple(first.shape), options)


class _Shapes:
    def __init__(self, node: ir.Node) -> None:
        self.node = node

    def input(self, index: int) -> Shape:
        return self._of(self.node.inputs[index] if index < self.count else None)

    def output(self) -> Shape:
        return self._of(self.node.outputs[0])

    @property
    def count(self) -> int:
        return len(self.node.inputs)

    def _of(self, value: ir.Value | None) -> Shape:
        dims = static_dims(value)
        if dims is None:
            raise Unknown
        return dims


def _conv(node: ir.Node, shapes: _Shapes) -> int:
    return _correlated(shapes.output(), shapes.input(1))


def _correlated(y: Shape, weight: Shape) -> int:
    # weight (out, in/groups, *kernel): each output element sums in/groups * kernel
    return math.prod(y) * math.prod(weight[1:])


def _conv_transpose(node: ir.Node, shapes: _Shapes) -> int:
    # weight (in, out/groups, *kernel): each input element reaches out/groups * kernel
    return _correlated(shapes.input(0), shapes.input(1))


def _matmul(node: ir.Node, shapes: _Shapes) -> int:
    return _multiplied(shapes.output(), shapes.input(0))


def _multiplied(y: Shape, x: Shape) -> int:
    return math.prod(y) * x[-1]


def _gemm(node: ir.Node, shapes: _Shapes) -> int:
    inner = shapes.input(0)[0 if attribute(node, "transA", 0) else 1]
    return math.prod(shapes.output()) * inner


def _linear(node: ir.Node, shapes: _Shapes) -> int:
    return math.prod(shapes.input(0)) * shapes.input(1)[1]


def _recurrent(gates: int) -> Callable[[ir.Node, _Shapes], int]:
    def count(node: ir.Node, shapes: _Shapes) -> int:
        steps, batch, _ = shapes.input(0)  # the product is the same for both layouts
        directions, rows, width = shapes.input(1)
        hidden = rows // gates
        return steps * batch * directions * rows * (width + hidden)

    return count


def _attention(node: ir.Node, shapes: _Shapes) -> int:
    q, k, v = (shapes.input(i) for i in range(3))
    if len(q) == 4:
        batch, heads, queries, width = q
        keys, value_width = k[2], v[3]
    else:
        batch, queries, width = q
        held = attribute(node, "q_num_heads", 1)
        assert isinstance(held, int)
        kv = attribute(node, "kv_num_heads", held)
        assert isinstance(kv, int)
        heads, keys = held, k[1]
        width, value_width = width // heads, v[2] // kv
    past = node.inputs[4] if len(node.inputs) > 4 else None
    if past is not None:
        keys += shapes.input(4)[2]
    return batch * heads * queries * keys * (width + value_width)


def _stepped(given: Sequence[Shape], y: Shape, options: Mapping[str, Any]) -> int:
    # x (T, N, rows) holds the inputs' share, weight (rows, H): N * rows * H a step
    return math.prod(given[0]) * given[1][-1]


def _einsum(given: Sequence[Shape], y: Shape, options: Mapping[str, Any]) -> int:
    # one label after the other, as the plain loops of the equation count
    terms = str(options["equation"]).replace(" ", "").partition("->")[0].split(",")
    if len(terms) < 2:
        return 0
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, given, strict=True):
        before, dots, after = term.partition("...")
        free = len(shape) - len(before) - len(after) if dots else 0
        labels = [*before, *(f".{i - free}" for i in range(free)), *after]
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = max(sizes.get(label, 1), size)
    return math.prod(sizes.values())


_COUNTED: dict[tuple[str, str], Callable[[ir.Node, _Shapes], int]] = {
    ("", "Conv"): _conv,
    ("", "ConvTranspose"): _conv_transpose,
    ("", "MatMul"): _matmul,
    ("", "Gemm"): _gemm,
    ("", "RNN"): _recurrent(1),
    ("", "GRU"): _recurrent(3),
    ("", "LSTM"): _recurrent(4),
    ("", "Attention"): _attention,
    ("burnish", "Linear"): _linear,
}

_OPERATORS: dict[str, Callable[[Sequence[Shape], Shape, Mapping[str, Any]], int]] = {
    "conv": lambda given, y, _: _correlated(y, given[1]),
    "conv_transpose": lambda given, y, _: _correlated(given[0], given[1]),
    "linear": lambda given, y, _: _multiplied(y, given[0]),
    "matmul": lambda given, y, _: _multiplied(y, given[0]),
    "einsum_of": _einsum,
    "rnn_sequence": _stepped,
    "gru_sequence": _stepped,
    "lstm_sequence": _stepped,
}
