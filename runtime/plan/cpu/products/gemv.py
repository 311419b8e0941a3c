"""Products of a few rows with weights, which are read once, where the parameter is."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.kernels.records import ACTIVATIONS, GEMV
from burnish.lowbit.packed import Packed
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.lowbit.block_weights import Weights, block_weights, digits
from burnish.plan.graph import Constant, Graph, Node, Value

_ROWS = 2
"""Rows up to which weights are read unpacked: packing pays for more."""

_LARGE = 64 << 20
"""Bytes of float weights from which on they are not packed: packing takes them twice,
but products of packed ones are faster by 10 to 30 %."""

_MUCH = 2 << 30
"""Bytes of a plan's float weights from which on none of _PANELS and more is packed.
Their products take up to 1.2 times as long for one row and for 128, 1.5 times for 32
and twice as long for 4, but such a model is in memory once, not twice."""

_PANELS = 1 << 20

_DOTS_ROWS = {GEMV["dots8"]: 12, GEMV["dots4"]: 8}
"""Rows up to which quantized weights are summed in integers: for more it is faster to
turn them into floats, a panel at a time as it is used."""


def gemv(
    b: Builder, node: Node, x: Value, weight: Any, bias: Any, *residual: Any
) -> bool:
    """Lower x (..., ins) times a parameter (outs, ins), or (ins, outs) if "turned".

    False where it is none of this kernel's.
    """
    if "gemv" in b.off or not isinstance(weight, Constant) or weight.stored is None:
        return False
    if bias is not None and not isinstance(bias, Constant):
        return False
    turned = bool(node.options.get("turned"))
    outs, ins = weight.shape[::-1] if turned else weight.shape
    if not ins or not x.size or x.size > max(_DOTS_ROWS.values()) * ins:
        return False
    found = _weights(b, weight, turned)
    if found is None or x.size > _DOTS_ROWS.get(found.mode, _ROWS) * ins:
        return False
    if bias is not None:
        bias = bias.then(lambda a: np.broadcast_to(a, (outs,)))
    _add(b, node, x, found, ins, outs, bias, *residual)
    return True


def times_vector(
    b: Builder, node: Node, matrix: Value | Constant, x: Value | Constant, mode: str
) -> None:
    """Lower a vector times the rows of a matrix (..., outs, ins), or the columns of one
    (ins, outs)."""
    outs = matrix.size // x.size
    _add(b, node, x, Weights(GEMV[mode], matrix), x.size, outs)


def _add(
    b: Builder, node: Node, x: Value | Constant, weights: Weights, ins: int, outs: int,
    bias: Constant | None = None, *residual: Any,
) -> None:  # fmt: skip
    act, low, high = node.act
    flops = 2 * x.size * outs
    scales, zeros = (
        None if each is None else b.constant(each)
        for each in (weights.scales, weights.zeros)
    )
    held = None
    if weights.has_digits and isinstance(x, Value):
        held = digits(b, x, ins)
    b.add(
        "gemv", b.shares(flops / 8), flops=flops, x=b.spot(x), digits=held,
        weight=b.spot(weights.codes), bias=None if bias is None else b.constant(bias),
        scales=scales, zeros=zeros,
        residual=b.spot(residual[0]) if residual else None,
        out=b.result(node.result), rows=x.size // ins, ins=ins, outs=outs,
        mode=weights.mode, block=weights.block, act=ACTIVATIONS.index(act), low=low,
        high=high,
    )  # fmt: skip


def _weights(b: Builder, weight: Constant, turned: bool) -> Weights | None:
    """The weights in a layout that the kernel reads; None where there is none."""
    assert weight.stored is not None
    if isinstance(weight.stored.held, Packed):
        return block_weights(b, weight, turned)
    if not is_in_place(b, weight):
        return None
    return Weights(GEMV["columns" if turned else "rows"], weight)


def small_weights(
    b: Builder, weight: Any, turned: bool
) -> tuple[Spot, Spot, Spot | None, int, int] | None:
    """Codes, scales, zeros, layout and block of a matrix whose panels become floats."""
    if "small_panels" in b.off or not isinstance(weight, Constant):
        return None
    found = block_weights(b, weight, turned)
    if found is None or not found.has_digits or found.scales is None:
        return None
    zeros = None if found.zeros is None else b.constant(found.zeros)
    codes, scales = b.spot(found.codes), b.constant(found.scales)
    return codes, scales, zeros, found.mode, found.block


def least_in_place(graph: Graph) -> int:
    """Bytes from which on a plan's float weights are read where the parameter is."""
    weights = {
        id(arg.stored): arg.bytes
        for node in graph.nodes
        for arg in node.args
        if isinstance(arg, Constant) and _is_float(arg)
    }
    return _PANELS if sum(weights.values()) >= _MUCH else _LARGE


def is_in_place(b: Builder, weight: Any) -> bool:
    """Whether it is a parameter that the plan reads where it is: of float32."""
    known = isinstance(weight, Constant) and _is_float(weight)
    return known and not b.half and weight.bytes >= b.least_in_place


def _is_float(weight: Constant) -> bool:
    """Whether it is a parameter of floats, not of smaller numbers."""
    stored = weight.stored
    if stored is None or weight.dtype != np.float32:
        return False
    return not isinstance(stored.held, Packed)
