"""Gradients of linear layers, batch norm, pooling and activations with bounds."""

from __future__ import annotations

import math
from typing import Any

from burnish.kernels.records import REDUCTIONS
from burnish.ops._kernels.window import each, pairs
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.conv import times
from burnish.plan.cpu.convolution.geometry import Window
from burnish.plan.cpu.convolution.runs import runs_of
from burnish.plan.cpu.convolution.weights import Unpacked, turned_weights
from burnish.plan.cpu.gradients.weights import weight_sums
from burnish.plan.cpu.layout import (
    CHANNELS,
    LANES,
    PLAIN,
    Layout,
    blocks,
    length,
    pixels,
)
from burnish.plan.cpu.products.row_layout import rows_layout
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Constant, Node, Value

_TURNED = 32 << 20
"""The most bytes of a gradient that is turned for products of bfloat16."""


@lower("linear gradient")
def linear_gradient(b: Builder, node: Node) -> None:
    """g (..., O), of x (..., K) and weight (O, K)."""
    g, _, x, weight, *_ = node.args
    g, x = map(b.as_value, (g, x))
    for value in (g, x):
        need(isinstance(value, Value), "one of its inputs is a parameter")
    check(node, g, x, weight)
    outs, ins = weight.shape
    needed = [*node.lines[-1].function.needed, False][:3]
    results = iter(node.results)
    to_x, to_weight, to_bias = (next(results) if each else None for each in needed)
    count = x.size // ins

    def turned(nr: int, depth: int) -> Spot | Unpacked:
        return turned_weights(b, weight, 1, nr, depth)

    if to_x is not None:
        times(b, node, g, turned, outs, ins, None)
    if to_weight is not None and b.half and count >= LANES and 4 * g.size <= _TURNED:
        _rounded_to_weight(b, to_weight, g, x)
    elif to_weight is not None:
        w = Window((count,), (count,), (1,), (1,), (1,), (0,))
        in_rows, out_rows = (_whole_rows(b, value) for value in (x, g))
        steps = [
            ins if in_rows == PLAIN else LANES,
            outs if out_rows == PLAIN else LANES,
        ]
        block = [LANES if step > LANES else LANES * count for step in steps]
        weight_sums(
            b, runs_of(1, w, *steps), 1, ins, outs, count, b.result(to_weight),
            x=b.spot(x, in_rows), g=b.spot(g, out_rows), x_by=steps[0], g_by=steps[1],
            x_block=block[0], g_block=block[1],
        )  # fmt: skip
    if to_bias is not None:
        in_blocks = b.blocked_axis(g) == len(g.shape) - 1 and outs % LANES == 0
        outer, inner = (outs // LANES, LANES) if in_blocks else (1, outs)
        layout = rows_layout(b, g) if in_blocks else PLAIN
        b.add(
            "reduce", 1, x=b.spot(g, layout), out=b.result(to_bias), outer=outer,
            width=count, inner=inner, mode=REDUCTIONS["sum"], scale=1.0,
        )  # fmt: skip


def _rounded_to_weight(b: Builder, to_weight: Value, g: Value, x: Value) -> None:
    """The same by products of bfloat16 that are summed in float32."""
    outs, ins = to_weight.shape
    count = x.size // ins
    back, rows = b.unnamed_value((outs, count)), b.unnamed_value((count, ins))
    turned = b.new(4 * back.size)
    b.copy(back.shape, b.spot(g), (1, outs), turned, (count, 1))
    b.alias(back, PLAIN, turned)
    b.alias(rows, PLAIN, b.spot(x))

    def packed(nr: int, depth: int) -> Spot | Unpacked:
        return turned_weights(b, rows, 1, nr, depth)

    times(
        b,
        Node("linear gradient", [], {}, [to_weight], []),
        back,
        packed,
        count,
        ins,
        None,
    )


def _whole_rows(b: Builder, x: Value) -> Layout:
    """The vector layout of rows: in blocks where the last vector is not full."""
    axis = len(x.shape) - 1
    return Layout("blocked", axis) if x.shape[axis] % LANES else rows_layout(b, x)


@lower("channel_norm")
def norm(b: Builder, node: Node) -> None:
    x, scale, bias = node.args
    need(isinstance(x, Value), "its input is a parameter")
    check(node, x, scale, bias)
    y, mean, var = node.results
    act, low, high = node.act
    b.add(
        "channel_norm", b.shares(4 * x.size, most=blocks(x.shape[1])),
        x=b.spot(x, CHANNELS), scale=_plain(b, scale), bias=_plain(b, bias),
        out=b.result(y, CHANNELS), mean=b.result(mean), var=b.result(var),
        pixels=pixels(x.shape, 1), channels=x.shape[1], has_low=act != "none",
        eps=node.options["eps"], low=low, high=high,
    )  # fmt: skip


@lower("channel_norm gradient")
def norm_gradient(b: Builder, node: Node) -> None:
    g, others, _, mean, var, x, scale, bias, gate = _of_norm(node)
    need(not any(each is not None for each in others), "gradients of its statistics")
    check(node, g, x, scale, bias)
    inward, *slopes = node.results[:1], *_slopes(node)
    need(node.lines[-1].function.needed[0], "its input needs no gradient")
    y, above, below = gate if gate else (None, 0.0, 0.0)
    dscale, dbias = slopes
    b.add(
        "channel_norm_gradient", b.shares(6 * x.size, most=blocks(x.shape[1])),
        g=b.spot(g, CHANNELS), x=b.spot(x, CHANNELS),
        y=None if y is None else b.spot(y, CHANNELS),
        mean=b.spot(mean), var=b.spot(var),
        scale=_plain(b, scale), out=b.result(inward[0], CHANNELS),
        dscale=dscale and b.result(dscale), dbias=dbias and b.result(dbias),
        pixels=pixels(x.shape, 1), channels=x.shape[1], eps=node.options["eps"],
        above=above, below=below,
    )  # fmt: skip


def _of_norm(node: Node) -> Any:
    g, dmean, dvar, y, mean, var, x, *rest = node.args
    scale, bias = (*rest, None, None)[:2]
    need(isinstance(g, Value) and isinstance(x, Value), "it is of parameters alone")
    return g, (dmean, dvar), y, mean, var, x, scale, bias, node.options.get("gate")


def _slopes(node: Node) -> tuple[Value | None, Value | None]:
    """The places of the gradients of scale and bias; None for one that is not read."""
    needed = [*node.lines[-1].function.needed, False, False][:3]
    rest = iter(node.results[1:])
    return next(rest) if needed[1] else None, next(rest) if needed[2] else None


def _plain(b: Builder, item: Value | Constant | None) -> Spot | None:
    return None if item is None else b.spot(item)


@lower("gated")
def gated(b: Builder, node: Node) -> None:
    g, x = map(b.as_value, node.args[:2])
    need(isinstance(g, Value) and isinstance(x, Value), "it is of parameters alone")
    need(g.shape == x.shape, "its arguments are of two shapes")
    check(node, g, x)
    options = node.options
    axis = b.blocked_axis(x)
    layout = PLAIN if axis is None else Layout("blocked", axis)
    count = length(x.shape, layout)
    below = options["below"]
    b.add(
        "gate", b.shares(2 * count), g=b.spot(g, layout), x=b.spot(x, layout),
        out=b.result(node.result, layout), count=count, has_below=below is not None,
        above=options["above"], below=0 if below is None else below,
        slope=options["slope"],
    )  # fmt: skip


@lower("max_pool gradient")
def max_gradient(b: Builder, node: Node) -> None:
    g, _, x = node.args[:3]
    need(isinstance(g, Value) and isinstance(x, Value), "it is of parameters alone")
    check(node, g, x)
    rank = len(x.shape) - 2
    need(rank < 4, f"it is of {rank} axes")
    options = node.options
    kernel = each(options["kernel_size"], rank, "kernel")
    stride = each(options.get("stride") or kernel, rank, "stride")
    dilation = each(options.get("dilation", 1), rank, "dilation")
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    pads = pairs(options.get("padding", 0), x.shape[2:], spans, stride, "padding")
    before = [pad[0] for pad in pads]
    numbers = {
        "size": x.shape[2:],
        "place": g.shape[2:],
        "step": stride,
        "kernel": kernel,
        "dilation": dilation,
        "before": before,
    }
    if rank == 3:
        _volumes(b, node, g, x, numbers)
        return
    if rank == 1:  # maps of one row
        numbers = {
            name: (int(name != "before"), *each) for name, each in numbers.items()
        }
        numbers["before"] = (0, *before)
    b.add(
        "max_gradient", b.shares(g.size * math.prod(kernel)), g=b.spot(g, CHANNELS),
        x=b.spot(x, CHANNELS), out=b.result(node.result, CHANNELS),
        planes=blocks(x.shape[1]) * x.shape[0],
        **{f"{name}{i}": numbers[name][i] for name in numbers for i in range(2)},
    )  # fmt: skip


def _volumes(
    b: Builder, node: Node, g: Value, x: Value, numbers: dict[str, Any]
) -> None:
    """The gradient of max pooling over three axes, of values that are not in blocks."""
    work = g.size * math.prod(numbers["kernel"])
    b.add(
        "max_pool_gradient", b.shares(work), g=b.spot(g), x=b.spot(x),
        out=b.result(node.result), planes=math.prod(x.shape[:2]),
        **{f"{name}{i}": numbers[name][i] for name in numbers for i in range(3)},
    )  # fmt: skip
