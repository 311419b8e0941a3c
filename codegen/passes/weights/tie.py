"""Tie a weight and its transposed copy that an exporter stored for a tied head.

torch's exporters write `x @ weight.T` with the transposed weight as another constant
("val_2", "onnx::MatMul_9"). Where the weight itself is in the file too, under its name,
the two are tied: the head shares the embedding's weight.
"""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.weights import constants, origin

_COUNTED = re.compile(r"(val_|onnx::\w+_)\d+")
_PRODUCTS = (("", "MatMul"), ("", "Gemm"), ("burnish", "Linear"))


def tie_weights(model: ir.Model, account: Account) -> bool:
    """Let products with a transposed copy of a named weight read that weight."""
    named: dict[tuple[int, ...], list[ir.Value]] = defaultdict(list)
    counted: list[ir.Value] = []
    for value in model.graph.initializers.values():
        if (shape := _matrix(value)) is not None:
            if _COUNTED.fullmatch(value.name or ""):
                counted.append(value)
            else:
                named[shape].append(value)
    changed = False
    for value in counted:
        rows, columns = _matrix(value) or (0, 0)
        for weight in named[columns, rows]:
            if _is_turned(value, weight):
                changed |= _tied(model, value, weight, account)
                break
    return changed


def _matrix(value: ir.Value) -> tuple[int, ...] | None:
    """The shape of a weight with two axes."""
    tensor = g.constant(value)
    if tensor is None or len(tensor.shape) != 2 or not constants.trains(value):
        return None
    return tuple(tensor.shape.numpy())


def _is_turned(value: ir.Value, weight: ir.Value) -> bool:
    """Whether both hold the same numbers, which are not all one."""
    a, b = g.constant(value), g.constant(weight)
    if a is None or b is None or a.dtype != b.dtype or a.size < 2:
        return False
    one, other = a.numpy(), b.numpy().T
    if not np.array_equal(one[0], other[0]) or not np.array_equal(one, other):
        return False
    return bool((one != one[0, 0]).any())


def _tied(model: ir.Model, value: ir.Value, weight: ir.Value, account: Account) -> bool:
    """Let the products read the weight, transposed as layers have it."""
    changed = False
    for node, index in list(value.uses()):
        product = (node.domain, node.op_type)
        if index != 1 or product not in _PRODUCTS or g.attribute(node, "transB", 0):
            continue
        if product == ("", "MatMul"):
            node.domain, node.op_type, node.version = "burnish", "Linear", 1
            model.opset_imports.setdefault("burnish", 1)
        node.replace_input_with(1, weight)
        node.attributes["transB"] = ir.AttrInt64("transB", 1)
        origin.replaced(value.const_value, weight.const_value, np.transpose)
        account.did("tied weight, stored transposed", g.label(node))
        changed = True
    return changed
