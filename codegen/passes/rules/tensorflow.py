"""Undo TensorFlow's forms of 1-D layers, of flattening before a product, and of where.

A layer of sequences is one of images of height 1 there. A matrix behind an image that
was flattened with channels last takes its rows in that order. Its Select is written as
a sum of products with 0 and 1, where an opset lacked Where for a type.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import declared, numbers
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.layout.channel_axes import last
from burnish.codegen.passes.pattern import Any, Match, Pattern, Rewritten, Rule, op
from burnish.codegen.symbolic.sizes import ONE
from burnish.codegen.weights import constants

# --- images of height 1 ---

_SIDES = ("dilations", "kernel_shape", "output_padding", "strides", "pads")
_KINDS = ("Conv", "ConvTranspose", "MaxPool", "AveragePool")


def _flat(kind: str) -> Pattern:
    weighs = kind.startswith("Conv")
    inputs = (Any("x"), Any("weight")) if weighs else (Any("x"),)
    return op("Squeeze", op(kind, *inputs, name="main"), Any("axes"), name="squeeze")


def _without_height(found: Match) -> Rewritten:
    node = found.named["main"]
    before, after = declared(found["x"]), declared(node.outputs[0])
    if before is None or after is None or len(before) != 4:
        return "it is no layer of images"
    squeezed = g.integers(found["axes"]) in ([2], [-2])
    if before[2] != ONE or after[2] != ONE or not squeezed:
        return "the image has a height"
    if any(node.attributes.get_ints("pads", ())[::2]):
        return "there are rows around"
    kernel = node.attributes.get_ints("kernel_shape")
    window = (declared(found.values.get("weight")) or [None] * 3)[2]
    tall = kernel[0] != 1 if kernel is not None else window != ONE
    if tall or "output_shape" in node.attributes:
        return "the window has a height"
    if len(node.outputs) > 1:
        return "places are asked for"
    made = g.view_nodes("Squeeze", found["x"], [2])
    inputs: list[ir.Value | None] = [made[-1].outputs[0]]
    if "weight" in found.values:
        high = [found["weight"], made[0].outputs[0]]
        made.append(ir.Node("", "Squeeze", high, version=13))
        made[-1].outputs[0].name = found["weight"].name  # a weight, not counted
        inputs += [made[-1].outputs[0], *node.inputs[2:]]
    kept = {name: a for name, a in node.attributes.items() if name not in _SIDES}
    sides = {
        name: list(node.attributes[name].as_ints())[1::2]
        for name in _SIDES
        if name in node.attributes
    }
    return [*made, ir.node(node.op_type, inputs, {**kept, **sides})]


# --- a matrix behind a flattened image ---

_TURNED = op("Transpose", Any("x"), name="turn")
_FLATTENED = op("Flatten|Reshape", _TURNED, name="rows")
_MATRIX = op("Gemm|Linear|MatMul", _FLATTENED, Any("weight"), name="main", domain=None)


def _turned_rows(found: Match) -> Rewritten:
    image, rows = declared(found["x"]), declared(found.named["rows"].outputs[0])
    perm = found.named["turn"].attributes.get_ints("perm")
    sizes = numbers((image or [])[1:])
    if image is None or sizes is None or perm is None or len(image) < 3:
        return "the image's size is not known"
    if list(perm) != last(len(image)):
        return "the axes are permuted in another way"
    if rows is None or rows[0] != image[0] or numbers(rows[1:]) != [math.prod(sizes)]:
        return "more than the image is flattened"
    weight, node = found["weight"], found.named["main"]
    if not constants.trains(weight) or len(weight.uses()) > 1:
        return "the matrix is no weight of this layer alone"
    if g.attribute(node, "transA", 0):
        return "the rows are transposed"
    channels, *places = sizes
    tensor = g.unwrap(g.constant(weight))
    across = bool(g.attribute(node, "transB", 0))

    def read() -> ir.TensorProtocol:
        matrix = tensor.numpy().T if across else tensor.numpy()
        parts = np.moveaxis(matrix.reshape(*places, channels, -1), -2, 0)
        rows = parts.reshape(matrix.shape)
        return ir.tensor(np.ascontiguousarray(rows.T if across else rows))

    made = g.weight_node(weight.name, tensor.dtype, tensor.shape.numpy(), read)
    flat = ir.Node("", "Flatten", [found["x"]])
    inputs = [flat.outputs[0], made.outputs[0], *node.inputs[2:]]
    kept = list(node.attributes.values())
    return [flat, made, ir.Node(node.domain, node.op_type, inputs, kept)]


# --- choices ---

_CHOICE = op(
    "Add",
    op("Mul", op("Cast", Any("chosen")), Any("a")),
    op("Mul", op("Cast", op("Not", Any("other"))), Any("b")),
    name="main",
)


def _with_where(found: Match) -> Rewritten:
    if found["chosen"] is not found["other"]:
        return "the factors are not of one choice"
    if found["chosen"].dtype not in (None, ir.DataType.BOOL):
        return "the factors are no choice"
    # an author's own products keep their NaN where the other side is infinite
    named = any("Select" in (v.name or "") for n in found.nodes for v in n.outputs)
    if not named:
        return "it is not named as TensorFlow's Select"
    return ir.Node("", "Where", [found["chosen"], found["a"], found["b"]])


RULES = (
    Rule("a choice as a sum of products", _CHOICE, _with_where),
    *(Rule(f"{kind} of sequences", _flat(kind), _without_height) for kind in _KINDS),
    Rule("matrix behind an image with channels last", _MATRIX, _turned_rows),
)
