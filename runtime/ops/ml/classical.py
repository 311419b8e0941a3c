"""Models that are not networks: lookups, support vectors, votes. N rows, F features.

Which key a value equals and which class wins change in steps, so lookups and votes have
no gradient and say so when asked.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import DeviceError
from burnish.operator import composed, operator
from burnish.ops._tables import beside
from burnish.ops.arrays.reduce import reduce_max, reduce_sum
from burnish.ops.elementwise.arithmetic import abs_
from burnish.ops.elementwise.clip import clip
from burnish.ops.elementwise.compare import where
from burnish.ops.elementwise.elementary import exp, log, sqrt
from burnish.ops.linalg.decompositions import solve
from burnish.ops.linalg.linear import matmul


@operator
def label_encoder(x, keys, values, *, default: Any, dtype: Any = None) -> Array:
    """The value of the key that each element of x equals, or `default`.

    keys, values: arrays or lists of equal length; of equal keys the first one counts,
    and nan is one. dtype: the result's; None is what the values have, float32 for a
    list of floats.
    """
    return _Encoder(namespace(x), keys, values, default, dtype)(x)


@label_encoder.bound
def _(x, keys, values, *, default, dtype=None):
    is_known = keys is not None and values is not None
    return _Encoder(np, keys, values, default, dtype) if is_known else None


class _Encoder:
    """Values by keys, for arrays of the library xp; the default is behind the values.

    What depends on the keys and an array's dtype is made once.
    """

    def __init__(self, xp: Any, keys: Any, values: Any, default: Any, dtype: Any):
        self._xp, self._keys = xp, keys
        values = listed(xp, values, dtype)
        default = xp.asarray(default, values.dtype).reshape(1)
        self._values, self._count = xp.concatenate((values, default)), len(values)
        self._found: dict[Any, Callable[[Any], Any]] = {}

    def __call__(self, x: Any) -> Any:
        if x.dtype not in self._found:
            make = self._among_objects if x.dtype.kind == "O" else self._among_numbers
            self._found[x.dtype] = make(x.dtype)
        return self._values[self._found[x.dtype](x), ...]

    def _among_objects(self, _: Any) -> Callable[[Any], Any]:
        """Where each element is among the keys."""
        known = _numbered(tuple(listed(np, self._keys, None).tolist()))
        count = self._count

        def find(x: Any) -> Any:
            found = map(known.get, x.ravel().tolist(), itertools.repeat(count))
            return np.fromiter(found, np.int64, x.size).reshape(x.shape)

        return find

    def _among_numbers(self, dtype: Any) -> Callable[[Any], Any]:
        xp, count = self._xp, self._count
        if not count:
            return lambda x: xp.zeros(x.shape, np.int64)
        keys = listed(xp, self._keys, dtype)
        order = xp.argsort(keys, kind="stable")
        held = xp.concatenate((keys[order], keys[order[-1:]]))  # what is larger is last
        # A GPU's keys are not read: the call would wait for it.
        has_nan = dtype.kind == "f" and (xp is not np or np.isnan(held[-1]))
        order = xp.concatenate((order, order[-1:]))

        def find(x: Any) -> Any:
            place = xp.searchsorted(held[:-1], x)
            near = held[place]
            same = near == x
            if has_nan:
                same |= xp.isnan(near) & xp.isnan(x)
            return xp.where(same, order[place], count)

        return find


@functools.lru_cache(maxsize=64)
def _numbered(keys: tuple[Any, ...]) -> dict[Any, int]:
    """The place of each key; of equal ones the first."""
    return {keys[i]: i for i in reversed(range(len(keys)))}


def listed(xp: Any, values: Any, dtype: Any) -> Any:
    """A list as an array: strings as objects, floats as float32."""
    if hasattr(values, "dtype"):
        return values if dtype is None else values.astype(dtype)
    if dtype is None and len(values):
        kind = type(values[0])
        dtype = {str: object, float: np.float32, int: np.int64}[kind]
    if dtype is object and xp is not np:
        raise DeviceError("label_encoder: strings live on the host, on 'cpu'")
    return xp.asarray(values, dtype)


@composed
def softmax_zero(x: Any, *, axis: int = -1) -> Array:
    """softmax along an axis of the nonzero elements; zeros stay 0."""
    y = where(abs_(x) > 1e-7, exp(x - reduce_max(x, axes=axis, keepdims=True)), 0)
    total = reduce_sum(y, axes=axis, keepdims=True)
    return where(total == 0, 0.5, y / where(total == 0, 1, total))


@composed
def probit(x: Any) -> Array:
    """Where the normal distribution reaches x, by Winitzki's formula, to 0.002."""
    centered = 2 * x - 1
    scale = 0.147
    tail = log((1 - centered) * (1 + centered))
    v = 2 / (math.pi * scale) + tail * 0.5
    size = sqrt(sqrt(v * v - tail * (1 / scale)) - v) * math.sqrt(2)
    return where(centered < 0, -size, size)


