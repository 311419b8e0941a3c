"""Cross entropy of classes, and its gradient, along an axis of plain values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.kernels.records import REDUCTIONS
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.moves.gather import whole_numbers
from burnish.plan.cpu.table import LOWERED, check, lower, need
from burnish.plan.graph import Constant, Node, Value, constant


@lower("target_classes")
def target_classes(b: Builder, node: Node) -> None:
    """Classes that are none are a fault: the plain call says which."""
    targets, weight = node.args
    out, shares, blank = node.results
    need(shares.dtype == np.float32, f"its weights are {shares.dtype}")
    need(out.dtype == np.int64, f"its classes are {out.dtype}")
    need(out.size, "it has no targets")
    if weight is not None:
        check(node, weight)
    ignored = node.options["ignore_index"]
    b.add(
        "target_classes", 1, targets=whole_numbers(b, targets),
        weight=None if weight is None else b.spot(weight), out=b.result(out),
        by=b.result(shares), blank=b.result(blank), fault=b.fault(),
        count=out.size, classes=node.options["classes"], ignores=ignored is not None,
        ignored=ignored or 0, is_mean=node.options.get("mean", False),
    )  # fmt: skip


@lower("softmax_cross_entropy")
def cross_entropy(b: Builder, node: Node) -> None:
    x, classes, shares, offset = node.args
    rows, width, inner = _rows(node, x, classes, shares)
    losses, softmax = node.results
    is_summed = node.options["summed"]
    out = b.new(4 * (rows * inner + 1)) if is_summed else b.result(losses)
    b.add(
        "cross_entropy", b.shares(20 * x.size), x=b.spot(x), classes=b.spot(classes),
        by=b.spot(shares), softmax=b.result(softmax), out=out, rows=rows,
        width=width, inner=inner,
    )  # fmt: skip
    if not is_summed:
        return
    if not isinstance(offset, Value | Constant):
        offset = constant(np.float32(offset or 0))
    check(node, offset)
    b.copy((1,), b.spot(offset), (1,), Spot(out.buffer, 4 * rows * inner), (1,))
    b.add(
        "reduce", 1, x=out, out=b.result(losses), outer=1, width=rows * inner + 1,
        inner=1, mode=REDUCTIONS["sum"], scale=1.0,
    )  # fmt: skip


@lower("softmax_cross_entropy gradient")
def cross_entropy_gradient(b: Builder, node: Node) -> None:
    g, of_softmax, _, softmax, x, classes, shares = node.args[:7]
    need(of_softmax is None, "a gradient of its softmax")
    need(len(node.results) == 1, "gradients of its shares")
    rows, width, inner = _rows(node, x, classes, shares)
    check(node, g, softmax)
    b.add(
        "cross_entropy_gradient", b.shares(4 * x.size), g=b.spot(g),
        softmax=b.spot(softmax), classes=b.spot(classes), by=b.spot(shares),
        out=b.result(node.result), rows=rows, width=width, inner=inner,
        is_summed=node.options["summed"],
    )  # fmt: skip


@lower("huber")
def huber(b: Builder, node: Node) -> None:
    """Of each pair of elements, or the sum of all."""
    x, other = node.args
    need(isinstance(x, Value) or isinstance(other, Value), "it is of parameters alone")
    check(node, x, other)
    need(x.size, "it has no elements")
    is_summed = node.options["summed"]
    made = b.unnamed_value(x.shape) if is_summed else node.result
    code = [("huber", 0, 1, 0, 0.0, float(node.options["delta"]))]
    LOWERED["program"](b, Node("program", [x, other], {"code": code}, [made], []))
    if is_summed:
        b.add(
            "reduce", 1, x=b.spot(made), out=b.result(node.result), outer=1,
            width=x.size, inner=1, mode=REDUCTIONS["sum"], scale=1.0,
        )  # fmt: skip


def _rows(node: Node, x: Any, classes: Any, shares: Any) -> tuple[int, int, int]:
    """x's sizes ahead of its classes, of them, and behind them."""
    known = isinstance(x, Value) and isinstance(classes, Value | Constant)
    need(known and isinstance(shares, Value | Constant), "it is of parameters alone")
    need(x.shape, "its input has no axes")
    check(node, x, shares)
    need(classes.dtype == np.int64, f"its classes are {classes.dtype}")
    axis = node.options["axis"] % len(x.shape)
    rows, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    count = rows * inner
    need(math.prod(classes.shape) == count == math.prod(shares.shape), "its shares")
    return rows, x.shape[axis], inner
