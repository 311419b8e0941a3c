"""Lower element-wise operators on integers and booleans: indices, lengths, masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.kernels.records import WHOLE, WHOLE_KINDS
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import strides
from burnish.plan.cpu.table import lower, need
from burnish.plan.graph import Constant, Node, Value, constant

_OPERATORS = sorted(WHOLE.keys() - {"none", "fmod"})


@lower("cast", *_OPERATORS)
def whole(b: Builder, node: Node) -> None:
    """Single precision is converted to and from integers, and nothing else."""
    y, step = node.result, node.name
    args = [_operand(arg) for arg in node.args if arg is not None]
    kinds = [arg.dtype for arg in (*args, y)]
    for kind in kinds:
        need(str(kind) in WHOLE_KINDS, f"it has {kind}")
    need(y.size, "it has no elements")
    if step == "cast":
        step = "none"
    else:
        need(np.dtype(np.float32) not in kinds, "there is no kernel for it")
    if node.options.get("fmod"):
        step = "fmod"
    if step == "bitwise_not" and y.dtype == np.bool_:
        step = "logical_not"
    operands = [(*_read(b, arg, y.shape), arg.dtype) for arg in args]
    b.add_whole(step, operands, y.shape, b.result(y), y.dtype)


def _operand(arg: Any) -> Value | Constant:
    if isinstance(arg, bool | int | np.bool_ | np.integer):
        need(-(2**63) <= int(arg) < 2**63, f"an operand is {arg}")
        return constant(np.int64(arg))
    need(isinstance(arg, Value | Constant), f"an operand is {arg}")
    operand: Value | Constant = arg
    return operand


def _read(
    b: Builder, arg: Value | Constant, shape: tuple[int, ...]
) -> tuple[Spot, list[int]]:
    """An operand's place, and its strides along the axes of the result."""
    if isinstance(arg, Constant):
        spot, steps = b.constant(arg), strides(arg.shape)
    else:
        spot, steps = b.strided(arg)
    own = [0 if n == 1 else s for n, s in zip(arg.shape, steps, strict=True)]
    return spot, [0] * (len(shape) - len(own)) + own
