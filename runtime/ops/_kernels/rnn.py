"""A plain recurrent network over a whole sequence as one operator.

Legend: T time, N batch, H hidden.
"""

from __future__ import annotations

from typing import Any

from burnish.backend import Array, namespace
from burnish.operator import operator
from burnish.ops._kernels.blocks import positive
from burnish.ops._kernels.states import added, alive, before
from burnish.ops.arrays.shape import stack
from burnish.ops.elementwise.compare import where


@operator
def rnn_sequence(x, weight, h, live=None, *, bend: str, reverse: bool) -> Array:
    """x (T, N, H) the inputs' share, weight (H, H), h (N, H) -> every step's h

    bend: "tanh" or "relu". live (T, N, 1): where an example continues; else h stays.
    """
    xp = namespace(x)
    count = len(x)
    turned = xp.ascontiguousarray(weight.T)
    hs = xp.empty_like(x)
    for t in reversed(range(count)) if reverse else range(count):
        z = xp.dot(h, turned, out=hs[t])
        z += x[t]
        if bend == "tanh":
            xp.tanh(z, out=z)
        else:
            z[...] = positive(z)
        if live is not None:
            xp.copyto(z, h, where=~live[t])
        h = z
    return hs


@rnn_sequence.vjp("x", "weight", "h")
def _(g, hs, x, weight, h, live=None, *, bend, reverse):
    count = len(hs)
    slopes = 1 - hs * hs if bend == "tanh" else where(hs > 0, hs * 0 + 1, 0)
    slopes, kept = alive(live, slopes), None
    if live is not None:
        kept = alive(~live, slopes * 0 + 1)
    found: list[Any] = [None] * count
    dh = None
    for t in range(count) if reverse else reversed(range(count)):
        dh = added(dh, g, t)
        found[t] = dz = dh * slopes[t]
        dh = dz @ weight if kept is None else dz @ weight + dh * kept[t]
    pulled = stack(found, axis=0)
    rows = pulled.reshape(count * hs.shape[1], hs.shape[2])
    began = before(h, hs, reverse).reshape(rows.shape)
    return pulled, rows.T @ began, dh
