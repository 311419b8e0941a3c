"""Lower gathers and scatters: slices, rows and elements by indices of the call.

An index out of range is a fault: the call runs eagerly, which raises with the reason.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.kernels.records import WHOLE_KINDS
from burnish.ops.arrays.gather import places_along, places_of
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import strides
from burnish.plan.cpu.moves.along import taken
from burnish.plan.cpu.table import lower, need
from burnish.plan.graph import Constant, Node, Value

_MOST = 1 << 20
"""Positions for which a plan keeps a table of what other axes add to them."""


@lower("take_slices")
def take_slices(b: Builder, node: Node) -> None:
    """By numbers that are known, whatever the layout; by others of a plain value."""
    x, indices = node.args
    need(isinstance(x, Value | Constant) and x.shape, "its input has no axes")
    axis = node.options["axis"] % len(x.shape)
    if isinstance(indices, Constant) and not indices.sources:
        need(isinstance(x, Value), "its input is a parameter")
        index = indices.make().reshape(-1).astype(np.int64)
        need(index.size and abs(index).max() <= x.shape[axis], "its numbers")
        index = np.where(index < 0, index + x.shape[axis], index)
        need(index.min() >= 0 and index.max() < x.shape[axis], "its numbers")
        if x.dtype == np.float32:
            taken(b, node, axis, index, None, plain=len(indices.shape) != 1)
            return
    need(x.dtype.itemsize in (4, 8) and node.result.size, f"its input is {x.dtype}")
    ids = whole_numbers(b, indices)
    outer = math.prod(x.shape[:axis])
    width = math.prod(x.shape[axis + 1 :]) * x.dtype.itemsize // 4
    b.add(
        "gather", b.shares(2 * node.result.size), ids=ids, x=b.spot(x), scales=None,
        zeros=None, out=b.result(node.result), fault=b.fault(), outer=outer,
        count=indices.size, rows=x.shape[axis], width=width, block=width, by_row=0,
        bits=0,
    )  # fmt: skip


@lower("places_along")
def along(b: Builder, node: Node) -> None:
    shape, axis = node.options["shape"], node.options["axis"]
    axis %= max(1, len(shape))
    size, step = (shape or (1,))[axis], math.prod(shape[axis + 1 :])
    _places(b, node, places_along, [size], [step])


@lower("places_of")
def of(b: Builder, node: Node) -> None:
    lead = node.options.get("batch_dims", 0)
    depth = lead + node.args[0].shape[-1]
    sizes = node.options["shape"][:depth]
    _places(b, node, places_of, sizes[lead:], strides(sizes)[lead:])


def _places(b: Builder, node: Node, function: Any, sizes: Any, steps: Any) -> None:
    """Steps for each position, and what `function` gives where all of them are 0."""
    indices, y = node.args[0], node.result
    count = indices.size // max(1, len(sizes))
    need(0 < count <= _MOST and y.size == count, "its indices broadcast")
    nowhere = np.zeros(indices.shape, np.int64)
    b.add(
        "places", 1, ids=whole_numbers(b, indices), sizes=b.table(sizes, np.int64),
        steps=b.table(steps, np.int64), out=b.result(y), fault=b.fault(), count=count,
        base=b.table(function(nowhere, **node.options), np.int64), depth=len(sizes),
    )  # fmt: skip


@lower("scatter_rows")
def scatter_rows(b: Builder, node: Node) -> None:
    x, indices, updates = node.args
    reduction, y = node.options["reduction"], node.result
    need(reduction in ("none", "add"), f"its reduction is {reduction}")
    for each in (x, updates):
        need(isinstance(each, Value | Constant), "an input is a number")
        need(each.dtype == y.dtype == np.float32, "it is not in single precision")
    need(updates.shape == (*indices.shape, *x.shape[1:]), "its updates broadcast")
    need(y.size and updates.size, "it has no elements")
    ids = b.new(8 * indices.size)
    b.add(
        "places", 1, ids=whole_numbers(b, indices),
        sizes=b.table([x.shape[0]], np.int64),
        steps=b.table([1], np.int64), out=ids, fault=b.fault(), count=indices.size,
        base=b.table(np.zeros(indices.size), np.int64), depth=1,
    )  # fmt: skip
    b.add(
        "set_rows", b.shares(2 * y.size), x=b.spot(x), updates=b.spot(updates), ids=ids,
        out=b.result(y), count=indices.size, rows=x.shape[0],
        width=math.prod(x.shape[1:]), is_sum=reduction == "add",
    )  # fmt: skip


def whole_numbers(b: Builder, indices: Any) -> Spot:
    """Indices of the call as int64."""
    need(isinstance(indices, Value | Constant), "its numbers are of another kind")
    if indices.dtype == np.int64:
        return b.spot(indices)
    kinds = WHOLE_KINDS.keys() - {"bool", "float32"}
    need(str(indices.dtype) in kinds, f"its numbers are {indices.dtype}")
    kind, out = np.dtype(np.int64), b.new(8 * indices.size)
    read = [(b.spot(indices), strides(indices.shape), indices.dtype)]
    b.add_whole("none", read, indices.shape, out, kind)
    return out
