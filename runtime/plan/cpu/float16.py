"""Values of float16 where they enter the records and leave them, and casts to it."""

from __future__ import annotations

from burnish.kernels.records import FLOAT16
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.table import lower, need
from burnish.plan.cpu.whole import whole
from burnish.plan.graph import Node, Value


def enters(b: Builder, value: Value, outer: Value) -> Spot:
    """An array of float16 from outside; `value` is its numbers, once they are read."""
    source = b.new(2 * outer.size, outside=True)
    b.deferred[value.place] = lambda: _add(b, "widen", source, b.result(value), value)
    return source


def leaves(b: Builder, value: Value) -> Spot:
    """A value's numbers as float16, in an array that is made for this run."""
    out = b.new(2 * value.size, outside=True)
    _add(b, "narrow", b.spot(value), out, value)
    return out


@lower("to_float16")
def to_float16(b: Builder, node: Node) -> None:
    x, y = node.args[0], node.result
    need(isinstance(x, Value), "its input is a parameter")
    need(y.size, "it has no elements")
    if x.dtype != y.dtype:
        numbers = b.unnamed_value(x.shape)
        whole(b, Node("cast", [x], {}, [numbers], node.lines))
        x = numbers
    _add(b, "round", b.spot(x), b.result(y), y)


def _add(b: Builder, way: str, x: Spot, out: Spot, value: Value) -> None:
    label, b.label = b.label, b.label if way == "round" else f"{way} float16"
    b.add(
        "float16", b.shares(value.size), x=x, out=out, count=value.size,
        way=FLOAT16[way],
    )  # fmt: skip
    b.label = label
