"""Convolutions and products with weights."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.kernels.forms import even
from burnish.kernels.records import ACTIVATIONS
from burnish.ops._kernels.window import each, pairs
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.diagonal import on_diagonal
from burnish.plan.cpu.convolution.geometry import Adjoint, Tiles, Window, tiled
from burnish.plan.cpu.convolution.grouped import (
    Groups,
    Part,
    is_split_faster,
    merged,
    merged_weight,
    part_weight,
    split,
    uneven,
)
from burnish.plan.cpu.convolution.halo import tiled_maps
from burnish.plan.cpu.convolution.narrow import is_narrow, narrow, narrow_rows
from burnish.plan.cpu.convolution.phases import (
    copy_phases,
    has_few_channels,
    of_phases,
    phase_weight,
)
from burnish.plan.cpu.convolution.picked import picked
from burnish.plan.cpu.convolution.planes import is_of_planes, planes
from burnish.plan.cpu.convolution.weights import (
    Small,
    Unpacked,
    biases,
    channel_weights,
    fitting,
    pack,
    packing,
    scaled,
    turned,
    turned_weights,
    weights,
)
from burnish.plan.cpu.convolution.winograd import Taps, is_faster, winograd
from burnish.plan.cpu.layout import (
    CHANNELS,
    LANES,
    PLAIN,
    Layout,
    blocks,
    pixels,
)
from burnish.plan.cpu.lowbit.quantized import quantized_conv, quantized_linear
from burnish.plan.cpu.products.gemv import gemv, is_in_place, small_weights
from burnish.plan.cpu.products.half import half_spot
from burnish.plan.cpu.products.row_layout import result_layout, rows_layout
from burnish.plan.cpu.table import LOWERED, check, lower, need
from burnish.plan.graph import Constant, Node, Value
from burnish.plan.rewrites.gates import GATE

Packed = Callable[[int, int], Spot | Unpacked | Small]
"""Where weights are, packed for so many blocks of outputs and channels in a row."""

_CACHE, _MORE = 128 << 10, 384 << 10
"""Bytes of input that a run of tiles may read: they stay in the second-level cache.
More where weights come from further away, once for each run."""

_ROUND = 48
"""Tiles of rows with a kernel of their own, up to which all are multiplied by a
group's weights before the next group's. Rows come from the third-level cache as fast as
they are multiplied; weights, which may come from memory, are read once."""

_SECOND = 768 << 10
"""Bytes of input that stay in the second-level cache for all groups of outputs."""


def window_of(node: Node, kernel: tuple[int, ...]) -> Window:
    """A node's window over the spatial axes of its input."""
    sizes, out = node.args[0].shape[2:], node.result.shape[2:]
    options, rank = node.options, len(kernel)
    stride = each(options["stride"] or kernel, rank, "stride")
    dilation = each(options["dilation"], rank, "dilation")
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    pads = pairs(options["padding"], sizes, spans, stride, "padding")
    before = tuple(pad[0] for pad in pads)
    return Window(tuple(sizes), tuple(out), kernel, stride, dilation, before)


@lower("conv")
def conv(b: Builder, node: Node) -> None:
    x, weight, bias, *residual = node.args
    need(isinstance(x, Value), "its input is a parameter")
    check(node, x, weight, bias)
    groups = node.options["groups"]
    w = window_of(node, tuple(weight.shape[2:]))
    gate = node.options.get(GATE)
    if gate is None and quantized_conv(b, node, w):
        return
    if gate is not None and (x.shape[0] > 1 or b.half):  # no weight is for all samples
        x = _gated(b, x, gate)
        node = dataclasses.replace(node, options={**node.options, GATE: None})
    if groups > 1 and groups == x.shape[1] == weight.shape[0]:
        taps, packed = math.prod(w.kernel), channel_weights(b, weight)
        channelwise(b, node, w, x, packed, taps, bias, *residual)
        return
    filters = Taps(weight)
    if is_faster(b, node, w, filters):
        winograd(b, node, w, x, filters, bias, *residual)
        return
    _dense(b, node, w, x, weight, bias, *residual)


