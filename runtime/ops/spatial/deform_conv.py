"""Deformable convolutions: each kernel element samples at an offset.

Legend: N batch, C channels in, O out, *K kernel, *P sizes out, G offset groups.
"""

from __future__ import annotations

import itertools
from math import prod
from typing import Any

import numpy as np

from burnish.backend import Array
from burnish.operator import composed
from burnish.ops._kernels.scatter import take_flat
from burnish.ops._kernels.window import Window, window
from burnish.ops._shapes import library_of, ranked
from burnish.ops._tables import beside
from burnish.ops.arrays.shape import reshape
from burnish.ops.linalg.linear import matmul
from burnish.ops.spatial.grid_sample import neighbours


@composed
def deform_conv(
    x: Any,
    weight: Any,
    offset: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    offset_groups: int = 1,
) -> Array:
    """x (N, C, *S), weight (O, C/groups, *K), bias (O,) -> (N, O, *P)

    offset (N, G * K * rank, *P) moves each place that a kernel looks at, between places
    x is mixed linearly, outside it is 0; mask (N, G * K, *P) weighs what it sees there.
    """
    ranked("deform_conv: weight", weight, -3)
    ranked("deform_conv: x", x, len(weight.shape))
    n, c, *sizes = x.shape
    kernel, count = weight.shape[2:], prod(weight.shape[2:])
    w = window("deform_conv", tuple(sizes), kernel, stride, padding, dilation)
    rank, places, g = len(sizes), prod(w.out), offset_groups
    moved = reshape(offset, shape=(n, g, count, rank, places))
    per_axis = [
        neighbours(moved[:, :, :, i] + beside(x, line.astype(x.dtype)), sizes[i])
        for i, line in enumerate(_lines(w))
    ]
    xp = library_of(x)
    planes = xp.arange(n * c).reshape(n, g, c // g, 1, 1) * prod(sizes)
    seen: Any = None
    for chosen in itertools.product(*per_axis):
        place: Any = 0
        share: Any = None
        for size, (index, part, inside) in zip(sizes, chosen, strict=True):
            place = place * size + index
            part = part * inside.astype(x.dtype)
            share = part if share is None else share * part
        shape = (n, g, 1, count, places)
        part = take_flat(x, planes + place.reshape(shape)) * reshape(share, shape=shape)
        seen = part if seen is None else seen + part
    if mask is not None:
        seen = seen * reshape(mask, shape=(n, g, 1, count, places))
    o = weight.shape[0]
    columns = reshape(seen, shape=(n, groups, c // groups * count, places))
    rows = reshape(weight, shape=(groups, o // groups, c // groups * count))
    y = reshape(matmul(rows, columns), shape=(n, o, *w.out))
    return y if bias is None else y + reshape(bias, shape=(-1, *(1 for _ in w.out)))


def _lines(w: Window) -> list[np.ndarray]:
    """For each axis where a kernel looks without offsets: (K, P), both flat."""
    rank = len(w.kernel)
    lines = []
    for axis in range(rank):
        looks = np.arange(w.kernel[axis]) * w.dilation[axis] - w.pads[axis][0]
        starts = np.arange(w.out[axis]) * w.stride[axis]
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = len(looks), len(starts)
        both = np.add.outer(looks, starts).reshape(shape)
        full = np.broadcast_to(both, (*w.kernel, *w.out))
        lines.append(full.reshape(prod(w.kernel), prod(w.out)))
    return lines
