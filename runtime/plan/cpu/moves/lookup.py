"""Lower running sums, top-k along an axis, and look-ups of keys in tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.ops.ml.classical import listed
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.table import lower, need
from burnish.plan.graph import Constant, Node, Value, combined, constant

_KINDS = (np.float32, np.int64)

_SMALL = 1 << 12
"""Elements beyond which NumPy sorts all of a line sooner than a heap finds most."""


@lower("cum_sum")
def cum_sum(b: Builder, node: Node) -> None:
    x, axis = _lines(node)
    is_last = x.dtype == np.float32 and axis == len(x.shape) - 1
    need(is_last, "there is no kernel for it")
    width = x.shape[-1]
    b.add(
        "cum_sum", b.shares(4 * x.size, x.size // width), x=b.spot(x),
        out=b.result(node.result), rows=x.size // width, width=width,
        reverse=bool(node.options["reverse"]),
        exclusive=bool(node.options["exclusive"]),
    )  # fmt: skip


@lower("top_k_places")
def top_k_places(b: Builder, node: Node) -> None:
    x, axis = _lines(node)
    sizes, k = _sizes(x, axis), node.options["k"]
    need(isinstance(k, int) and 0 < k <= x.shape[axis], "it takes none")
    is_few = x.size <= _SMALL or k <= x.shape[axis] // 4
    need(is_few, "NumPy is faster at sorting so many")
    lines = sizes["outer"] * sizes["inner"]
    shares = b.shares(4 * x.size * k.bit_length(), lines)
    b.add(
        "top_k", shares, x=b.spot(x), out=b.result(node.result),
        space=b.new(8 * k * shares), k=k, largest=bool(node.options["largest"]),
        is_int=x.dtype == np.int64, **sizes,
    )  # fmt: skip


@lower("label_encoder")
def label_encoder(b: Builder, node: Node) -> None:
    x, keys, values = node.args
    need(isinstance(x, Value) and x.dtype in _KINDS, "its input is of another kind")
    need(x.size, "it has no elements")
    dtype = node.result.dtype
    need(dtype.kind in "fiu" and dtype.itemsize in (4, 8), f"it gives {dtype}")
    held, made = _table(keys, x.dtype), _table(values, dtype)
    need(held.size and held.size == made.size, "it has no keys")
    others = np.asarray(node.options["default"], dtype)
    b.add(
        "look_up", b.shares(8 * x.size * held.size.bit_length()), x=b.spot(x),
        keys=b.constant(held.then(_sorted)),
        values=b.constant(combined(_in_order, held, made)),
        others=b.constant(constant(others)), out=b.result(node.result), count=x.size,
        keys_count=held.then(_sorted).size, bytes=dtype.itemsize,
        is_int=x.dtype == np.int64,
    )  # fmt: skip


def _table(given: Any, dtype: Any) -> Constant:
    """Keys or values as arrays of a dtype."""
    need(not isinstance(given, Value), "its table is not known before")
    if isinstance(given, Constant):
        need(not given.sources, "its table may change")
        return given.then(lambda a: listed(np, a, dtype))
    return constant(listed(np, given, dtype))


def _sorted(keys: Any) -> Any:
    return np.unique(keys)


def _in_order(keys: Any, values: Any) -> Any:
    """Values in the order of sorted keys; of equal keys the first one counts."""
    _, first = np.unique(keys, return_index=True)
    return values[first]


def _lines(node: Node) -> tuple[Value, int]:
    """A value and an axis of it that is not empty."""
    x, y = node.args[0], node.result
    need(isinstance(x, Value) and x.shape, "its input has no axes")
    need(x.dtype in _KINDS and y.size and x.size, f"its input is {x.dtype}")
    return x, node.options["axis"] % len(x.shape)


def _sizes(x: Value, axis: int) -> dict[str, int]:
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    return {"outer": outer, "width": x.shape[axis], "inner": inner}
