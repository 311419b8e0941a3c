"""An LSTM over a whole sequence as one operator: sigmoid gates, tanh, no extras.

Legend: T time, N batch, H hidden. Recording a dozen operators a step costs several
times what the step computes; here a step is a product and a few passes over (N, 4 * H).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.operator import operator
from burnish.ops._kernels.states import added, alive, before
from burnish.ops._tables import beside
from burnish.ops.arrays.shape import stack
from burnish.ops.elementwise.elementary import tanh


@operator
def lstm_sequence(
    x, weight, h, c, live=None, *, order: str, reverse: bool
) -> tuple[Array, Array, Array]:
    """x (T, N, 4 * H) inputs' share of the gates, weight (4 * H, H), h and c (N, H)

    order: of the concatenated gates i, f, o, c. live (T, N, 1): where an
    example runs; else h and c stay. Returns every step's h and c (T, N, H), and the
    gates (T, N, 4, H), which the gradient needs.
    """
    xp = namespace(x)
    count, n, width = x.shape
    hidden = width // 4
    # sigmoid(z) = tanh(z / 2) / 2 + 1/2: one tanh is for all the gates
    factor = np.full((4, hidden), 0.5, x.dtype)
    factor[order.index("c")] = 1
    factor = beside(x, factor.reshape(width))
    scaled = xp.ascontiguousarray((weight * factor[:, None]).T)
    inputs = x * factor
    factor = xp.tile(factor, (n, 1))  # whole arrays are faster than broadcast rows
    rest = 1 - factor
    gates = xp.empty_like(inputs)
    hs, cs = (xp.empty((count, n, hidden), x.dtype) for _ in range(2))
    i, f, o, new = (
        slice(k * hidden, (k + 1) * hidden) for k in map(order.index, "ifoc")
    )
    for t in reversed(range(count)) if reverse else range(count):
        z = xp.dot(h, scaled, out=gates[t])
        z += inputs[t]
        xp.tanh(z, out=z)
        z *= factor
        z += rest
        xp.multiply(z[:, f], c, out=cs[t])
        cs[t] += z[:, i] * z[:, new]
        after = xp.tanh(cs[t], out=hs[t])
        after *= z[:, o]
        if live is not None:
            xp.copyto(cs[t], c, where=~live[t])
            xp.copyto(after, h, where=~live[t])
        c, h = cs[t], after
    return hs, cs, gates.reshape(count, n, 4, hidden)


@lstm_sequence.vjp("x", "weight", "h", "c")
def _(g, y, x, weight, h, c, live=None, *, order, reverse):
    hs, cs, gates = y
    count, n, hidden = hs.shape
    i, f, o, new = (gates[:, :, order.index(name)] for name in "ifoc")
    c_before, h_before = before(c, cs, reverse), before(h, hs, reverse)
    squashed = tanh(cs)
    zero = squashed * 0
    by_c = {
        "i": new * i * (1 - i),
        "f": c_before * f * (1 - f),
        "c": i * (1 - new * new),
    }
    slopes = alive(live, stack([by_c.get(name, zero) for name in order], axis=2))
    by_h = squashed * o * (1 - o)
    openings = stack([by_h if name == "o" else zero for name in order], axis=2)
    openings = alive(live, openings)
    inward = alive(live, o * (1 - squashed * squashed))
    through = alive(live, f, 1)
    kept = None if live is None else alive(~live, zero + 1)
    own = None  # of the gates themselves: only gradients of gradients have some
    if g[2] is not None:
        bends = {"i": i * (1 - i), "f": f * (1 - f), "o": o * (1 - o)}
        bends["c"] = 1 - new * new
        own = alive(live, g[2] * stack([bends[name] for name in order], axis=2))
    dh = dc = None
    found: list[Any] = [None] * count
    for t in range(count) if reverse else reversed(range(count)):
        dh = added(dh, g[0], t)
        dc = added(dc, g[1], t)
        if dh is None:
            dh = zero[t]
        dc = dh * inward[t] if dc is None else dc + dh * inward[t]
        dz = dc[:, None] * slopes[t] + dh[:, None] * openings[t]
        if own is not None:
            dz = dz + own[t]
        found[t] = dz = dz.reshape(n, 4 * hidden)
        dh = dz @ weight if kept is None else dz @ weight + dh * kept[t]
        dc = dc * through[t]
    pulled = stack(found, axis=0)
    rows = pulled.reshape(count * n, 4 * hidden)
    return pulled, rows.T @ h_before.reshape(count * n, h_before.shape[-1]), dh, dc
