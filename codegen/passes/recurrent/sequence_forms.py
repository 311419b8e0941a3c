"""Recognise unrolled steps of a layer, each of which reads one row of a sequence.

A step of an RNN is one there only: elsewhere it is a sum of two layers behind `tanh`.
"""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import axes_of
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.recurrent.step_forms import (
    Product,
    Step,
    product_of,
    step_of,
)
from burnish.codegen.scopes import scope_of

_ACTIVATIONS = ("Relu", "Tanh")


def layer_step_of(root: ir.Node) -> Step | None:
    """The step whose next h is this node's result, and the sequence that it reads.

    A module's own step (`nn.LSTMCell`) stays a step in its author's loop.
    """
    step = step_of(root)
    if step is None:
        return _rnn(root)
    x = _of_a_sequence(step.of_x)
    return None if x is None else replace(step, of_x=x)


def _of_a_sequence(product: Product | None) -> Product | None:
    """The product, of the row of a sequence or of all of it."""
    if product is None or product.turn is not None:
        return product
    row = None if _is_an_authors(product.node) else _row(product.value)
    return None if row is None else replace(product, value=row[0], turn=row[1])


def _is_an_authors(node: ir.Node) -> bool:
    """Whether a step is of a module, and that of no layer that has a cell as its own.

    Keras has them: the `lstm_cell` of a `lstm`.
    """
    scope = scope_of(node)
    own = len(scope) > 1 and scope[-1].name == f"{scope[-2].name}_cell"
    return bool(scope) and not own


def _row(value: ir.Value) -> tuple[ir.Value, int] | None:
    """The sequence (T, N, I) that a value (N, I) is a row of, and which."""
    maker = g.maker_of(value, "Gather", "Squeeze")
    if maker is None or maker.inputs[0] is None:
        return None
    if maker.op_type == "Gather":
        index = g.constant(maker.inputs[1])
        if index is None or len(index.shape) or g.attribute(maker, "axis", 0) != 0:
            return None
        return maker.inputs[0], int(index.numpy())
    split = g.maker_of(maker.inputs[0], "Split")
    if split is None or axes_of(maker, g.integers) != [0] or split.inputs[0] is None:
        return None
    shape = split.inputs[0].shape
    if g.attribute(split, "axis", 0) != 0 or shape is None:
        return None
    if shape[0] != len(split.outputs):
        return None
    return split.inputs[0], list(split.outputs).index(maker.inputs[0])


def _rnn(root: ir.Node) -> Step | None:
    if root.op_type not in _ACTIVATIONS or root.domain:
        return None
    added = g.maker_of(root.inputs[0], "Add")
    if added is None:
        return None
    one, two = map(product_of, added.inputs)
    for x, h in ((one, two), (two, one)):
        of_x = _of_a_sequence(x)
        if of_x is None or h is None or h.turn is not None or _row(h.value):
            continue
        results = (root.outputs[0],)
        return Step("RNN", root, (root, added), of_x, h, (h.value,), results, (0,))
    return None
