"""Fold a per-channel scale and shift into the layer before it.

TensorFlow adds a bias behind its convolutions, and a normalisation whose statistics
were folded is a factor and a summand; Caffe has the two behind a normalisation without
parameters. They are part of the layer before them, unless the author gave them a name
of their own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial

import numpy as np
import onnx_ir as ir

from burnish.codegen.names import authorship
from burnish.codegen.ops.shapes.dims import declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import Any, Match, NodePattern, Rewritten, Rule, op
from burnish.codegen.weights import constants

_AUTHORS = re.compile(r"[A-Za-z_]\w*(\.\w+)*$")
_DOMAINS = {
    "BatchNormalization": "",
    "Conv": "",
    "ConvTranspose": "",
    "Linear": "burnish",
}


def _applied(kind: str, layer: str) -> NodePattern:
    return op(
        kind,
        op(layer, Any("x"), Any("weight"), name="main", domain=_DOMAINS[layer]),
        Any("by"),
    )


def _unfit(found: Match, kind: str) -> str | None:
    node = found.named["main"]
    parts = [v for v in node.inputs[1:3] if v is not None]
    if not all(constants.trains(v) and len(v.uses()) == 1 for v in parts):
        return "the layer's parameters are not its own"
    if len(node.outputs) > 1:
        return "the layer computes its statistics"
    if node.op_type == "ConvTranspose" and g.attribute(node, "group", 1) != 1:
        return "the channels are in groups"
    by, weight = g.constant(found["by"]), g.constant(node.inputs[1])
    shape, trains = declared(node.outputs[0]), constants.trains(found["by"])
    if by is None or weight is None or shape is None or not trains:
        return "it is no constant for each channel"
    count = weight.shape.numpy()[_axis(node)]
    behind = 0 if node.op_type == "Linear" else len(shape) - 2
    dims = tuple(by.shape.numpy())
    wide = [1] * (len(shape) - len(dims)) + list(dims)
    if wide != [1] * (len(shape) - behind - 1) + [count] + [1] * behind:
        return f"it has shape {dims}, not one number a channel"
    bias = len(parts) > 1 or kind != "Add"
    named = bias and (_is_authors(found["by"]) or _scales_alone(found["by"], kind))
    return f"{found['by'].name!r} is a parameter of its own" if named else None


def _is_authors(value: ir.Value) -> bool:
    name = value.name or ""
    counted = authorship.is_exporters(name) or authorship.is_numbered(name)
    return _AUTHORS.match(name) is not None and not counted


def _scales_alone(value: ir.Value, kind: str) -> bool:
    """Whether PyTorch's exporter counts a factor that has no summand behind it.

    Its name was lost with a change of its shape: a layer scale, not part of a norm.
    """
    users = [u for n, _ in value.uses() for u, _ in n.outputs[0].uses()]
    shifts = any(
        user.op_type in ("Add", "Sub")
        and any(constants.trains(each) for each in user.inputs)
        for user in users
    )
    counted = authorship.is_torch_exporters(value.name or "")
    return kind in ("Div", "Mul") and counted and not shifts


def _axis(node: ir.Node) -> int:
    """The axis of the layer's weight that counts its results."""
    if node.op_type == "Linear":
        return 0 if g.attribute(node, "transB", 0) else 1
    return 1 if node.op_type == "ConvTranspose" else 0


def _merged(found: Match, kind: str) -> Rewritten:
    if (reason := _unfit(found, kind)) is not None:
        return reason
    node, by = found.named["main"], g.unwrap(g.constant(found["by"]))
    weight, bias = g.unwrap(node.inputs[1]), (*node.inputs[2:], None)[0]
    scales = kind in ("Div", "Mul")
    made: list[ir.Node] = []
    inputs: list[ir.Value | None] = [found["x"], weight]
    if scales:
        along = [1] * len(declared(weight) or [])
        along[_axis(node)] = -1
        made.append(
            _weight(weight, partial(_computed, kind, g.constant(weight), by, along))
        )
        inputs[1] = made[-1].outputs[0]
    if bias is not None or not scales:
        like = found["by"] if bias is None else bias
        made.append(
            _weight(
                like, partial(_computed, kind, g.constant(bias), by, [-1]), flat=True
            )
        )
        inputs.append(made[-1].outputs[0])
    inputs += node.inputs[3:]
    kept = list(node.attributes.values())
    return [*made, ir.Node(node.domain, node.op_type, inputs, kept)]


def _computed(
    kind: str, held: ir.TensorProtocol | None, by: ir.TensorProtocol, along: list[int]
) -> ir.TensorProtocol:
    """A weight with the numbers of its channels; from 0 on where there is none."""
    numbers = by.numpy().reshape(along)
    start = np.zeros_like(numbers) if held is None else held.numpy()
    return ir.tensor(np.asarray(_ARITHMETIC[kind](start, numbers), start.dtype))


_ARITHMETIC = {"Add": np.add, "Div": np.divide, "Mul": np.multiply, "Sub": np.subtract}


def _weight(
    like: ir.Value, read: Callable[[], ir.TensorProtocol], flat: bool = False
) -> ir.Node:
    """A trainable Constant, computed on first use."""
    tensor = g.unwrap(g.constant(like))
    shape = tuple(tensor.shape.numpy())
    shape = (math.prod(shape),) if flat else shape
    return g.weight_node(like.name, tensor.dtype, shape, read)


RULES = tuple(
    Rule(f"{kind} behind {layer}", _applied(kind, layer), partial(_merged, kind=kind))
    for layer in _DOMAINS
    for kind in ("Add", "Sub", "Mul", "Div")
)