def _gated(b: Builder, x: Value, gate: Value) -> Value:
    """x times a number for each channel of each sample."""
    made = b.unnamed_value(x.shape)
    code = [("mul", 0, 1, 0, 0.0, 0.0)]
    LOWERED["program"](b, Node("program", [x, gate], {"code": code}, [made], []))
    return made


@lower("conv_transpose", "conv_input_gradient")
def conv_transpose(b: Builder, node: Node) -> None:
    """As a convolution whose taps differ from one place of the result to the next."""
    x, weight, *rest = node.args
    bias, *residual = rest or [None]
    x = b.as_value(x)
    need(isinstance(x, Value), "its input is a parameter")
    check(node, x, weight, bias)
    groups = node.options["groups"]
    g = Groups(groups, weight.shape[0] // groups, weight.shape[1])
    kernel = tuple(weight.shape[2:])
    w = Adjoint(*window_of(node, kernel))
    filters = Taps(weight, is_turned=True)
    if g.ins == g.outs == 1 < groups:
        packed = channel_weights(b, weight)
        channelwise(b, node, w, x, packed, math.prod(kernel), bias, *residual)
    elif is_faster(b, node, w, filters):
        winograd(b, node, w, x, filters, bias, *residual)
    elif isinstance(weight, Constant):
        few = groups == 1 and has_few_channels(w, g.outs)
        phases = phase_weight(weight, w) if few else None
        if (
            phases
            and not isinstance(bias, Value)
            and not _is_narrow(b, x, phases, bias)
        ):
            _in_phases(b, node, w, x, phases, bias, *residual)
        else:
            _dense(b, node, w, x, turned(weight, groups), bias, *residual)
    else:
        if not g.are_blocks:
            if b.may_fault or node.name == "conv_transpose":  # updates wait for no
                _check_finite(b, x)  # gradient of a step
            weight, groups = on_diagonal(b, weight, groups)
            g = Groups(groups, weight.shape[0] // groups, weight.shape[1])

        def of_step(nr: int, depth: int) -> Spot | Unpacked:
            return turned_weights(b, weight, groups, nr, depth)

        dense(b, node, w, x, of_step, g, bias, *residual)


def _is_narrow(b: Builder, x: Value, weight: Any, bias: Any) -> bool:
    return is_narrow(b, weight, bias, maps_layout(b, x))


def _in_phases(
    b: Builder, node: Node, w: Window, x: Value, weight: Constant,
    bias: Constant | None, *residual: Any,
) -> None:  # fmt: skip
    """weight: that of the phases."""
    _check_finite(b, x)
    count, times = x.shape[0], math.prod(w.stride)
    wide = of_phases(w)
    shape = (count, weight.shape[0], *wide.out)
    made, added = b.unnamed_value(shape), list[Value]()
    for value in residual:
        added.append(b.unnamed_value(shape))
        copy_phases(b, value, added[-1], w.stride, back=True)
    own = dataclasses.replace(node, results=[made])
    bias = bias and bias.then(lambda a: np.tile(a, times))
    _dense(b, own, wide, x, weight, bias, *added)
    copy_phases(b, node.result, made, w.stride, back=False)


def _dense(
    b: Builder, node: Node, w: Window, x: Value, weight: Constant | Value, bias: Any,
    *residual: Any,
) -> None:  # fmt: skip
    count = node.options["groups"]
    g = Groups(count, weight.shape[1], weight.shape[0] // count)
    is_alone = count == 1 and node.options.get(GATE) is None
    if isinstance(weight, Constant) and is_alone and _is_narrow(b, x, weight, bias):
        layout = maps_layout(b, x)
        source = b.spot(x, layout)
        narrow(b, node, w, x, source, layout, weight, bias, *residual)
        return
    is_plain = is_alone and not residual
    if isinstance(weight, Constant) and is_plain and is_of_planes(b, x, w, bias):
        planes(b, node, w, x, weight, bias)
        return
    if not g.are_blocks:
        _check_finite(b, x)
        if not isinstance(weight, Constant):
            weight, count = on_diagonal(b, weight, count)
            g = Groups(count, weight.shape[1], weight.shape[0] // count)
        elif is_split_faster(g) and not isinstance(bias, Value):
            _in_parts(b, node, w, x, weight, g, split(g), bias, *residual)
            return
        else:
            weight, g = merged_weight(weight, g), merged(g)

    is_simple = is_alone and math.prod(w.kernel) == 1 and not isinstance(bias, Value)
    if isinstance(weight, Constant) and is_simple and maps_layout(b, x) is CHANNELS:
        places = pixels(node.result.shape, 1)
        if (parts := uneven(b.rows, g, places)) is not None:
            _in_parts(b, node, w, x, weight, g, parts, bias, *residual)
            return

    def packed(nr: int, depth: int) -> Spot | Unpacked:
        made = weights(b, weight, g.number, nr, depth)
        gate = node.options.get(GATE)
        if gate is None or isinstance(made, Unpacked):
            need(gate is None, "its gated weights change")
            return made
        return scaled(b, made, gate, -(-blocks(g.outs) // nr), g.ins, nr * LANES)

    dense(b, node, w, x, packed, g, bias, *residual)


def dense(
    b: Builder, node: Node, w: Window, x: Value, packed: Packed, g: Groups, bias: Any,
    *residual: Any,
) -> None:  # fmt: skip
    """A convolution of maps; packed: gives the weights for tiles and a depth."""
    need(g.are_blocks, f"groups of {g.ins} channels in and {g.outs} out")
    layout = maps_layout(b, x)
    source = _read(b, x, layout, 1)
    step = LANES if layout is CHANNELS else _length(b, x.shape[1])
    out = b.result(node.result, CHANNELS)
    extra = b.spot(residual[0], CHANNELS) if residual else None
    _maps(b, node, w, x, source, step, packed, g, bias, out, extra)


def _in_parts(
    b: Builder, node: Node, w: Window, x: Value, weight: Constant, g: Groups,
    parts: list[Part], bias: Constant | None, *residual: Any,
) -> None:  # fmt: skip
    """Channels out with inputs or tiles of their own: a dense convolution a part."""
    source, out = _read(b, x, CHANNELS, 1), b.result(node.result, CHANNELS)
    extra = b.spot(residual[0], CHANNELS) if residual else None
    places = pixels(x.shape, 1), pixels(node.result.shape, 1)
    size = 2 if b.half else 4
    for part in parts:
        own = part_weight(weight, g, part)
        own_source = source.moved(size * part.ins.start * places[0])
        at, chosen = part.outs.start * places[1], slice(part.outs.start, part.outs.stop)
        own_bias = bias and bias.then(lambda a, chosen=chosen: a[chosen])

        def packed(nr: int, depth: int, own: Constant = own) -> Spot | Unpacked:
            return weights(b, own, 1, nr, depth)

        _maps(
            b, node, w, x, own_source, LANES, packed,
            Groups(1, len(part.ins), len(part.outs)), own_bias, out.beyond(at),
            None if extra is None else extra.beyond(at),
        )  # fmt: skip


def _maps(
    b: Builder, node: Node, w: Window, x: Value, source: Spot, step: int,
    packed: Packed, g: Groups, bias: Any, out: Spot, residual: Spot | None,
) -> None:  # fmt: skip
    sums = g.ins * math.prod(w.kernel)
    nr = fitting(b.rows, blocks(g.outs), pixels(node.result.shape, 1), sums)
    source, w = picked(b, w, x.shape[0], source, step, g)
    source, tiles, places = tiled_maps(b, w, x.shape[0], source, step, g, nr)
    _add(
        b, node, tiles, nr,
        x=source, step=step, ins=g.ins, taps=math.prod(w.kernel), groups=g.number,
        outs=g.outs, weight=packed, bias=bias, out=out, out_step=LANES,
        x_block=LANES * places,
        out_block=LANES * pixels(node.result.shape, 1), residual=residual, width=0,
    )  # fmt: skip


def _read(b: Builder, x: Value, layout: Layout, axis: int) -> Spot:
    """Where a product reads a value whose channels are along `axis`."""
    return half_spot(b, x, layout, axis) if b.half else b.spot(x, layout)


def _length(b: Builder, channels: int) -> int:
    """The numbers in a row of so many channels, as `_read` has them."""
    return even(channels) if b.half else channels


def maps_layout(b: Builder, x: Value) -> Layout:
    """Blocks of channels; of few channels rows of them, plain where it is the same."""
    if x.shape[1] >= LANES or b.has(x, CHANNELS):
        return CHANNELS
    return PLAIN if x.shape[1] == 1 else Layout("rows", 1)


def _check_finite(b: Builder, x: Value) -> None:
    """Let a call whose x has NaN or infinity run eagerly, for a weight with zeros.

    They stand between groups that are merged, and at taps of other results.
    """
    if "calibrate" in b.off:
        return
    fault = b.fault()
    layout = maps_layout(b, x)
    source, places = b.spot(x, layout), pixels(x.shape, 1)
    rest = x.shape[1] % LANES if layout is CHANNELS else 0
    whole = (x.shape[1] - rest) * places
    rows = math.gcd(x.shape[0] * blocks(x.shape[1]), whole) or 1
    _look(b, fault, source, rows, whole // rows, whole // rows)
    # not at what pads the last block
    _look(b, fault, source.beyond(whole), places, rest, LANES)


def _look(b: Builder, fault: Spot, x: Spot, rows: int, width: int, x_row: int) -> None:
    if rows and width:
        b.add(
            "calibrate", b.shares(rows * width / 4), x=x, scale=b.new(4 * rows),
            zero=None, fault=fault, rows=rows, width=width, x_row=x_row, low=-1, high=1,
        )  # fmt: skip


@lower("linear")
def linear(b: Builder, node: Node) -> None:
    """x (..., K) times weight (O, K) or, of matmul, (K, O)."""
    x, weight, bias, *residual = node.args
    x = b.as_value(x)
    need(isinstance(x, Value) and x.shape, "its first argument is a parameter")
    need(len(weight.shape) == 2, "its weight is no matrix")
    check(node, x, weight, bias)
    if quantized_linear(b, node):
        return
    if gemv(b, node, x, weight, bias, *residual):
        return
    by_inputs, held = bool(node.options.get("turned")), weight
    outs, ins = held.shape[::-1] if by_inputs else held.shape
    need(ins, "it sums nothing")
    small = small_weights(b, held, by_inputs)
    if by_inputs and small is None:
        weight = b.derived(np.transpose, weight)
    if isinstance(bias, Constant):
        bias = bias.then(lambda a: np.broadcast_to(a, (outs,)))
    need(bias is None or bias.shape == (outs,), "its bias is another vector")
    if small is None and not is_in_place(b, held):
        layout = rows_layout(b, x)
        if is_narrow(b, weight, bias, layout):
            narrow_rows(b, node, x, b.spot(x, layout), layout, weight, bias, *residual)
            return

    def packed(nr: int, depth: int) -> Spot | Unpacked | Small:
        if small is not None:
            return Small(*small, outs, ins, nr * LANES)
        if is_in_place(b, held):
            steps = (1, outs) if by_inputs else (ins, 1)
            return Unpacked(b.spot(held), 1, outs, ins, 1, nr * LANES, depth, 0, *steps)
        return weights(b, weight, 1, nr, depth)

    times(b, node, x, packed, ins, outs, bias, *residual)


def times(
    b: Builder, node: Node, x: Value, packed: Packed, ins: int, outs: int, bias: Any,
    *residual: Any,
) -> None:  # fmt: skip
    """x (..., ins) times a matrix: the node's first result, (..., outs)."""
    count = x.size // ins
    layout = rows_layout(b, x)
    source, blocked = _read(b, x, layout, len(x.shape) - 1), layout != PLAIN
    ins = _length(b, ins)
    step, lanes = (LANES, LANES) if blocked else (ins, ins)
    tail = ins % LANES or LANES if blocked else ins
    nr = fitting(b.rows, blocks(outs), count, ins, exact=False)
    w = Window((count,), (count,), (1,), (1,), (1,), (0,))
    tiles = tiled(1, w, b.rows[nr], step, lanes, tail, (LANES, step))
    is_whole = not residual and outs % (nr * LANES) == 0
    written = result_layout(b, node.results[0]) if is_whole else PLAIN
    out = b.result(node.results[0], written)
    steps = (outs, LANES) if written == PLAIN else (LANES, LANES * count)
    _add(
        b, node, tiles, nr,
        x=source, step=step, ins=ins, taps=1, groups=1, outs=outs, weight=packed,
        bias=bias, out=out, out_step=steps[0], x_block=LANES * count,
        out_block=steps[1],
        residual=b.spot(residual[0]) if residual else None,
        width=outs if outs % (nr * LANES) else 0,
    )  # fmt: skip


def _add(
    b: Builder, node: Node, tiles: Tiles, nr: int, *, x: Any, step: int, ins: int,
    taps: int, groups: int, outs: int, weight: Packed, bias: Any,
    out: Any, out_step: int, x_block: int, out_block: int, residual: Any, width: int,
) -> None:  # fmt: skip
    whole = step != LANES or x_block == 0
    ins = _length(b, ins)
    depth = ins if whole else LANES
    n = -(-blocks(outs) // nr)
    flops = 2 * len(tiles.source) * ins * taps * outs * groups
    rows = b.rows[nr]
    item = 2 if b.half else 4  # bytes of a number
    size = item * ins * taps * outs  # of weights, which take longer for few rows
    read = item * len(tiles.source) * ins
    chunk = max(1, (_MORE if size > read else _CACHE) // (item * ins * rows))
    need(
        max(abs(tiles.source).max(initial=0), len(tiles.to) * out_step) < 2**31, "size"
    )
    by_group = read < min(size, _SECOND) or len(tiles.tiles) < 16
    by_group = by_group or (b.has_row_tiles and whole and len(tiles.tiles) <= _ROUND)
    act, low, high = node.act
    known: Spot | Unpacked | Small | None = weight(nr, depth)
    inside: Unpacked | Small | None = None
    by_group = by_group or isinstance(known, Small)
    shares = b.shares(max(flops / 8, size * groups / 5))
    if isinstance(known, Unpacked | Small) and by_group:
        inside, known = known, None
        if n * groups >= b.threads:  # so that no share packs another one's group
            shares = min(shares, n * groups)
    elif isinstance(known, Unpacked):
        known = pack(b, known)
        item = 4  # which leaves space behind each group's pairs
    b.add(
        "conv", shares, flops=flops, x=x, weight=known, **packing(b, inside, shares),
        of_outs=outs,
        bias=biases(b, bias, groups, outs, n * nr * LANES),
        residual=residual, out=out, ahead=None, ahead_groups=0, ahead_step=0,
        tiles=b.table(tiles.tiles),
        runs=b.table(tiles.runs), to=b.table(tiles.to * out_step),
        n_tiles=len(tiles.tiles), chunk=chunk, groups=n * groups, inner=n, nr=nr,
        blocks=-(-ins // depth), x_step=x_block, weight_step=taps * depth,
        group_step=ins * taps * nr * LANES * item // 4,
        outer_x=ins // LANES * x_block // (2 if b.half else 1),
        outer_out=outs // LANES * out_block, out_step=out_block, width=width,
        by_group=by_group, act=ACTIVATIONS.index(act), low=low, high=high,
        half=b.half, **{"from": b.table(tiles.source)},
    )  # fmt: skip


def channelwise(
    b: Builder, node: Node, w: Window, x: Value, weight: Spot, taps: int, bias: Any,
    *residual: Any,
) -> None:  # fmt: skip
    """A convolution whose channels each have weights of their own."""
    need(not residual, "a sum behind a depthwise convolution")
    pitches = (LANES, 2 * LANES)
    tiles = tiled(x.shape[0], w, b.window_rows, LANES, LANES, LANES, pitches)
    count = x.shape[1]
    act, low, high = node.act
    flops = 2 * node.result.size * taps
    b.add(
        "window", b.shares(flops / 2), flops=flops, x=b.spot(x, CHANNELS),
        out=b.result(node.result, CHANNELS), weight=weight,
        bias=biases(b, bias, 1, count, LANES * blocks(count)), **tables(b, tiles),
        mode=0, blocks=blocks(count), x_step=LANES * pixels(x.shape, 1),
        weight_step=LANES * taps, out_step=LANES * pixels(node.result.shape, 1),
        act=ACTIVATIONS.index(act), low=low, high=high, scale=1.0,
    )  # fmt: skip


def tables(b: Builder, tiles: Tiles) -> dict[str, Any]:
    return {
        "from": b.table(tiles.source),
        "to": b.table(tiles.to * LANES),
        "tiles": b.table(tiles.tiles),
        "runs": b.table(tiles.runs),
        "n_tiles": len(tiles.tiles),
    }