@operator
def svm_kernel(
    x,
    vectors,
    *,
    kernel: str = "LINEAR",
    gamma: float = 0.0,
    coef0: float = 0.0,
    degree: float = 0.0,
) -> Array:
    """How alike rows and support vectors are: x (N, F), vectors (S, F) -> (N, S)

    kernel: "LINEAR" x @ v, "POLY" (gamma x @ v + coef0) ** degree, "SIGMOID"
    tanh(gamma x @ v + coef0), "RBF" exp(-gamma |x - v| ** 2), in float64 within.
    """
    xp = namespace(x)
    if kernel == "RBF":
        wide, others = x.astype(np.float64), vectors.astype(np.float64)
        own = (wide * wide).sum(axis=1, keepdims=True)
        apart = own + (others * others).sum(axis=1) - 2 * matmul(wide, others.T)
        apart = xp.where(xp.isinf(own), own, apart)  # inf - inf would be NaN
        return xp.exp(apart * -gamma).astype(x.dtype)
    product = matmul(x, vectors.T)
    if kernel == "LINEAR":
        return product
    moved = product * gamma + coef0
    return xp.tanh(moved) if kernel == "SIGMOID" else moved**degree


@svm_kernel.vjp("x", "vectors")
def _(g, y, x, vectors, *, kernel, gamma, coef0, degree):
    if kernel == "RBF":
        h = g * y * (-2 * gamma)
        dx = reduce_sum(h, axes=1, keepdims=True) * x - matmul(h, vectors)
        shares = reduce_sum(h, axes=0).reshape(-1, 1)
        return dx, shares * vectors - matmul(h.T, x)
    h = g
    if kernel == "SIGMOID":
        h = g * (1 - y * y) * gamma
    elif kernel == "POLY":
        moved = matmul(x, vectors.T) * gamma + coef0
        h = g * moved ** (degree - 1) * (degree * gamma)
    return matmul(h, vectors), matmul(h.T, x)


@operator
def pairwise_votes(scores, *, classes: int) -> Array:
    """How many pairs each class wins: scores (N, pairs) > 0 are for the pair's first.

    Pairs come in the order (0, 1), (0, 2), ..., (1, 2), ...
    """
    xp = namespace(scores)
    first, second = (beside(scores, side) for side in np.triu_indices(classes, 1))
    winner = xp.where(scores > 0, first, second)
    return (winner[..., None] == xp.arange(classes)).sum(axis=1)


@operator
def pairwise_coupling(wins, *, classes: int) -> Array:
    """Probabilities of classes from those of pairs: wins (N, pairs) -> (N, classes)

    Wu, Lin and Weng's second method, by their iteration; pairs as in pairwise_votes.
    """
    xp = namespace(wins)
    first, second = (beside(wins, side) for side in np.triu_indices(classes, 1))
    wins = wins.clip(1e-7, 1 - 1e-7).astype(np.float64)
    r = xp.zeros((len(wins), classes, classes))
    r[:, first, second] = wins
    r[:, second, first] = 1 - wins
    q = -xp.swapaxes(r, 1, 2) * r
    among = xp.arange(classes)
    q[:, among, among] = (r * r).sum(axis=1)
    p = xp.full((len(wins), classes), 1 / classes)
    for _ in range(max(100, classes)):
        qp = (q @ p[..., None])[..., 0]
        pqp = (p * qp).sum(axis=1, keepdims=True)
        moving = xp.abs(qp - pqp).max(axis=1, keepdims=True) >= 0.005 / classes
        if not moving.any():
            break
        for t in range(classes):
            diff = xp.where(moving, (pqp - qp[:, t : t + 1]) / q[:, t, t, None], 0)
            p[:, t : t + 1] += diff
            scale = 1 + diff
            pqp = (pqp + diff * (diff * q[:, t, t, None] + 2 * qp[:, t : t + 1])) / (
                scale * scale
            )
            qp = (qp + diff * q[:, t]) / scale
            p /= scale
    return p.astype(np.float32)


@pairwise_coupling.vjp
def _(g, y, wins, *, classes: int):
    """The shares solve Q p = c, their sum is 1; Q is made of the pairs' shares.

    So dp = -K^-1 (dQ p, 0) for K = [[Q, 1], [1, 0]], which is symmetric.
    """
    w, first, second = wins.astype("float64"), *np.triu_indices(classes, 1)
    w = clip(w, 1e-7, 1 - 1e-7)
    rows, wide = np.arange(len(first)), classes + 1
    both, ones, others = np.zeros((3, len(rows), wide, wide))
    both[rows, first, second] = both[rows, second, first] = -1
    ones[rows, first, first] = others[rows, second, second] = 1
    border = np.zeros((wide, wide))
    border[:classes, classes] = border[classes, :classes] = 1
    both, ones, others = (
        beside(w, part.reshape(len(rows), -1)) for part in (both, ones, others)
    )
    rest = 1 - w
    q = w * rest @ both + rest * rest @ ones + w * w @ others
    k = q.reshape(-1, wide, wide) + beside(w, border)
    given = g.astype("float64") @ beside(w, np.eye(classes, wide))
    v, p = solve(k, given[:, :, None])[:, :classes, 0], y.astype("float64")
    a, b = beside(w, first), beside(w, second)
    crossed = v[:, a] * p[:, b] + v[:, b] * p[:, a]
    moved = (1 - 2 * w) * crossed + 2 * rest * (v * p)[:, a] - 2 * w * (v * p)[:, b]
    inside = (wins > 1e-7) & (wins < 1 - 1e-7)
    return where(inside, moved, 0.0).astype(g.dtype)
