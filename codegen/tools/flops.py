"""Count multiply-accumulates of one forward pass from shapes.

Counted are the operators that cost: convolutions, matrix products, recurrences and
attention. One multiply-accumulate is two FLOPs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

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
    # weight (out, in/groups, *kernel): each output element sums in/groups * kernel
    return math.prod(shapes.output()) * math.prod(shapes.input(1)[1:])


def _conv_transpose(node: ir.Node, shapes: _Shapes) -> int:
    # weight (in, out/groups, *kernel): each input element reaches out/groups * kernel
    return math.prod(shapes.input(0)) * math.prod(shapes.input(1)[1:])


def _matmul(node: ir.Node, shapes: _Shapes) -> int:
    return math.prod(_wide(shapes.output())) * shapes.input(0)[-1]


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


def _wide(dims: Sequence[int]) -> Sequence[int]:
    return dims or (1,)


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
