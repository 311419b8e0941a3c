"""Affine sampling grids for `grid_sample`."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnish.backend import Array
from burnish.errors import InputError
from burnish.operator import composed
from burnish.ops._tables import beside
from burnish.ops.arrays.shape import reshape
from burnish.ops.linalg.linear import matmul


@composed
def affine_grid(theta: Any, size: Any, align_corners: bool = False) -> Array:
    """Places after affine maps: theta (N, rank, rank + 1) -> (N, *S, rank)

    size: (N, C, *S) of the image that is sampled to, S of one axis a rank, 1 to 3 of
    them. Coordinates are between -1 and 1, last axis first. align_corners: these are
    the centers of the outer places, not their edges.
    """
    count, _, *sizes = (int(n) for n in size)
    rank = len(sizes)
    if theta.shape != (count, rank, rank + 1):
        raise InputError(
            f"affine_grid: expected theta ({count}, {rank}, {rank + 1}) for size "
            f"{tuple(size)}, got {theta.shape}"
        )
    lines = [_line(n, align_corners) for n in reversed(sizes)]
    grids = np.meshgrid(*reversed(lines), indexing="ij")[::-1]
    places = np.stack([*grids, np.ones(sizes)], axis=-1).astype(theta.dtype)
    places = beside(theta, places.reshape(prod(sizes), rank + 1))
    return reshape(matmul(places, theta.mT), shape=(count, *sizes, rank))


def _line(n: int, align_corners: bool) -> np.ndarray:
    """n places between -1 and 1; of one alone the middle."""
    if n == 1:
        return np.zeros(1)
    ends = np.linspace(-1, 1, n)
    return ends if align_corners else ends * ((n - 1) / n)
