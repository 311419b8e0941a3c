"""Element-wise programs: chains of operators in one pass over memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.kernels.elementwise import OUTER, coded, merged, mode
from burnish.kernels.records import RESULTS
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES, PLAIN, Layout, blocks, strides
from burnish.plan.cpu.table import lower, need
from burnish.plan.graph import Constant, Node, Value, constant

_MOST_PARAMETERS = 1 << 16
"""Parameters up to which a program reads them in blocks, where one channel of them
takes the place of 16; more of them are read as they are."""


@lower("program")
def program(b: Builder, node: Node) -> None:
    """args: the operands; options["code"]: steps (name, a, b, c, low, high)."""
    y = node.result
    need(y.size, "it has no elements")
    need(y.dtype in (np.float32, np.bool_), f"it gives {y.dtype}")
    operands = [_operand(arg) for arg in node.args]
    axis = _blocked_axis(b, operands, y)
    spots, ways = [], []
    for operand in operands:
        spot, steps = _read(b, operand, y, axis)
        spots.append(spot)
        ways.append(steps)
    sizes = _sizes(y.shape, axis)
    sizes, ways = merged(sizes, ways)
    need(len(sizes) <= OUTER + 2, f"it goes along {len(sizes)} axes")
    outer = [1] * (OUTER + 2 - len(sizes)) + sizes
    rows, width = outer[OUTER:]
    table = []
    for spot, operand, way in zip(spots, operands, ways, strict=True):
        steps = [0] * (len(outer) - len(way)) + way
        how = mode(steps[OUTER:], rows, width)
        if spot is not None:
            table.append((spot, how, int(operand.dtype == np.bool_), steps))
            continue
        assert isinstance(operand, Value)
        mask = b.masks[operand.place]
        if drawn := _drawn(how, steps, width):
            table.append((mask.key, drawn, mask.bound, steps))
        else:
            table.append((b.spot(operand), how, 1, steps))
    code = coded(node.options["code"], len(operands))
    layout = PLAIN if axis is None else Layout("blocked", axis)
    out = b.result(y, layout)
    b.add_program(
        table, out, b.shares(4 * y.size * len(node.options["code"])),
        code=b.table(np.frombuffer(code, np.uint8), np.uint8),
        steps=len(node.options["code"]), operands=len(operands),
        result=len(operands) + len(node.options["code"]) - 1,
        to=RESULTS["bools" if y.dtype == np.bool_ else "values"], rows=rows,
        width=width,
        **{f"size{i}": outer[i] for i in range(OUTER)},
    )  # fmt: skip


def _operand(arg: Any) -> Value | Constant:
    if isinstance(arg, int | float):
        return constant(np.float32(arg))
    need(arg.dtype in (np.float32, np.bool_), f"an operand is {arg.dtype}")
    return arg


def _blocked_axis(b: Builder, operands: list[Any], y: Value) -> int | None:
    """The channels' axis if the result is blocked, as its operands are."""
    if y.dtype == np.bool_:
        return None
    rank = len(y.shape)
    found: set[int | None] = set()
    masks = []  # read in place
    for operand in operands:
        shape = (1,) * (rank - len(operand.shape)) + operand.shape
        if isinstance(operand, Constant):
            spread = math.prod(shape)
            if spread != 1 and (
                operand.dtype != np.float32 or spread > _MOST_PARAMETERS
            ):
                return None
            continue
        if operand.dtype == np.bool_:
            masks.append(shape)
            continue
        axis = b.blocked_axis(operand)
        if axis is None or len(operand.shape) != rank or shape[axis] != y.shape[axis]:
            return None
        found.add(axis)
    axis = found.pop() if len(found) == 1 else None
    if masks and axis is not None and y.shape[axis] % LANES:
        few = 2 * y.shape[axis] <= LANES  # most lanes would hold no channel
        return axis if not few and all(shape[axis] == 1 for shape in masks) else None
    return axis


def _drawn(how: str, steps: list[int], width: int) -> str:
    """How a mask of these strides is drawn: a counter gives four numbers."""
    if how == "dense":
        return "drawn"
    *apart, column = steps
    are_whole = column == 1 and width == LANES and not any(s % 4 for s in apart)
    return "drawn_rows" if how == "strided" and are_whole else ""


def _sizes(shape: tuple[int, ...], axis: int | None) -> list[int]:
    if axis is None:
        return list(shape) or [1]
    return [blocks(shape[axis]), *shape[:axis], *shape[axis + 1 :], LANES]


def _read(
    b: Builder, operand: Any, y: Value, axis: int | None
) -> tuple[Spot | None, list[int]]:
    """The place of an operand, and its strides along the axes of `_sizes`.

    A mask that a key gives has no place yet.
    """
    rank = len(y.shape)
    shape = (1,) * (rank - len(operand.shape)) + operand.shape
    if axis is None:
        if isinstance(operand, Value) and operand.dtype == np.float32:
            place: tuple[Spot | None, tuple[int, ...]] = b.strided(operand)
        else:
            place = _place(b, operand), strides(operand.shape)
        spot, own = place
        own = (0,) * (rank - len(own)) + tuple(own)
        return spot, [0 if n == 1 else s for n, s in zip(shape, own, strict=True)] or [
            0
        ]
    others = shape[:axis] + shape[axis + 1 :]
    if isinstance(operand, Value) and operand.dtype == np.bool_:
        by = [0 if n == 1 else s for n, s in zip(shape, strides(shape), strict=True)]
        lane = by.pop(axis)
        return _place(b, operand), [LANES * lane, *by, lane]
    if isinstance(operand, Constant):
        if math.prod(shape) == 1:
            return b.spot(operand), [0] * (rank + 1)
        spot = b.constant(operand.then(lambda a: _in_blocks(a.reshape(shape), axis)))
    else:
        spot = b.spot(operand, Layout("blocked", axis))
    inside = [
        0 if n == 1 else LANES * s for n, s in zip(others, strides(others), strict=True)
    ]
    block = 0 if shape[axis] == 1 else LANES * math.prod(others)
    return spot, [block, *inside, 1]


def _place(b: Builder, operand: Any) -> Spot | None:
    """The place of an operand; None for a mask that is not in memory."""
    place = getattr(operand, "place", None)
    return None if place in b.masks and not b.forms.get(place) else b.spot(operand)


def _in_blocks(a: Any, axis: int) -> Any:
    """Parameters as (blocks, other axes, lanes); one channel is in every lane."""
    last = np.moveaxis(a, axis, -1)
    count = last.shape[-1]
    if count == 1:
        return np.repeat(last, LANES, axis=-1)
    none = [(0, 0)] * (last.ndim - 1)
    last = np.pad(last, [*none, (0, -count % LANES)])
    split = last.reshape(*last.shape[:-1], -1, LANES)
    return np.ascontiguousarray(np.moveaxis(split, -2, 0))
