"""LSTMs over whole sequences, and their gradients, by kernels."""

from __future__ import annotations

import numpy as np

from burnish.ops._cpu.call import dense, launch_shared, suits
from burnish.ops._kernels import lstm
from burnish.ops._kernels.states import before

_MOST = 64
"""Examples up to which the kernel is faster than NumPy's products of all of them."""


@lstm.lstm_sequence.on("numpy")
def _(x, weight, h, c, live=None, *, order, reverse):
    known = live is None and x.shape[1] <= _MOST and _is_sequence(x, weight, h, c)
    if not (known and suits(x, weight, h, c)):
        given = x, weight, h, c, live
        return lstm.lstm_sequence.value(*given, order=order, reverse=reverse)
    from burnish.kernels import num_threads
    from burnish.kernels.forms import interleaved, recurrent_room, recurrent_shares
    from burnish.kernels.records import CELLS

    steps, count, width = x.shape
    hidden = width // 4
    hs, cs = np.empty((2, steps, count, hidden), x.dtype)
    gates = np.empty((steps, count, 4, hidden), x.dtype)
    places = [order.index(gate) for gate in "ifoc"]
    launch_shared(
        "recurrent", x.size * hidden / 4, recurrent_shares(count, num_threads()),
        recurrent_room(count, hidden),
        x=dense(x), weight=interleaved(weight, places, hidden), bias=None, h=dense(h),
        c=dense(c), hs=hs, cs=cs, kept=gates, acted=None, mode=CELLS["lstm"],
        steps=steps, count=count, hidden=hidden, gates=4, reverse=reverse,
        **_named(places),
    )  # fmt: skip
    return hs, cs, gates


@lstm.lstm_sequence.vjp("x", "weight", "h", "c", on="numpy")
def _(g, y, x, weight, h, c, live=None, *, order, reverse):
    by_h, by_c, by_gates = g
    hs, cs, gates = y
    steps, count, hidden = hs.shape
    known = live is None and by_gates is None
    if not (known and suits(x, by_h, by_c, *y, weight, h, c)):
        return NotImplemented
    from burnish.kernels import num_threads
    from burnish.kernels.forms import (
        by_units,
        recurrent_gradient_room,
        recurrent_shares,
    )
    from burnish.kernels.records import CELLS

    dz, (dh, dc) = np.empty(x.shape, x.dtype), np.empty((2, *h.shape), x.dtype)
    launch_shared(
        "recurrent_gradient", x.size * hidden / 4,
        recurrent_shares(count, num_threads()), recurrent_gradient_room(count, hidden),
        by_h=dense(by_h), by_c=dense(by_c), gates=dense(gates),
        acted=None, states=dense(cs), first=dense(c), weight=by_units(weight), out=dz,
        offsets=None, dh=dh, dc=dc, mode=CELLS["lstm"], steps=steps, count=count,
        hidden=hidden, gates_each=4, reverse=reverse,
        **_named([order.index(gate) for gate in "ifoc"]),
    )  # fmt: skip
    states = before(h, hs, reverse).reshape(steps * count, hidden)
    return dz, dz.reshape(steps * count, 4 * hidden).T @ states, dh, dc


def _is_sequence(x, weight, h, c):
    """Whether the arrays' shapes are those of a sequence that has steps."""
    hidden = x.shape[2] // 4
    state = (x.shape[1], hidden)
    return (
        x.size and weight.shape == (4 * hidden, hidden) and h.shape == c.shape == state
    )


def _named(places):
    return {f"gate{i}": place for i, place in enumerate(places)}
