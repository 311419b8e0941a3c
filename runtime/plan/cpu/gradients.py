"""Gradients of convolutions, batch norm, pooling and activations with bounds."""

from __future__ import annotations

import math
from typing import Any

from burnish.ops._window import each, pairs
from burnish.plan.cpu.builder import Builder, Spot
from burnish.plan.cpu.conv import channelwise, check, dense, window_of
from burnish.plan.cpu.geometry import Adjoint, Window
from burnish.plan.cpu.layout import LANES, PLAIN, Layout, blocks, length, pixels
from burnish.plan.cpu.runs import runs_of
from burnish.plan.cpu.table import lower, need
from burnish.plan.cpu.weights import channel_weights, turned_weights
from burnish.plan.graph import Constant, Node, Value

_MAPS = Layout("blocked", 1)
_UNIT = 64  # channels in that a share of a weight's gradient has at most
_WIDE = 32  # and channels out


@lower("conv_input_gradient")
def to_input(b: Builder, node: Node) -> None:
    """As a convolution whose taps differ from one place of the result to the next."""
    g, weight = node.args[:2]
    need(
        isinstance(g, Value) and isinstance(weight, Value), "it is of parameters alone"
    )
    check(node, g, weight)
    groups = node.options["groups"]
    outs = weight.shape[1]
    kernel = tuple(weight.shape[2:])
    w = Adjoint(*window_of(node, kernel))
    if weight.shape[0] == groups > 1 == outs:
        packed = channel_weights(b, weight)
        channelwise(b, node, w, g, packed, math.prod(kernel), None)
        return

    def turned(nr: int, depth: int) -> Spot:
        return turned_weights(b, weight, groups, nr, depth)

    dense(b, node, w, g, turned, weight.shape[0] // groups, outs, None)


@lower("conv_weight_gradient")
def to_weight(b: Builder, node: Node) -> None:
    x, g = node.args[:2]
    need(isinstance(x, Value) and isinstance(g, Value), "it is of parameters alone")
    check(node, x, g)
    options, groups = node.options, node.options["groups"]
    kernel = tuple(options["kernel"])
    rank = len(kernel)
    stride = each(options["stride"], rank, "stride")
    dilation = each(options["dilation"], rank, "dilation")
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    pads = pairs(options["padding"], x.shape[2:], spans, stride, "padding")
    before = tuple(pad[0] for pad in pads)
    w = Window(x.shape[2:], g.shape[2:], kernel, stride, dilation, before)
    is_channelwise = 1 < groups == x.shape[1] == g.shape[1]
    need(groups == 1 or is_channelwise, f"{groups} groups")
    runs = runs_of(x.shape[0], w)
    taps = math.prod(kernel)
    given = {
        "x": b.spot(x, _MAPS),
        "g": b.spot(g, _MAPS),
        "out": b.result(node.result),
        "runs": b.table(runs.runs),
        "starts": b.table(runs.starts),
        "taps": taps,
        "chunks": runs.chunks,
        "x_by": runs.x_by,
        "g_by": runs.g_by,
        "x_block": LANES * pixels(x.shape, 1),
        "g_block": LANES * pixels(g.shape, 1),
    }
    flops = 2 * g.size * taps * (1 if is_channelwise else x.shape[1])
    if is_channelwise:
        shares = b.shares(flops / 2, most=blocks(x.shape[1]))
        room = taps * LANES
        b.add(
            "window_weight", shares, flops=flops, channels=x.shape[1], room=room,
            space=b.new(4 * shares * room), **given,
        )  # fmt: skip
        return
    units = -(-g.shape[1] // _WIDE) * -(-x.shape[1] // _UNIT)
    shares = b.shares(flops / 8, most=units)
    room = _UNIT * taps * _WIDE
    b.add(
        "conv_weight", shares, flops=flops, ins=x.shape[1], outs=g.shape[1], room=room,
        space=b.new(4 * shares * room), **given,
    )  # fmt: skip


@lower("channel_norm")
def norm(b: Builder, node: Node) -> None:
    x, scale, bias = node.args
    need(isinstance(x, Value), "its input is a parameter")
    check(node, x, scale, bias)
    y, mean, var = node.results
    act, low, high = node.act
    b.add(
        "channel_norm", b.shares(4 * x.size, most=blocks(x.shape[1])),
        x=b.spot(x, _MAPS), scale=_plain(b, scale), bias=_plain(b, bias),
        out=b.result(y, _MAPS), mean=b.result(mean), var=b.result(var),
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
        g=b.spot(g, _MAPS), x=b.spot(x, _MAPS),
        y=None if y is None else b.spot(y, _MAPS), mean=b.spot(mean), var=b.spot(var),
        scale=_plain(b, scale), out=b.result(inward[0], _MAPS),
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
    """Where the gradients of scale and bias go; None for one that nobody needs."""
    needed = [*node.lines[-1].function.needed, False, False][:3]
    rest = iter(node.results[1:])
    return next(rest) if needed[1] else None, next(rest) if needed[2] else None


def _plain(b: Builder, item: Value | Constant | None) -> Spot | None:
    return None if item is None else b.spot(item)


@lower("gated")
def gated(b: Builder, node: Node) -> None:
    g, x = node.args[:2]
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
    need(len(x.shape) == 4, "it is not of pictures")
    options = node.options
    kernel = each(options["kernel_size"], 2, "kernel")
    stride = each(options.get("stride") or kernel, 2, "stride")
    dilation = each(options.get("dilation", 1), 2, "dilation")
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
    b.add(
        "max_gradient", b.shares(g.size * math.prod(kernel)), g=b.spot(g, _MAPS),
        x=b.spot(x, _MAPS), out=b.result(node.result, _MAPS),
        planes=blocks(x.shape[1]) * x.shape[0],
        **{f"{name}{i}": numbers[name][i] for name in numbers for i in range(2)},
    )  # fmt: skip
