"""A GRU over a whole sequence as one operator: sigmoid gates, tanh.

Legend: T time, N batch, H hidden; gates z (update), r (reset), h (the candidate, last).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.operator import operator
from burnish.ops._kernels.states import added, alive, before
from burnish.ops._tables import beside
from burnish.ops.arrays.shape import concat, stack


@operator
def gru_sequence(
    x, weight, h, bias=None, live=None, *, order: str, reset_after: bool, reverse: bool
) -> tuple[Array, Array, Array]:
    """x (T, N, 3 * H) the inputs' share, weight (3 * H, H), h (N, H), bias (3 * H,)

    order: of the concatenated gates, "zrh" or "rzh". reset_after: r acts
    behind the candidate's matrix product. live (T, N, 1): where an example continues;
    else h stays. Returns every step's h (T, N, H), the gates (T, N, 3, H), and for the
    gradient what r acted on, or what it made (T, N, H).
    """
    xp = namespace(x)
    count, n, width = x.shape
    hidden = width // 3
    # sigmoid(z) = tanh(z / 2) / 2 + 1/2: one tanh is for both gates
    factor = np.full(width, 0.5, x.dtype)
    factor[2 * hidden :] = 1
    factor = beside(x, factor)
    offset = 0 if bias is None else bias * factor
    inputs = x * factor if reset_after else x * factor + offset
    turned = xp.ascontiguousarray((weight * factor[:, None]).T)
    to_gates, to_new = (xp.ascontiguousarray(a) for a in _cut(turned, hidden))
    gates = xp.empty((count, n, width), x.dtype)
    hs, shares = (xp.empty((count, n, hidden), x.dtype) for _ in range(2))
    update, reset = (
        slice(i * hidden, (i + 1) * hidden) for i in map(order.index, "zr")
    )
    for t in reversed(range(count)) if reverse else range(count):
        both, new = _cut(gates[t], hidden)
        now, candidate = _cut(inputs[t], hidden)
        if reset_after:
            own, share = _cut(h @ turned + offset, hidden)
        else:
            own = h @ to_gates
        xp.add(now, own, out=both)
        xp.tanh(both, out=both)
        both *= 0.5
        both += 0.5
        if reset_after:
            shares[t] = share
            xp.multiply(both[:, reset], share, out=new)
        else:
            xp.multiply(both[:, reset], h, out=shares[t])
            new[...] = shares[t] @ to_new
        new += candidate
        xp.tanh(new, out=new)
        after = xp.subtract(h, new, out=hs[t])
        after *= both[:, update]
        after += new
        if live is not None:
            xp.copyto(after, h, where=~live[t])
        h = after
    return hs, gates.reshape(count, n, 3, hidden), shares


@gru_sequence.vjp("x", "weight", "h", "bias")
def _(g, y, x, weight, h, bias=None, live=None, *, order, reset_after, reverse):
    hs, gates, shares = y
    count, n, hidden = hs.shape
    began = before(h, hs, reverse)
    update, reset = (gates[:, :, order.index(name)] for name in "zr")
    new = gates[:, :, 2]
    by_new = alive(live, (1 - update) * (1 - new * new))
    by_update = alive(live, (began - new) * update * (1 - update))
    by_reset = (shares if reset_after else began) * reset * (1 - reset)
    through = alive(live, update, 1)
    own: dict[str, Any] = {"z": None, "r": None, "h": None}
    if g[1] is not None:  # of the gates themselves: only gradients of gradients
        own["z"], own["r"] = (
            alive(live, g[1][:, :, order.index(name)] * gate * (1 - gate))
            for name, gate in (("z", update), ("r", reset))
        )
        own["h"] = alive(live, g[1][:, :, 2] * (1 - new * new))
    of_share = None if g[2] is None else alive(live, g[2])
    w_gates, w_new = weight[: 2 * hidden], weight[2 * hidden :]
    found: dict[str, list[Any]] = {name: [None] * count for name in "zrhs"}
    dh = None
    for t in range(count) if reverse else reversed(range(count)):
        dh = added(dh, g[0], t)
        if dh is None:
            dh = began[t] * 0
        to_new = added(dh * by_new[t], own["h"], t)
        to_share = to_new * reset[t] if reset_after else to_new @ w_new
        to_share = added(to_share, of_share, t)
        to_reset = (to_new if reset_after else to_share) * by_reset[t]
        parts = {"z": added(dh * by_update[t], own["z"], t)}
        parts["r"] = added(to_reset, own["r"], t)
        dh = dh * through[t]
        both = concat([parts[name] for name in order[:2]], axis=-1)
        dh = dh + both @ w_gates
        dh = dh + (to_share @ w_new if reset_after else to_share * reset[t])
        for name, part in (*parts.items(), ("h", to_new), ("s", to_share)):
            found[name][t] = part
    z, r, inward, to_share = (stack(found[name], axis=0) for name in "zrhs")
    both = concat([{"z": z, "r": r}[name] for name in order[:2]], axis=-1)
    pulled = concat([both, inward], axis=-1)
    offsets = concat([both, to_share], axis=-1) if reset_after else pulled
    states = [
        a.reshape(count * n, hidden) for a in (began, began if reset_after else shares)
    ]
    sides = _cut(offsets.reshape(count * n, 3 * hidden), hidden)
    weights = concat([a.T @ b for a, b in zip(sides, states, strict=True)], axis=0)
    return pulled, weights, dh, offsets.sum(axis=(0, 1))


def _cut(a: Any, hidden: int) -> tuple[Any, Any]:
    """The columns of the gates z and r, and those of the candidate."""
    return a[..., : 2 * hidden], a[..., 2 * hidden :]
