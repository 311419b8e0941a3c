"""Recurrent layers over whole sequences, one record a direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.kernels.forms import interleaved, recurrent_room, recurrent_shares
from burnish.kernels.records import CELLS
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES, blocks
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Constant, Node, Value, constant


@lower("lstm_sequence")
def lstm(b: Builder, node: Node) -> None:
    x, weight, h, c, live = node.args
    need(live is None, "its sequences have lengths")
    order = [node.options["order"].index(gate) for gate in "ifoc"]
    _add(b, node, "lstm", x, weight, None, h, c, order)


@lower("gru_sequence")
def gru(b: Builder, node: Node) -> None:
    x, weight, h, bias, live = node.args
    need(live is None, "its sequences have lengths")
    need(node.options["reset_after"], "it resets before the product")
    order = [node.options["order"].index(gate) for gate in "zr"] + [2]
    _add(b, node, "gru", x, weight, bias, h, None, order)


@lower("rnn_sequence")
def rnn(b: Builder, node: Node) -> None:
    x, weight, h, live = node.args
    need(live is None, "its sequences have lengths")
    _add(b, node, node.options["bend"], x, weight, None, h, None, [0])


def _add(
    b: Builder, node: Node, mode: str, x: Any, weight: Any, bias: Any, h: Any, c: Any,
    order: list[int],
) -> None:  # fmt: skip
    check(node, x, weight, bias, h, c)
    need(isinstance(x, Value), "its input is a parameter")
    steps, count, width = x.shape
    gates = len(order)
    hidden = width // gates
    hs = b.result(node.results[0])
    cs = b.result(node.results[1]) if c is not None else None
    kept, acted = {"lstm": (2, None), "gru": (1, 2)}.get(mode, (None, None))

    def where(number: int | None) -> Spot | None:
        """The place of a result that the gradient reads, if it does."""
        value = None if number is None else node.results[number]
        return b.result(value) if value and value.place in b.read else None

    most = recurrent_shares(count, b.threads)
    shares = b.shares(2 * x.size * hidden / 8, most)
    room = recurrent_room(count, hidden)
    padded = [*order, 0, 0, 0][:4]
    b.add(
        "recurrent", shares, flops=2 * x.size * hidden, x=b.spot(x),
        weight=_interleaved(b, weight, order, hidden),
        bias=None if bias is None else b.spot(bias), h=b.spot(h),
        c=None if c is None else b.spot(c), hs=hs, cs=cs,
        kept=where(kept), acted=where(acted),
        space=b.new(4 * room * shares), mode=CELLS[mode], steps=steps, count=count,
        hidden=hidden, gates=gates, reverse=node.options["reverse"], room=room,
        **{f"gate{i}": gate for i, gate in enumerate(padded)},
    )  # fmt: skip


def _interleaved(
    b: Builder, weight: Constant | Value, order: list[int], hidden: int
) -> Spot:
    """The place of a weight with its gates side by side, packed once or in each run."""
    if isinstance(weight, Constant):
        return b.constant(b.derived(interleaved, weight, tuple(order), hidden))
    gates, count, left = len(order), hidden // LANES, hidden % LANES
    size = blocks(hidden) * hidden * gates * LANES
    source, out = b.spot(weight), b.new(4 * size)
    if left:
        nothing = b.constant(constant(np.float32(0)))
        b.copy((size,), nothing, (0,), out, (1,))
    step = hidden * gates * LANES
    for i, gate in enumerate(order):
        of_gate, to = source.beyond(gate * hidden * hidden), out.beyond(i * LANES)
        for start, many, lanes in ((0, count, LANES), (count, 1, left)):
            if many and lanes:
                b.copy(
                    (many, hidden, lanes), of_gate.beyond(start * LANES * hidden),
                    (LANES * hidden, 1, hidden), to.beyond(start * step),
                    (step, gates * LANES, 1),
                )  # fmt: skip
    return out
