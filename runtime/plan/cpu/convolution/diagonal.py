"""Small groups of convolutions, merged: block-diagonal weights, copied in each run.

A step of training changes its weights, so records copy them: to the blocks on the
diagonal of a dense weight, and a dense weight's gradient from there.
"""

from __future__ import annotations

import math

from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.grouped import Groups, merged
from burnish.plan.cpu.layout import PLAIN, strides
from burnish.plan.cpu.table import need
from burnish.plan.graph import Value

_MOST = 16
"""Groups that are merged at most: each multiplies the products, most by zeros."""


def merged_for_training(g: Groups) -> Groups:
    """Merged groups; raises Declined where a dense product takes too many products."""
    wide = merged(g)
    many = g.number // wide.number
    need(many <= _MOST, f"groups of {g.ins} channels in and {g.outs} out")
    return wide


def on_diagonal(b: Builder, weight: Value, number: int) -> tuple[Value, int]:
    """A dense weight of merged groups, zero beside the diagonal, and how many they are.

    weight: (channels of all groups, those of one, *kernel), of a convolution or of a
    transposed one.
    """
    first, second = weight.shape[0] // number, weight.shape[1]
    wide = merged_for_training(Groups(number, first, second))
    many = number // wide.number
    shape = (weight.shape[0], many * second, *weight.shape[2:])
    made = b.unnamed_value(shape)
    out = b.result(made, PLAIN)
    b.fill(out, shape)
    sizes, narrow, dense = _ways(weight.shape, number, many)
    b.copy(sizes, b.spot(weight), narrow, out, dense)
    return made, wide.number


def from_diagonal(
    b: Builder, dense: Spot, number: int, wide: Groups, result: Value
) -> None:
    """The gradient of small groups' weight, `result`, from that of merged groups."""
    sizes, narrow, steps = _ways(result.shape, number, number // wide.number)
    b.copy(sizes, dense, steps, b.result(result, PLAIN), narrow)


def _ways(
    shape: tuple[int, ...], number: int, many: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Sizes (merged groups, groups of each, channels, a row), and distances in both."""
    outs, row = shape[0] // number, math.prod(shape[1:])
    sizes = number // many, many, outs, row
    wide = many * row
    return sizes, strides(sizes), (many * outs * wide, outs * wide + row, wide, 1)
