"""Gradients of recurrent layers over whole sequences."""

from __future__ import annotations

from typing import Any

from burnish.kernels.forms import recurrent_gradient_room, recurrent_shares
from burnish.kernels.records import CELLS, REDUCTIONS
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.geometry import Window
from burnish.plan.cpu.convolution.runs import runs_of
from burnish.plan.cpu.convolution.weights import Unpacked, pack
from burnish.plan.cpu.gradients.weights import weight_sums
from burnish.plan.cpu.layout import LANES, Layout
from burnish.plan.cpu.products.row_layout import collide
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Constant, Node, Value


@lower("lstm_sequence gradient")
def lstm_gradient(b: Builder, node: Node) -> None:
    by_h, by_c, by_gates, hs, cs, gates, x, weight, h, c, *live = node.args
    need(not any(each is not None for each in live), "its sequences have lengths")
    need(by_gates is None, "a gradient of its gates")
    check(node, by_h, by_c, gates, weight, h, c)
    to_x, to_weight, to_h, to_c = _needed(node, 4)
    order = [node.options["order"].index(gate) for gate in "ifoc"]
    dz = _sums(b, x, to_x)
    _back(
        b, node, "lstm", hs, h, weight, order, by_h=by_h, by_c=by_c, gates=gates,
        states=cs, first=c, out=dz, dh=to_h, dc=to_c,
    )  # fmt: skip
    _to_weight(b, node, hs, h, dz, to_weight, len(order))


@lower("gru_sequence gradient")
def gru_gradient(b: Builder, node: Node) -> None:
    """Beside the inputs' gradient that of the products with the state, `offsets`."""
    by_h, by_gates, by_acted, hs, gates, acted, x, weight, h, *rest = node.args
    bias, live = (*rest, None, None)[:2]
    need(live is None, "its sequences have lengths")
    need(by_gates is None and by_acted is None, "a gradient of its gates")
    need(node.options["reset_after"], "it resets before the product")
    check(node, by_h, gates, acted, weight, h, bias)
    to_x, to_weight, to_h, to_bias = _needed(node, 4)
    order = [node.options["order"].index(gate) for gate in "zr"] + [2]
    offsets = b.unnamed_value(x.shape)
    _back(
        b, node, "gru", hs, h, weight, order, by_h=by_h, gates=gates, acted=acted,
        states=hs, first=h, out=_sums(b, x, to_x), offsets=offsets, dh=to_h,
    )  # fmt: skip
    _to_weight(b, node, hs, h, offsets, to_weight, len(order))
    if to_bias is not None:
        b.add(
            "reduce", 1, x=b.spot(offsets), out=b.result(to_bias), outer=1,
            width=hs.shape[0] * hs.shape[1], inner=x.shape[2],
            mode=REDUCTIONS["sum"], scale=1.0,
        )  # fmt: skip


@lower("rnn_sequence gradient")
def rnn_gradient(b: Builder, node: Node) -> None:
    by_h, hs, x, weight, h, *live = node.args
    need(not any(each is not None for each in live), "its sequences have lengths")
    check(node, by_h, weight, h)
    to_x, to_weight, to_h = _needed(node, 3)
    dz = _sums(b, x, to_x)
    mode = node.options["bend"]
    _back(
        b, node, mode, hs, h, weight, [0], by_h=by_h, states=hs, first=h, out=dz,
        dh=to_h,
    )  # fmt: skip
    _to_weight(b, node, hs, h, dz, to_weight, 1)


def _needed(node: Node, count: int) -> list[Value | None]:
    """The result that is the gradient of each argument; None where none is needed."""
    needed = [*node.lines[-1].function.needed, *[False] * count][:count]
    results = iter(node.results)
    return [next(results) if each else None for each in needed]


def _sums(b: Builder, x: Any, to_x: Value | None) -> Value:
    """The gradient of the gates' inputs, which a weight's needs in any case."""
    need(isinstance(x, Value), "its input is a parameter")
    return b.unnamed_value(x.shape) if to_x is None else to_x


def _back(
    b: Builder, node: Node, mode: str, hs: Value, h: Any, weight: Any, order: list[int],
    *, out: Value, offsets: Value | None = None, dh: Value | None,
    dc: Value | None = None, **read: Any,
) -> None:  # fmt: skip
    """Back through time as one record. read: what the record reads, by its fields."""
    steps, count, hidden = hs.shape
    names = "by_h", "by_c", "gates", "acted", "states", "first"
    given = {name: read.get(name) for name in names}
    spots = {k: None if v is None else b.spot(v) for k, v in given.items()}
    work = len(order) * hs.size * hidden
    shares = b.shares(work / 4, most=recurrent_shares(count, b.threads))
    room = recurrent_gradient_room(count, hidden)
    rows = len(order) * hidden
    by_units = Unpacked(b.spot(weight), 1, hidden, rows, 1, LANES, rows, 0, 1, hidden)
    b.add(
        "recurrent_gradient", shares, flops=2 * work, **spots,
        weight=pack(b, by_units), out=b.result(out),
        offsets=offsets and b.result(offsets), dh=dh and b.result(dh),
        dc=dc and b.result(dc),
        space=b.new(4 * shares * room), mode=CELLS[mode], steps=steps, count=count,
        hidden=hidden, gates_each=len(order), reverse=node.options["reverse"],
        room=room,
        **{f"gate{i}": gate for i, gate in enumerate([*order, 0, 0, 0][:4])},
    )  # fmt: skip


def _to_weight(
    b: Builder,
    node: Node,
    hs: Value,
    h: Any,
    dz: Value,
    result: Value | None,
    gates: int,
) -> None:
    """The weight's gradient: a product of dz and the states before."""
    if result is None:
        return
    hidden = hs.shape[2]
    rows = hs.shape[0] * hs.shape[1]
    w = Window((rows,), (rows,), (1,), (1,), (1,), (0,))
    x, x_by, x_block = _rows(b, _before(b, node, hs, h))
    g, g_by, g_block = _rows(b, dz)
    weight_sums(
        b, runs_of(1, w, x_by, g_by), 1, hidden, gates * hidden, rows, b.result(result),
        x=x, g=g, x_by=x_by, g_by=g_by, x_block=x_block, g_block=g_block,
    )  # fmt: skip


def _rows(b: Builder, value: Value) -> tuple[Spot, int, int]:
    """Rows for a product: as they are, or in blocks where the last is not full.

    Also floats from a row to the next one, and from a block to the next one.
    """
    width = value.shape[2]
    if width % LANES == 0 and not collide(value):
        return b.spot(value), width, LANES
    rows = value.shape[0] * value.shape[1]
    return b.spot(value, Layout("blocked", 2)), LANES, LANES * rows


def _before(b: Builder, node: Node, hs: Value, h: Value | Constant) -> Value:
    """The state that each step began with."""
    state = h.shape[0] * h.shape[1]
    before, rest = b.unnamed_value(hs.shape), hs.size - state
    out = b.result(before)
    is_reverse = node.options["reverse"]
    first, others = (rest, 0) if is_reverse else (0, state)
    b.copy((state,), b.spot(h), (1,), out.beyond(first), (1,))
    if rest:
        source = b.spot(hs).beyond(state if is_reverse else 0)
        b.copy((rest,), source, (1,), out.beyond(others), (1,))
    return before
