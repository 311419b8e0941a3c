"""Norms, softmax and reductions: over rows of plain values, or whole maps."""

from __future__ import annotations

import math

import numpy as np

from burnish.kernels.records import FOLDS, REDUCTIONS
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import CHANNELS, LANES, blocks
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Constant, Node, Value


@lower("softmax", "softmax_or_zero", "log_softmax")
def softmax(b: Builder, node: Node) -> None:
    x, y = node.args[0], node.result
    need(isinstance(x, Value) and x.shape, "its input is a parameter")
    check(node, x)
    axis = node.options.get("axis", -1) % len(x.shape)
    b.add(
        "softmax", b.shares(20 * x.size), x=b.spot(x), out=b.result(y),
        rows=math.prod(x.shape[:axis]), width=x.shape[axis],
        inner=math.prod(x.shape[axis + 1 :]),
        zero_if_empty=node.name == "softmax_or_zero",
        is_log=node.name == "log_softmax",
    )  # fmt: skip


@lower("group_norm_of")
def group_norm(b: Builder, node: Node) -> None:
    x, *scales = node.args
    need(isinstance(x, Value), "its input is a parameter")
    check(node, x, *scales)
    weight, bias = (None if s is None else b.spot(s) for s in scales)
    groups = node.options["num_groups"]
    b.add(
        "group_norm", b.shares(8 * x.size, x.shape[0] * groups), x=b.spot(x),
        weight=weight, bias=bias, out=b.result(node.result), count=x.shape[0],
        groups=groups, channels=x.shape[1] // groups, inner=math.prod(x.shape[2:]),
        eps=node.options["eps"],
    )  # fmt: skip


@lower("layer_norm_from", "rms_norm_from")
def layer_norm(b: Builder, node: Node) -> None:
    x, *scales = node.args
    need(isinstance(x, Value) and x.shape, "its input has no axes")
    check(node, x, *scales)
    axis = node.options["axis"] % len(x.shape)
    shape = x.shape[axis:]
    width = math.prod(shape)
    spots = []
    for scale in (*scales, None)[:2]:
        need(scale is None or len(scale.shape) <= len(shape), "its weight has rows")
        if isinstance(scale, Constant):
            scale = scale.then(
                lambda a: np.ascontiguousarray(np.broadcast_to(a, shape)).reshape(-1)
            )
        elif scale is not None:
            need(scale.size == width, "its weight broadcasts")
        spots.append(None if scale is None else b.spot(scale))
    b.add(
        "layer_norm", b.shares(8 * x.size), x=b.spot(x), weight=spots[0],
        bias=spots[1], out=b.result(node.result), rows=x.size // width, width=width,
        center=node.name == "layer_norm_from", eps=node.options["eps"],
    )  # fmt: skip


@lower("reduce_mean", "reduce_sum", "reduce_max")
def reduce(b: Builder, node: Node) -> None:
    x, axes = _reduced(node)
    width = math.prod(x.shape[a] for a in axes)
    is_map = b.blocked_axis(x) == 1 and axes[0] == 2 and axes[-1] == len(x.shape) - 1
    if is_map:
        outer, inner = blocks(x.shape[1]) * x.shape[0], LANES
        source, out = b.spot(x, CHANNELS), b.result(node.result, CHANNELS)
    else:
        outer, inner = _around(x, axes)
        source, out = b.spot(x), b.result(node.result)
    b.add(
        "reduce", b.shares(2 * x.size), x=source, out=out, outer=outer, width=width,
        inner=inner, mode=REDUCTIONS["max" if node.name == "reduce_max" else "sum"],
        scale=1 / width if node.name == "reduce_mean" else 1.0,
    )  # fmt: skip


@lower("reduce_prod", "reduce_log_sum_exp")
def fold(b: Builder, node: Node) -> None:
    x, axes = _reduced(node)
    outer, inner = _around(x, axes)
    b.add(
        "fold", b.shares(8 * x.size, outer), x=b.spot(x), out=b.result(node.result),
        mode=FOLDS[node.name.removeprefix("reduce_")], outer=outer,
        width=math.prod(x.shape[a] for a in axes), inner=inner,
    )  # fmt: skip


def _reduced(node: Node) -> tuple[Value, tuple[int, ...]]:
    """What a node reduces, and along which axes: some that are side by side."""
    x = node.args[0]
    need(isinstance(x, Value) and x.shape, "its input has no axes")
    check(node, x)
    need(x.size, "it has no elements")
    rank, axes = len(x.shape), node.options["axes"]
    axes = (axes,) if isinstance(axes, int) else axes
    axes = tuple(range(rank)) if axes is None else sorted(a % rank for a in axes)
    need(axes, "it reduces no axis")
    need(axes[-1] - axes[0] == len(axes) - 1, "its axes are not side by side")
    return x, tuple(axes)


def _around(x: Value, axes: tuple[int, ...]) -> tuple[int, int]:
    """The sizes before the first of these axes and behind the last."""
    return math.prod(x.shape[: axes[0]]), math.prod(x.shape[axes[-1] + 1 :])


_WIDE = 1 << 10
"""Elements along an axis from which NumPy, which compares vectors, is faster."""


@lower("arg_max", "arg_min")
def arg_max(b: Builder, node: Node) -> None:
    x, axis = node.args[0], node.options["axis"]
    need(isinstance(x, Value) and x.shape, "its input has no axes")
    need(x.dtype in (np.float32, np.int64), f"its input is {x.dtype}")
    axis = 0 if axis is None and len(x.shape) == 1 else axis
    need(axis is not None, "it is over all axes")
    axis %= len(x.shape)
    width = x.shape[axis]
    need(0 < width < _WIDE and x.size, "NumPy is as fast along so long an axis")
    b.add(
        "arg_max", b.shares(4 * x.size), x=b.spot(x), out=b.result(node.result),
        outer=math.prod(x.shape[:axis]), width=width,
        inner=math.prod(x.shape[axis + 1 :]), is_min=node.name == "arg_min",
        last=node.options["select_last_index"], is_int=x.dtype == np.int64,
    )  # fmt: skip
