"""Element-wise operators in the kernels' terms: activations, their slopes, programs."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from burnish.kernels.records import STEPS

OUTER = 4
"""Axes of a program beside the rows and columns of a plane."""

Step = tuple[Any, ...]
"""(name, registers a, b, c, numbers low, high): a program's step. The registers are the
operands, then the results of the steps."""


_GELU = {"none": "gelu", "tanh": "gelu_tanh"}


def activation(name: str, o: Mapping[str, Any]) -> tuple[str, float, float] | None:
    """The kernels' name of an operator with these options, with its two numbers."""
    match name:
        case "relu" | "sigmoid" | "tanh" | "hard_swish" | "softplus":
            return name, 0.0, 0.0
        case "relu6":
            return "clip", 0.0, 6.0
        case "hard_tanh":
            return "clip", o["low"], o["high"]
        case "gelu" if o["approximate"] in _GELU:
            return _GELU[o["approximate"]], 0.0, 0.0
        case "swish":
            return "swish", o["alpha"], 0.0
        case "hard_sigmoid":
            return "ramp", o["alpha"], o["beta"]
        case "leaky_relu":
            return "leaky", o["negative_slope"], 0.0
        case "elu":
            return "elu", o["alpha"], 0.0
        case "celu" if o["alpha"] == 1:
            return "elu", 1.0, 0.0
    return None


def slope(name: str, o: Mapping[str, Any]) -> tuple[str, str, float] | None:
    """An activation's derivative: the step, what it is of (x, or the result y), low."""
    match name:
        case "gelu":
            return f"{_GELU[o['approximate']]}_slope", "x", 0.0
        case "swish":
            return "swish_slope", "x", o["alpha"]
        case "leaky_relu":
            return "leaky_slope", "x", o["negative_slope"]
        case "hard_swish":
            return "hard_swish_slope", "x", 0.0
        case "softplus":
            return "softplus_slope", "x", 0.0
        case "elu" | "celu" if name == "elu" or o["alpha"] == 1:
            return "elu_slope", "x", o["alpha"]
        case "sigmoid" | "tanh":
            return f"{name}_slope", "y", 0.0
    return None


def of_slope(step: str, low: float) -> list[Step]:
    """The program of a gradient: of registers g and what the slope is of."""
    return [(step, 1, 0, 0, low, 0.0)]


def coded(steps: Sequence[Step], operands: int) -> bytes:
    """A program's code, for so many operands."""
    return b"".join(
        struct.pack("=6i2d", STEPS[name], operands + i, *places, 0, low, high)
        for i, (name, *places, low, high) in enumerate(steps)
    )


def mode(steps: Sequence[int], rows: int, width: int) -> str:
    """How an operand of these strides along rows and columns is read."""
    row, column = steps
    if (row == 0 or rows == 1) and (column == 0 or width == 1):
        return "one"
    if (column == 1 or width == 1) and (rows == 1 or row == width * column):
        return "dense" if column == 1 else "strided"
    return "strided"


def merged(
    sizes: list[int], ways: list[list[int]]
) -> tuple[list[int], list[list[int]]]:
    """The same elements along fewer axes."""
    kept, paths = [sizes[0]], [[way[0]] for way in ways]
    for axis in range(1, len(sizes)):
        n = sizes[axis]
        fits = [
            path[-1] == n * way[axis] for path, way in zip(paths, ways, strict=True)
        ]
        if kept[-1] == 1 or n == 1 or all(fits):
            if n != 1:
                kept[-1] *= n
                for path, way in zip(paths, ways, strict=True):
                    path[-1] = way[axis]
        else:
            kept.append(n)
            for path, way in zip(paths, ways, strict=True):
                path.append(way[axis])
    return kept, paths
