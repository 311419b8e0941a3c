"""Rounding: scales, the values that codes stand for, and moves of their elements.

An input that is rounded (`fake_quantize`) to 8 bits is not stored as such: products of
quantized weights read its codes, a byte each, and any other reader has it computed
then.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from burnish.capture import CaptureError
from burnish.lowbit import Level
from burnish.ops.quantized.small import small
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES, PLAIN, Layout, length, pixels
from burnish.plan.cpu.lowbit.codes import values_of_sum
from burnish.plan.cpu.lowbit.rounded import Rounded, by_product, is_fixed, scheme
from burnish.plan.cpu.table import LOWERED, lower, need
from burnish.plan.graph import Array, Node, Value, combined

_MOVING = ("reshape", "transpose", "getitem", "flip", "max_pool")
"""Operators whose result has the same codes, whether x is rounded before or after."""


@lower("calibrated")
def calibrated(b: Builder, node: Node) -> None:
    """Scales that cover an array: of all of it, or of each row."""
    (x,), scheme = node.args, node.options["scheme"]
    need(isinstance(x, Value) and x.dtype == np.float32, "it is not single precision")
    need(x.size, "it has no elements")
    is_byte = scheme.kind.whole and scheme.kind.bits <= 8
    need(is_byte and scheme.param == "float32", f"its scheme is {scheme}")
    need(scheme.level.kind in ("tensor", "row"), f"its scheme is {scheme}")
    fault = b.fault()
    is_whole = scheme.level.kind == "tensor"
    source = b.spot(x, _any_layout(b, x) if is_whole else PLAIN)
    rows = 1 if is_whole else x.size // x.shape[-1]
    width = x.size // rows
    scale = b.result(node.results[0])
    zero = b.result(node.results[1]) if scheme.mode == "affine" else None
    b.add(
        "calibrate", b.shares(x.size / 4) if rows > 1 else 1, x=source, scale=scale,
        zero=zero, fault=fault, rows=rows, width=width, x_row=width,
        low=scheme.kind.low, high=scheme.kind.high,
    )  # fmt: skip


@lower("fake_quantize")
def fake_quantize(b: Builder, node: Node) -> None:
    """Nothing yet: readers have the codes, or the values once they ask for them."""
    x, scale, zero = node.args
    kind, result = small(node.options["value"]), node.result
    need(isinstance(x, Value) and x.dtype == np.float32, "it is not single precision")
    need(x.size, "it has no elements")
    need(kind.whole, f"its values are {node.options['value']}")
    need(scale.dtype == np.float32, "its scales are not single precision")
    need(zero is None or zero.dtype == kind.dtype, f"its zero points, {kind.dtype}")
    is_one = math.prod(scale.shape) == 1
    is_by_row = node.options["blocks"] == Level.row().blocks(x.shape)
    need(is_one or is_by_row, "it has scales of blocks or channels")
    made = Rounded(x, scale, zero, int(kind.low), int(kind.high), is_one)
    if kind.bits > 8:
        _write_values(b, result, made)
        return
    known = b.rounded.get(x.place)
    if known is not None and _rounds_alike(b, known, made):
        b.rounded[result.place] = known
        b.deferred[result.place] = lambda: b.share(result, x)
        return
    _defer(b, result, made)


def _rounds_alike(b: Builder, one: Rounded, other: Rounded) -> bool:
    """Whether values that are rounded one way stay as they are in the other way.

    A plan for which this holds is made anew once a module's numbers are others.
    """
    if not (is_fixed(one) and is_fixed(other)) or one[3:] != other[3:]:
        return False
    pairs = [(one.scale, other.scale)]
    if one.zero is not None and other.zero is not None:
        pairs.append((one.zero, other.zero))
    elif one.zero is not other.zero:
        return False

    def alike(*numbers: Array | None) -> Array:
        halves = len(numbers) // 2
        is_alike = all(map(_equal, numbers[:halves], numbers[halves:]))
        if not is_alike:
            raise CaptureError("quantizers that rounded alike differ now")
        return np.zeros(1, np.float32)

    parts = [each for pair in zip(*pairs, strict=True) for each in pair]
    try:
        held = combined(alike, *parts)
    except CaptureError:
        return False
    b.constant(held)
    return True


def _equal(one: Any, other: Any) -> bool:
    return one.size == other.size == 1 and one.item() == other.item()


def moved(b: Builder, node: Node) -> bool:
    """Move x instead of its rounded values: the codes are the same, elsewhere.

    False where the node moves no value of one scale.
    """
    x = node.args[0] if node.args and node.name in _MOVING else None
    rounded = b.rounded.get(x.place) if isinstance(x, Value) else None
    if rounded is None or not rounded.one:
        return False
    result = node.result
    held = b.unnamed_value(result.shape)
    args = [rounded.x, *node.args[1:]]
    LOWERED[node.name](b, dataclasses.replace(node, args=args, results=[held]))
    _defer(b, result, rounded._replace(x=held))
    return True


def _defer(b: Builder, result: Value, rounded: Rounded) -> None:
    b.rounded[result.place] = rounded
    b.deferred[result.place] = lambda: _values(b, result, rounded)


def _any_layout(b: Builder, x: Value) -> Layout:
    """The layout of x; plain where others hold more than its elements."""
    forms = b.forms.get(x.place, ())
    return next((form for form in forms if length(x.shape, form) == x.size), PLAIN)


def _values(b: Builder, result: Value, r: Rounded) -> None:
    label, b.label = b.label, "fake_quantize"
    if not values_of_sum(b, result, r):
        _write_values(b, result, r)
    b.label = label


def _write_values(b: Builder, result: Value, r: Rounded) -> None:
    forms = b.forms.get(r.x.place)
    layout = next(iter(forms)) if forms and r.one else PLAIN
    source, count = b.spot(r.x, layout), length(r.x.shape, layout)
    width = r.x.shape[-1] if r.x.shape else 1
    if layout.kind == "blocked":
        width = LANES * pixels(r.x.shape, layout.axis)
    out = b.result(result, layout)
    if r.high > 127 or not by_product(b, r, source, "values", out):
        b.add(
            "fake_quantize", b.shares(4 * count), x=source, **scheme(b, r), out=out,
            rows=count // width, width=width, one=r.one,
        )  # fmt: skip
