"""Operators that only move or join elements: views, concatenation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.kernels.records import HELD_KINDS
from burnish.operator import registry
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES, PLAIN, Layout, blocks, pixels, strides
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Constant, Node, Value


def _is_value(node: Node, x: Any) -> None:
    need(isinstance(x, Value), "its input is a parameter")
    check(node, x)


def _may_move(node: Node, x: Any) -> None:
    """Elements may be of any kind that plans hold."""
    need(isinstance(x, Value), "its input is a parameter")
    need(str(x.dtype) in HELD_KINDS, f"its input is {x.dtype}")
    need(all(y.size for y in node.results), "it has no elements")


@lower("reshape")
def reshape(b: Builder, node: Node) -> None:
    x, y = node.args[0], node.result
    _may_move(node, x)
    axis = b.blocked_axis(x)
    if axis is None:
        b.alias(y, PLAIN, b.spot(x))
        return
    channels = Layout("blocked", axis)
    if pixels(x.shape, axis) == 1:
        b.alias(y, PLAIN, b.spot(x, channels))
    for other, size in enumerate(y.shape):
        same = math.prod(y.shape[:other]) == math.prod(x.shape[:axis])
        if size == x.shape[axis] and same:
            b.alias(y, Layout("blocked", other), b.spot(x, channels))
            return
    if not b.has(y, PLAIN):
        b.alias(y, PLAIN, b.spot(x))


@lower("detach")
def detach(b: Builder, node: Node) -> None:
    x, y = node.args[0], node.result
    need(isinstance(x, Value), "its input is a parameter")
    if x.place in b.views and not b.forms.get(x.place):
        see(b, y, *b.views[x.place])
    else:
        b.share(y, x)


@lower("transpose")
def transpose(b: Builder, node: Node) -> None:
    x, y = node.args[0], node.result
    _may_move(node, x)
    axes = node.options["axes"]
    axes = range(len(x.shape))[::-1] if axes is None else axes
    axes = [a % len(x.shape) for a in axes]
    axis = b.blocked_axis(x)
    if axis is not None:
        others = [a for a in axes if a != axis and x.shape[a] != 1]
        if others == sorted(others):
            channels = Layout("blocked", axes.index(axis))
            b.alias(y, channels, b.spot(x, Layout("blocked", axis)))
            return
    is_float = x.dtype == np.float32
    if (
        is_float
        and len(axes) > 2
        and axes == [0, len(axes) - 1, *range(1, len(axes) - 1)]
    ):
        b.alias(y, Layout("rows", 1), b.spot(x))
        return
    view(b, node)


@lower("split")
def split(b: Builder, node: Node) -> None:
    x = node.args[0]
    _may_move(node, x)
    axis = node.options["axis"] % len(x.shape)
    start = 0
    for y in node.results:
        if not _part_of_blocks(b, x, y, axis, start):
            spot, distances = b.strided(x)
            moved = spot.moved(x.dtype.itemsize * start * distances[axis])
            see(b, y, moved, distances)
        start += y.shape[axis]


def _part_of_blocks(b: Builder, x: Value, y: Value, axis: int, start: int) -> bool:
    """Whether y is some blocks of x, from channel `start` on, and placed there."""
    if b.blocked_axis(x) != axis or start % LANES:
        return False
    channels = Layout("blocked", axis)
    spot = b.spot(x, channels)
    place = spot.beyond(start * pixels(x.shape, axis))
    b.alias(y, channels, place)
    return True


def _channels_alone(index: Any, shape: tuple[int, ...], axis: int) -> int:
    """The start of an index that takes one stretch of one axis; -1 for others."""
    every = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(i, slice) for i in every) or len(every) <= axis:
        return -1
    spans = [i.indices(n) for i, n in zip(every, shape, strict=False)]
    whole = all(
        span == (0, n, 1)
        for a, (span, n) in enumerate(zip(spans, shape, strict=False))
        if a != axis
    )
    return spans[axis][0] if whole and spans[axis][2] == 1 else -1


@lower("getitem", "broadcast_to", "flip")
def view(b: Builder, node: Node) -> None:
    """An operator that gives a view in NumPy: a view here too, or a copy if needed."""
    x, y = node.args[0], node.result
    _may_move(node, x)
    need(len(node.results) == 1, "it gives several results")
    axis = b.blocked_axis(x)
    if node.name == "getitem" and axis is not None:
        start = _channels_alone(node.options["index"], x.shape, axis)
        if start >= 0 and _part_of_blocks(b, x, y, axis, start):
            return
    spot, distances = b.strided(x)
    offset, steps = _looked(node.name, node.options, x.shape, distances, y.shape)
    see(b, y, spot.moved(x.dtype.itemsize * offset), steps)


def see(b: Builder, y: Value, moved: Spot, steps: tuple[int, ...]) -> None:
    """Have y where its elements are, at these distances."""
    dense = zip(y.shape, steps, strides(y.shape), strict=True)
    if all(n == 1 or s == d for n, s, d in dense):
        b.alias(y, PLAIN, moved)
    else:
        b.views[y.place] = moved, steps


@lower("tile")
def tile(b: Builder, node: Node) -> None:
    """A copy of a view that has an axis of repetitions before each axis."""
    x, y = node.args[0], node.result
    _may_move(node, x)
    spot, distances = b.strided(x)
    rank, repeats = len(y.shape), node.options["repeats"]
    times = (1,) * (rank - len(repeats)) + tuple(repeats)
    sizes = (1,) * (rank - len(x.shape)) + x.shape
    steps = (0,) * (rank - len(x.shape)) + tuple(distances)
    spread = b.unnamed_value(
        tuple(n for p in zip(times, sizes, strict=True) for n in p)
    )
    spread.dtype = x.dtype
    see(b, spread, spot, tuple(n for step in steps for n in (0, step)))
    b.alias(y, PLAIN, b.spot(spread))


@lower("put_at")
def put_at(b: Builder, node: Node) -> None:
    """Zeros, and x where an index says: the gradient of a view."""
    x, y = node.args[0], node.result
    _is_value(node, x)
    axis, index = b.blocked_axis(x), node.options["index"]
    if axis is not None and len(x.shape) == len(y.shape):
        start, count = _channels_alone(index, y.shape, axis), x.shape[axis]
        # lanes after the last channel of x may be NaN, and belong to no channel of y
        is_whole = count % LANES == 0 or start + count == y.shape[axis]
        if start >= 0 and start % LANES == 0 and is_whole:
            channels = Layout("blocked", axis)
            out, place = b.result(y, channels), pixels(y.shape, axis)
            b.fill(out, (blocks(y.shape[axis]) * LANES * place,))
            size = blocks(x.shape[axis]) * LANES * place
            part = out.beyond(start * place)
            b.copy((size,), b.spot(x, channels), (1,), part, (1,))
            return
    dense = strides(y.shape)
    offset, steps = _looked("getitem", {"index": index}, y.shape, dense, x.shape)
    out = b.result(y)
    b.fill(out, y.shape)
    source, distances = b.strided(x)
    b.copy(x.shape, source, distances, out.beyond(offset), steps)


def _looked(
    name: str,
    options: dict[str, Any],
    shape: tuple[int, ...],
    distances: tuple[int, ...],
    wanted: tuple[int, ...],
) -> tuple[int, tuple[int, ...]]:
    """Where a view of elements at these distances begins, and its own distances.

    wanted: the shape that it has to have.

    NumPy itself is asked, with memory that nobody touches.
    """
    options = dict(options)
    if name == "getitem":
        options["index"] = _plain_index(options["index"])
    ends = [(n - 1) * d for n, d in zip(shape, distances, strict=True)]
    before = -sum(end for end in ends if end < 0)
    memory = np.empty(before + sum(end for end in ends if end > 0) + 1, np.float32)
    steps = [4 * d for d in distances]
    seen = np.lib.stride_tricks.as_strided(memory[before:], shape, steps)
    made = registry[name].value(seen, **options)
    is_view = isinstance(made, np.ndarray) and np.may_share_memory(made, memory)
    need(is_view and made.shape == wanted, "it is no view")
    start = made.__array_interface__["data"][0] - seen.__array_interface__["data"][0]
    return start // 4, tuple(s // 4 for s in made.strides)


def _plain_index(index: Any) -> tuple[Any, ...]:
    """An index that gives a view, also of one element; Declined for another one."""
    every = index if isinstance(index, tuple) else (index,)
    plain = (int, slice, type(None), type(Ellipsis))
    is_plain = all(isinstance(i, plain) and not isinstance(i, bool) for i in every)
    need(is_plain, "its index has arrays")
    return every if any(i is Ellipsis for i in every) else (*every, Ellipsis)


@lower("concat_of")
def concat(b: Builder, node: Node) -> None:
    y = node.result
    for x in node.args:
        need(x.dtype == y.dtype, "its inputs are of several kinds")
    need(y.dtype.itemsize in (4, 8) and y.size, f"it gives {y.dtype}")
    axis = node.options["axis"] % len(y.shape)
    whole = all(x.shape[axis] % LANES == 0 for x in node.args[:-1])
    whole = whole and all(isinstance(x, Value) for x in node.args)
    if whole and all(b.blocked_axis(x) == axis for x in node.args):
        channels = Layout("blocked", axis)
        out, place = b.result(y, channels), 0
        for x in node.args:
            size = blocks(x.shape[axis]) * LANES * pixels(x.shape, axis)
            part = out.beyond(place)
            _put(b, x, channels, size, part)
            place += size
        return
    out, dense = b.result(y), strides(y.shape)
    place = 0
    for x in node.args:
        if isinstance(x, Constant):
            source, distances = b.constant(x), strides(x.shape)
        else:
            source, distances = b.strided(x)
        if 0 in x.shape:
            continue
        target = out.moved(y.dtype.itemsize * place)
        b.copy_items(y.dtype, x.shape, source, distances, target, dense)
        place += x.shape[axis] * dense[axis]


def _put(b: Builder, x: Value, layout: Layout, size: int, target: Spot) -> None:
    """Have a value where a part of another one is: made there, or copied."""
    spot = b.spot(x, layout)
    if not b.become(spot, target, 4 * size):
        b.copy((size,), spot, (1,), target, (1,))
