"""Products of a few rows with weights, which are read once, where the parameter is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.kernels.records import ACTIVATIONS, GEMV
from burnish.lowbit.packed import Packed
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.lowbit.packed_parts import PackedParts, numbers
from burnish.plan.graph import Constant, Node, Value

_ROWS = 2
"""Rows up to which weights are read as they lie: more are worth packing them."""

_LARGE = 64 << 20
"""Bytes of float weights from which on they are not packed: packing takes them twice,
but products of packed ones are faster by 10 to 30 %."""

_SMALL = 32
"""Block sizes of quantized weights are multiples of this: 16 bytes of 4-bit ones."""


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
    if x.size > _ROWS * ins or not ins:
        return False
    parts = _parts(weight, turned)
    if parts is None:
        return False
    mode, block, codes, scales, zeros = parts
    act, low, high = node.act
    flops = 2 * x.size * outs
    if bias is not None:
        bias = b.constant(bias.then(lambda a: np.broadcast_to(a, (outs,))))
    b.add(
        "gemv", b.shares(flops / 8), flops=flops, x=b.spot(x),
        weight=b.constant(codes), bias=bias,
        scales=None if scales is None else b.constant(scales),
        zeros=None if zeros is None else b.constant(zeros),
        residual=b.spot(residual[0]) if residual else None,
        out=b.result(node.result), rows=x.size // ins, ins=ins, outs=outs,
        mode=GEMV[mode], block=block, act=ACTIVATIONS.index(act), low=low, high=high,
    )  # fmt: skip
    return True


def _parts(weight: Constant, turned: bool) -> Any:
    """(mode, block, weights, scales, zero points); None where there is no mode."""
    stored = weight.stored
    assert stored is not None
    held = stored.held
    if not isinstance(held, Packed):
        if 4 * math.prod(weight.shape) < _LARGE or weight.dtype != np.float32:
            return None
        return "columns" if turned else "rows", 0, weight, None, None
    kind, shape = held.scheme.kind, held.shape
    block = _block(held)
    if turned or not kind.whole or kind.bits not in (4, 8) or not block:
        return None
    parts, counts = PackedParts(stored, held), (shape[0], shape[1] // block)

    def codes(packed: Packed) -> Any:
        return numbers(packed) if kind.bits == 8 else _nibbles(numbers(packed))

    def spread(part: Any) -> Any:
        wide = np.asarray(part).astype(np.float32)
        rows = wide.reshape(counts) if wide.size > 1 else np.broadcast_to(wide, counts)
        return np.ascontiguousarray(rows)

    size = shape if kind.bits == 8 else (shape[0], shape[1] // 2)
    zeros = None
    if held.zero_points is not None:
        zeros = parts.constant(lambda p: spread(p.zero_points), counts, np.float32)
    scales = parts.constant(lambda p: spread(p.scales), counts, np.float32)
    mode = "int8" if kind.bits == 8 else "int4"
    return mode, block, parts.constant(codes, size, np.uint8), scales, zeros


def _block(held: Packed) -> int:
    """The number of values along a row that share a scale; 0 where unsupported."""
    shape, level = held.shape, held.scheme.level
    counts = level.counts(shape)
    if math.prod(counts) == 1:
        block = shape[1]
    elif counts[0] != shape[0] or len(counts) > 2:
        return 0
    else:
        block = min(level.blocks(shape)[-1], shape[1])
    return 0 if block % _SMALL or shape[1] % block else block


def _nibbles(codes: Any) -> Any:
    """Codes of 4 bits as the kernel reads them: i and i + 16 of 32 in a byte."""
    halves = (codes + 8).astype(np.uint8).reshape(codes.shape[0], -1, 2, _SMALL // 2)
    return (halves[:, :, 0] | halves[:, :, 1] << 4).reshape(codes.shape[0], -1)
