"""The gradient of an LSTM over whole sequences."""

from __future__ import annotations

from burnish.plan.cpu.builder import Builder, Spot
from burnish.plan.cpu.conv import check
from burnish.plan.cpu.geometry import Window
from burnish.plan.cpu.gradients import weight_sums
from burnish.plan.cpu.layout import LANES
from burnish.plan.cpu.runs import runs_of
from burnish.plan.cpu.table import lower, need
from burnish.plan.graph import Constant, Node, Value

_EXAMPLES = 8  # that go through time together, as in recurrent_gradient.c


@lower("lstm_sequence gradient")
def lstm_gradient(b: Builder, node: Node) -> None:
    """Back through time as one record, then the weight's as one product."""
    by_h, by_c, by_gates, hs, cs, gates, x, weight, h, c, *live = node.args
    need(not any(each is not None for each in live), "its sequences have lengths")
    need(by_gates is None, "a gradient of its gates")
    check(node, by_h, by_c, gates, weight, h, c)
    steps, count, hidden = hs.shape
    need(hidden % LANES == 0, f"{hidden} hidden units")
    needed = node.lines[-1].function.needed
    results = iter(node.results)
    to_x, to_weight, to_h, to_c = (
        next(results) if each else None for each in needed[:4]
    )
    dz = b.new(16 * hs.size) if to_x is None else b.result(to_x)
    order = [node.options["order"].index(gate) for gate in "ifoc"]
    shares = b.shares(x.size * hidden / 4, most=-(-count // _EXAMPLES))
    room = 2 * _EXAMPLES * hidden
    b.add(
        "recurrent_gradient", shares, flops=2 * x.size * hidden,
        by_h=None if by_h is None else b.spot(by_h),
        by_c=None if by_c is None else b.spot(by_c), gates=b.spot(gates), cs=b.spot(cs),
        c=b.spot(c), weight=b.spot(weight), out=dz, dh=to_h and b.result(to_h),
        dc=to_c and b.result(to_c), space=b.new(4 * shares * room), steps=steps,
        count=count, hidden=hidden, reverse=node.options["reverse"], room=room,
        **{f"gate{i}": gate for i, gate in enumerate(order)},
    )  # fmt: skip
    if to_weight is None:
        return
    rows = steps * count
    w = Window((rows,), (rows,), (1,), (1,), (1,), (0,))
    weight_sums(
        b, runs_of(1, w, hidden, 4 * hidden), 1, hidden, 4 * hidden, rows,
        b.result(to_weight), x=_before(b, node, hs, h), g=dz, x_by=hidden,
        g_by=4 * hidden, x_block=LANES, g_block=LANES,
    )  # fmt: skip


def _before(b: Builder, node: Node, hs: Value, h: Value | Constant) -> Spot:
    """The state that each step began with."""
    state = h.shape[0] * h.shape[1]
    out, rest = b.new(4 * hs.size), hs.size - state
    is_reverse = node.options["reverse"]
    first, others = (rest, 0) if is_reverse else (0, state)
    b.copy((state,), b.spot(h), (1,), out.beyond(first), (1,))
    if rest:
        source = b.spot(hs).beyond(state if is_reverse else 0)
        b.copy((rest,), source, (1,), out.beyond(others), (1,))
    return out
