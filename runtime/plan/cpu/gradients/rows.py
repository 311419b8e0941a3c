"""Gradients of layer norm, RMS norm and softmax over rows, and of broadcasting."""

from __future__ import annotations

import math
from typing import Any

from burnish.kernels.forms import CHUNK
from burnish.kernels.records import REDUCTIONS
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import CHANNELS, LANES, PLAIN, blocks
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Node, Value


@lower("layer_norm_from gradient", "rms_norm_from gradient")
def layer_norm_gradient(b: Builder, node: Node) -> None:
    """g and x, and the weight if there is one; the row's mean is found once more."""
    g, _, x, *scales = node.args
    need(isinstance(g, Value) and isinstance(x, Value), "it is of parameters alone")
    need(x.shape, "its input has no axes")
    weight = scales[0] if scales else None
    check(node, g, x, weight)
    axis = node.options["axis"] % len(x.shape)
    width = math.prod(x.shape[axis:])
    needed = [*node.lines[-1].function.needed, False, False][:3]
    results = iter(node.results)
    to_x, *to_scales = (next(results) if each else None for each in needed)
    for scale in (weight, *to_scales):
        need(scale is None or math.prod(scale.shape) == width, "its weight broadcasts")
    rows = x.size // width
    chunks = -(-rows // CHUNK)
    sums = [_sums(b, scale, chunks) for scale in to_scales]
    b.add(
        "layer_norm_gradient", b.shares(12 * x.size, most=chunks), g=b.spot(g),
        x=b.spot(x), weight=None if weight is None else b.spot(weight),
        out=None if to_x is None else b.result(to_x), dweight=sums[0], dbias=sums[1],
        rows=rows, width=width, center=node.name.startswith("layer_norm"),
        eps=node.options["eps"],
    )  # fmt: skip
    for part, scale in zip(sums, to_scales, strict=True):
        if scale is not None and chunks > 1:
            b.add(
                "reduce", 1, x=part, out=b.result(scale), outer=1, width=chunks,
                inner=width, mode=REDUCTIONS["sum"], scale=1.0,
            )  # fmt: skip


@lower("group_norm_of gradient")
def group_norm_gradient(b: Builder, node: Node) -> None:
    """What every example adds to the gradients of weight and bias, then their sums."""
    g, _, x, *scales = node.args
    need(isinstance(g, Value) and isinstance(x, Value), "it is of parameters alone")
    weight = scales[0] if scales else None
    check(node, g, x, weight)
    needed = [*node.lines[-1].function.needed, False, False][:3]
    need(needed[0], "its input needs no gradient")
    results = iter(node.results)
    to_x = next(results)
    to_scales = [next(results) if each else None for each in needed[1:]]
    count, channels = x.shape[:2]
    groups = node.options["num_groups"]
    sums = [each and b.new(4 * count * channels) for each in to_scales]
    b.add(
        "group_norm_gradient", b.shares(12 * x.size, most=count * groups),
        g=b.spot(g), x=b.spot(x), weight=None if weight is None else b.spot(weight),
        out=b.result(to_x), dweight=sums[0], dbias=sums[1], count=count,
        groups=groups, channels=channels // groups, inner=math.prod(x.shape[2:]),
        eps=node.options["eps"],
    )  # fmt: skip
    for part, scale in zip(sums, to_scales, strict=True):
        if scale is not None:
            b.add(
                "reduce", 1, x=part, out=b.result(scale), outer=1, width=count,
                inner=channels, mode=REDUCTIONS["sum"], scale=1.0,
            )  # fmt: skip


def _sums(b: Builder, scale: Value | None, chunks: int) -> Spot | None:
    """The place of the sums of chunks; the result itself where there is only one."""
    if scale is None:
        return None
    return b.result(scale) if chunks == 1 else b.new(4 * chunks * scale.size)


@lower("softmax gradient", "softmax_or_zero gradient", "log_softmax gradient")
def softmax_gradient(b: Builder, node: Node) -> None:
    g, y = node.args[:2]
    need(isinstance(g, Value) and isinstance(y, Value), "it is of parameters alone")
    need(y.shape, "its input has no axes")
    check(node, g, y)
    axis = node.options.get("axis", -1) % len(y.shape)
    b.add(
        "softmax_gradient", b.shares(6 * y.size), g=b.spot(g), y=b.spot(y),
        out=b.result(node.result), rows=math.prod(y.shape[:axis]), width=y.shape[axis],
        inner=math.prod(y.shape[axis + 1 :]), is_log=node.name.startswith("log"),
    )  # fmt: skip


@lower("sum_to")
def sum_to(b: Builder, node: Node) -> None:
    """Sums over all but the first axes, the last ones, or the channels."""
    x, y = node.args[0], node.result
    need(isinstance(x, Value) and x.size, "it is of parameters alone")
    check(node, x)
    rank = len(x.shape)
    shape = (1,) * (rank - len(y.shape)) + y.shape
    kept = [i for i in range(rank) if shape[i] != 1]
    first, behind = (kept[0], kept[-1] + 1) if kept else (0, 0)
    width = x.size // y.size
    given: dict[str, Any] = {"mode": REDUCTIONS["sum"], "scale": 1.0}
    if len(kept) < behind - first:
        gone = [i for i in range(first, behind) if i not in kept]
        need(gone[-1] - gone[0] < len(gone), "the axes that it keeps are apart")
        need(x.size // y.size == math.prod(x.shape[i] for i in gone), "it sums others")
        b.add(
            "reduce", b.shares(x.size), x=b.spot(x), out=b.result(y), width=width,
            outer=math.prod(x.shape[: gone[0]]),
            inner=math.prod(x.shape[gone[-1] + 1 :]), **given,
        )  # fmt: skip
        return
    if first == 1 and math.prod(x.shape[behind:]) > 1 and kept == [1]:
        out = b.new(4 * LANES * blocks(y.size))
        b.add(
            "reduce", b.shares(x.size), x=b.spot(x, CHANNELS), out=out,
            outer=blocks(y.size), width=width, inner=LANES, **given,
        )  # fmt: skip
        b.alias(y, PLAIN, out)
        return
    before, after = math.prod(x.shape[:first]), math.prod(x.shape[behind:])
    source = b.spot(x)
    if before > 1 < after:  # those behind first, each sum of its own
        part = b.new(4 * before * y.size)
        b.add(
            "reduce", b.shares(x.size), x=source, out=part, outer=before * y.size,
            width=after, inner=1, **given,
        )  # fmt: skip
        source, width = part, before
    outer, inner = (1, y.size) if before > 1 else (y.size, 1)
    b.add(
        "reduce", b.shares(x.size), x=source, out=b.result(y), outer=outer,
        width=width, inner=inner, **given,
    )  # fmt: skip
