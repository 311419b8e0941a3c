"""Sums of two rounded values, computed of their codes where they are rounded too."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import CHANNELS, PLAIN, Layout
from burnish.plan.cpu.lowbit.rounded import Rounded, is_fixed
from burnish.plan.cpu.table import LOWERED
from burnish.plan.graph import Node, Value


class Sum(NamedTuple):
    """a + b, bounded. layout, width: of the pixels in their codes."""

    a: Value
    b: Value
    low: float
    high: float
    layout: Layout
    width: int
    label: str


def sum_of_codes(b: Builder, node: Node) -> bool:
    """Defer a sum of two rounded values: to codes, or to floats if any are read."""
    if node.name != "program":
        return False
    limits = _limits(node.options["code"])
    if limits is None or not all(_is_rounded(b, arg) for arg in node.args):
        return False
    first, second = node.args
    y = node.result
    if first.shape != second.shape or y.shape != first.shape or not y.shape:
        return False
    axes = {b.blocked_axis(arg) for arg in node.args}
    if axes == {1} and len(y.shape) in (3, 4):
        layout, width = CHANNELS, y.shape[1]
    elif axes == {None}:
        layout, width = PLAIN, y.shape[-1]
    else:
        return False
    b.sums[y.place] = Sum(first, second, *limits, layout, width, node.label)

    def floats() -> None:
        label, b.label = b.label, node.label
        LOWERED["program"](b, node)
        b.label = label

    b.deferred[y.place] = floats
    return True


def pending(b: Builder, r: Rounded) -> Sum | None:
    """The sum that a value is rounded of, where no floats of it are computed."""
    summed = b.sums.get(r.x.place)
    if summed is None or b.forms.get(r.x.place) or not is_fixed(r):
        return None
    return summed


def _is_rounded(b: Builder, arg: Any) -> bool:
    if not isinstance(arg, Value) or arg.dtype != np.float32:
        return False
    return arg.place in b.rounded and is_fixed(b.rounded[arg.place]) and b.may_fault


def _limits(code: Any) -> tuple[float, float] | None:
    """The bounds of a sum that a program is of; None for any other program."""
    if not code or tuple(code[0][:3]) != ("add", 0, 1):
        return None
    if len(code) == 1:
        return -math.inf, math.inf
    name, x, *_, low, high = code[1]
    if len(code) > 2 or x != 2 or name not in ("relu", "clip"):
        return None
    return (
        (0.0, math.inf) if name == "relu" else (low, high) if low <= 0 <= high else None
    )
