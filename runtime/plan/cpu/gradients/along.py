"""Gradients of gathers, resizing, sums of windows and embeddings."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from burnish.ops._kernels.axis_tables import adjoint
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.conv import window_of
from burnish.plan.cpu.layout import PLAIN
from burnish.plan.cpu.moves.along import repeated, taken
from burnish.plan.cpu.moves.gather import whole_numbers
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Constant, Node, Value, constant

_TAPS = 64  # places that may share one: sums of more are NumPy's


@lower("take_slices gradient")
def take_slices_gradient(b: Builder, node: Node) -> None:
    """A slice is a sum of those taken from it; the forward call has checked numbers."""
    g, _, x, indices = node.args
    g = b.as_value(g)
    need(isinstance(g, Value) and x.shape, "it is of parameters alone")
    axis = node.options["axis"] % len(x.shape)
    if not isinstance(indices, Constant) or indices.sources:
        need(not axis, "its numbers are not known before")
        check(node, g, x)
        _add_rows(b, node, g, whole_numbers(b, indices), indices.size, x.shape)
        return
    index = indices.make().reshape(-1, 1).astype(np.int64)
    index = np.where(index < 0, index + x.shape[axis], index)
    if len(indices.shape) != 1:
        shape = (*x.shape[:axis], len(index), *x.shape[axis + 1 :])
        flat = b.unnamed_value(shape)
        b.alias(flat, PLAIN, b.spot(g))
        g = flat
    _adjoint(b, node, g, axis, index, np.ones(index.shape), x.shape[axis])


@lower("resample gradient")
def resample_gradient(b: Builder, node: Node) -> None:
    g, _, x, index, weight = node.args
    known = isinstance(index, Constant) and isinstance(weight, Constant)
    need(known and isinstance(g, Value), "its weights are not known before")
    axis = node.options["axis"] % len(x.shape)
    _adjoint(b, node, g, axis, index.make(), weight.make(), x.shape[axis])


@lower("fold_repeated")
def fold_repeated(b: Builder, node: Node) -> None:
    """The gradient of padding with repeated places: sums of those that repeat one."""
    y = node.args[0]
    need(isinstance(y, Value), "it is of parameters alone")
    check(node, y)
    axis, size = node.options["axis"] % len(y.shape), node.options["size"]
    index = repeated(node.options["runs"], size).reshape(-1, 1)
    _adjoint(b, node, y, axis, index, np.ones(index.shape), size)


@lower("window_spread")
def window_spread(b: Builder, node: Node) -> None:
    """The adjoint of sums of windows, along one axis after the other."""
    g, y = node.args[0], node.result
    need(isinstance(g, Value), "it is of parameters alone")
    size, rank = node.options["kernel_size"], len(y.shape) - 2
    kernel = tuple(size) if isinstance(size, tuple | list) else (size,) * rank
    w = window_of(dataclasses.replace(node, args=[y], results=[g]), kernel)
    for axis in reversed(range(rank)):
        n, taps = w.sizes[axis], np.arange(w.kernel[axis])
        first = np.arange(g.shape[axis + 2]) * w.stride[axis] - w.before[axis]
        index = first[:, None] + taps * w.dilation[axis]
        inside = (index >= 0) & (index < n)
        shape = (*g.shape[: axis + 2], n, *g.shape[axis + 3 :])
        out = b.unnamed_value(shape) if axis else y
        part = dataclasses.replace(node, results=[out])
        _adjoint(b, part, g, axis + 2, np.where(inside, index, 0), inside, n)
        g = out


@lower("embedding gradient")
def embedding_gradient(b: Builder, node: Node) -> None:
    """Rows of g added up by number; the forward call has checked the numbers."""
    g, _, ids, weight = node.args
    g = b.as_value(g)
    need(isinstance(g, Value), "it is of parameters alone")
    need(ids.dtype == np.int64, f"its numbers are {ids.dtype}")
    check(node, g, weight)
    skip = node.options["padding_idx"]
    skip = -1 if skip is None else skip % weight.shape[0]
    _add_rows(b, node, g, b.spot(ids), ids.size, weight.shape, skip)


def _add_rows(
    b: Builder, node: Node, g: Value, ids: Spot, count: int, shape: tuple[int, ...],
    skip: int = -1,
) -> None:  # fmt: skip
    """`count` rows of g added up by number, to zeros of a shape."""
    rows, width = shape[0], math.prod(shape[1:])
    shares = b.shares(g.size + rows * width / 4, most=rows)
    b.add(
        "add_rows", shares, g=b.spot(g), ids=ids, out=b.result(node.result),
        count=count, rows=rows, width=width, skip=skip,
    )  # fmt: skip


def _adjoint(
    b: Builder, node: Node, g: Value, axis: int, index: Any, weight: Any, size: int
) -> None:
    """Each of `size` places: the sum of the places of g that read it.

    index, weight (places of g, taps): what they read, and how much of it.
    """
    read = index[weight != 0]
    need(not read.size or 0 <= read.min() <= read.max() < size, "its numbers")
    table = adjoint(index, weight, size, _TAPS)
    need(table is not None, f"more than {_TAPS} places read the same one")
    assert table is not None
    places, shares = table
    part = dataclasses.replace(node, args=[g])
    is_copy = places.shape[1] == 1 and bool((shares == 1).all())
    by = None if is_copy else constant(shares.astype(np.float32))
    taken(b, part, axis, places, by)
