"""Values that are rounded: their scales, their values, and moves of their elements.

An input that is rounded (`fake_quantize`) is not stored as such: products of quantized
weights read its codes, a byte each, and any other reader has it computed then.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from burnish.lowbit import Level
from burnish.ops.small import small
from burnish.plan.cpu.builder import Builder, Spot
from burnish.plan.cpu.layout import LANES, PLAIN, Layout, length, pixels
from burnish.plan.cpu.table import LOWERED, lower, need
from burnish.plan.graph import Constant, Node, Value

_MOVING = ("reshape", "transpose", "getitem", "flip", "max_pool")
"""Operators whose result has the same codes, whether x is rounded before or after."""


class Rounded(NamedTuple):
    """The origin of a rounded value: x, and how to read its codes.

    one: a scale for all of x; else one for each row, along the last axis.
    """

    x: Value
    scale: Value | Constant
    zero: Value | Constant | None
    low: int
    high: int
    one: bool

    @property
    def values(self) -> list[Value]:
        parts = self.x, self.scale, self.zero
        return [part for part in parts if isinstance(part, Value)]


@lower("calibrated")
def calibrated(b: Builder, node: Node) -> None:
    """Scales that cover an array: of all of it, or of each row."""
    (x,), scheme = node.args, node.options["scheme"]
    need(isinstance(x, Value) and x.dtype == np.float32, "it is not single precision")
    need(x.size, "it has no elements")
    need(scheme.kind.whole and scheme.param == "float32", f"its scheme is {scheme}")
    need(scheme.level.kind in ("tensor", "row"), f"its scheme is {scheme}")
    fault = b.fault()
    is_whole = scheme.level.kind == "tensor"
    source = b.spot(x, _any_layout(b, x) if is_whole else PLAIN)
    rows = 1 if is_whole else x.size // x.shape[-1]
    scale = b.result(node.results[0])
    zero = b.result(node.results[1]) if scheme.mode == "affine" else None
    b.add(
        "calibrate", b.shares(x.size / 4) if rows > 1 else 1, x=source, scale=scale,
        zero=zero, fault=fault, rows=rows, width=x.size // rows,
        low=scheme.kind.low, high=scheme.kind.high,
    )  # fmt: skip


@lower("fake_quantize")
def fake_quantize(b: Builder, node: Node) -> None:
    """Nothing yet: readers have the codes, or the values once they ask for them."""
    x, scale, zero = node.args
    kind, result = small(node.options["value"]), node.result
    need(isinstance(x, Value) and x.dtype == np.float32, "it is not single precision")
    need(x.size, "it has no elements")
    need(kind.whole and kind.bits <= 8, f"its values are {node.options['value']}")
    need(scale.dtype == np.float32, "its scales are not single precision")
    need(zero is None or zero.dtype == np.int8, "its zero points are no bytes")
    is_one = math.prod(scale.shape) == 1
    is_by_row = node.options["blocks"] == Level.row().blocks(x.shape)
    need(is_one or is_by_row, "it has scales of blocks or channels")
    _defer(b, result, Rounded(x, scale, zero, int(kind.low), int(kind.high), is_one))


def moved(b: Builder, node: Node) -> bool:
    """Bring x, not what is rounded of it, to other places: the same codes, moved.

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
    forms = b.forms.get(r.x.place)
    layout = next(iter(forms)) if forms and r.one else PLAIN
    source, count = b.spot(r.x, layout), length(r.x.shape, layout)
    width = r.x.shape[-1] if r.x.shape else 1
    if layout.kind == "blocked":
        width = LANES * pixels(r.x.shape, layout.axis)
    out = b.result(result, layout)
    if not by_product(b, r, source, "values", out):
        b.add(
            "fake_quantize", b.shares(4 * count), x=source, **scheme(b, r), out=out,
            rows=count // width, width=width, one=r.one,
        )  # fmt: skip
    b.label = label


def by_product(
    b: Builder, r: Rounded, source: Spot, name: str, out: Spot,
    size: tuple[int, int] | None = None, **more: Spot,
) -> bool:  # fmt: skip
    """Let the product that gives a value write its codes, or their values, too.

    name: "codes" or "values". size: rows and columns that codes need. False where no
    product gives the value, where scales are known only after it, or where it rounds
    its results in another way already.
    """
    if not isinstance(r.scale, Constant) or isinstance(r.zero, Value) or not r.one:
        return False
    told = {f"y_{part}": held for part, held in scheme(b, r).items()}
    for number, step in enumerate(b.steps):
        fields = step.fields
        if step.kind != "quantized" or fields["out"] != source or fields[name]:
            continue
        if size is not None and (fields["rows"], fields["outs"]) != size:
            continue
        if fields["y_scale"] and any(fields[key] != told[key] for key in told):
            continue
        told |= {name: out, **more}
        for held in told.values():
            if isinstance(held, Spot):
                held.buffer.used(number)
        fields |= told
        return True
    return False


def scheme(b: Builder, r: Rounded) -> dict[str, Any]:
    """The fields of a record that tell how it rounds."""
    zero = None if r.zero is None else b.spot(r.zero)
    return {"scale": b.spot(r.scale), "zero": zero, "low": r.low, "high": r.high}
