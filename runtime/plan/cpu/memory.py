"""Memory planning: buffers share an arena by liveness; parameters have their own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burnish.kernels.records import packed
from burnish.plan.cpu.buffers import Buffer, Spot, Step
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.lowbit.codes import drop_unread
from burnish.plan.graph import Constant
from burnish.planned.space import ARENA

_ALIGNED = 64

_ADDS_IN_PLACE = ("conv", "winograd")
"""Kernels that add a `residual` with the layout of `out`."""


class Memory(NamedTuple):
    """records: the table, packed. arena: its size in bytes. constants: by their slot.
    slots: how many arrays a call has."""

    records: np.ndarray[Any, Any]
    arena: int
    constants: dict[int, Constant]
    slots: int


def placed(b: Builder) -> Memory:
    """Give every buffer its place, and write the records down with them."""
    drop_unread(b)
    _add_in_place(b)
    _look_ahead(b)
    slots, constants = ARENA + 1, {}
    for buffer in b.buffers:
        if buffer.is_arena:
            buffer.slot = ARENA
        elif buffer.home is None:
            buffer.slot = slots
            if buffer.constant is not None:
                constants[slots] = buffer.constant
            slots += 1
    arena = _arranged([each for each in b.buffers if each.is_arena and each.first >= 0])
    data = b"".join(
        packed(
            step.kind, step.shares, **{k: _number(v) for k, v in step.fields.items()}
        )
        for step in b.steps
    )
    return Memory(np.frombuffer(data, np.uint8).copy(), arena, constants, slots)


def _add_in_place(b: Builder) -> None:
    """Write results over the values that are added to them, where nothing reads those
    later: kernels read every such number before they write its sum."""
    for i, step in enumerate(b.steps):
        added, out = step.fields.get("residual"), step.fields.get("out")
        if step.kind not in _ADDS_IN_PLACE or added is None or out is None:
            continue
        home, at = added.root
        others = [v for k, v in step.fields.items() if k not in ("residual", "out")]
        if (
            home.is_arena
            and (home.last, at) == (i, 0)
            and out.buffer.first == i
            and not any(isinstance(v, Spot) and v.root.buffer is home for v in others)
        ):
            b.become(out, Spot(home), home.size)


def _look_ahead(b: Builder) -> None:
    """Tell each convolution which weights the next one reads: while it computes, it
    asks for the first of them, which are seldom in cache."""
    following: Step | None = None
    for step in reversed(b.steps):
        if step.kind != "conv":
            continue
        if following is not None:
            ahead = following.fields
            weight = ahead["weight"]
            if weight is not None and weight.buffer.constant is not None:
                step.fields["ahead"] = weight
                step.fields["ahead_step"] = ahead["group_step"]
                step.fields["ahead_groups"] = ahead["by_group"] and ahead["groups"]
        following = step


def _number(item: Any) -> float:
    if item is None:
        return -1
    return item.reference if isinstance(item, Spot) else item


def _arranged(buffers: list[Buffer]) -> int:
    """Places in the arena, the largest first, none over one that lives with it."""
    done: list[Buffer] = []
    top = 0
    for buffer in sorted(buffers, key=lambda each: -each.size):
        place = 0
        for other in done:  # by their places
            apart = other.last < buffer.first or buffer.last < other.first
            if apart or other.place + other.size <= place:
                continue
            if place + buffer.size <= other.place:
                break
            place = -(-(other.place + other.size) // _ALIGNED) * _ALIGNED
        buffer.place = place
        done.append(buffer)
        done.sort(key=lambda each: each.place)
        top = max(top, place + buffer.size)
    return top
