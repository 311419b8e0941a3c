"""Sampling at grid coordinates: x (N, C, *S), grid (N, *P, rank) -> (N, C, *P)"""

from __future__ import annotations

import itertools
from math import prod
from typing import Any

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed
from burnish.ops._kernels.scatter import take_flat
from burnish.ops._shapes import library_of, ranked
from burnish.ops.arrays.shape import reshape
from burnish.steps import step

_MODES = {
    "bilinear": "linear",
    "nearest": "nearest",
    "bicubic": "cubic",
}
CUBIC = -0.75


@composed
def grid_sample(
    x: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Array:
    """x's values at the coordinates in `grid`: between -1 and 1, last axis first.

    mode: "bilinear" (also of three axes), "nearest" or "bicubic".
    padding_mode: "zeros", "border" or "reflection" for positions outside.
    align_corners: -1 and 1 are the centers of the outer places, not their edges.
    Results have x's dtype, whatever the grid's; positions are float32 at least.
    """
    if mode not in _MODES or padding_mode not in ("zeros", "border", "reflection"):
        raise InputError(
            f"grid_sample: expected mode among {list(_MODES)}, padding_mode 'zeros', "
            f"'border' or 'reflection', got {mode!r} and {padding_mode!r}"
        )
    ranked("grid_sample: x", x, -3)
    ranked("grid_sample: grid", grid, len(x.shape))
    n, c, *sizes = x.shape
    rank = len(sizes)
    if grid.shape[0] != n or grid.shape[-1] != rank:
        raise InputError(
            f"grid_sample: expected a grid ({n}, ..., {rank}) for x {x.shape}, "
            f"got {grid.shape}"
        )
    if grid.dtype.itemsize < 4:  # a half has 10 bits, a picture more places
        grid = grid.astype("float32")
    out = grid.shape[1:-1]
    xp = library_of(grid)
    planes = xp.arange(n * c).reshape(n, c, *(1 for _ in out)) * prod(sizes)
    per_axis = [
        _taps(grid[..., rank - 1 - i], size, _MODES[mode], padding_mode, align_corners)
        for i, size in enumerate(sizes)
    ]
    y: Any = None
    for chosen in itertools.product(*per_axis):
        place: Any = 0
        share, inside = None, None
        for size, (index, weight, within) in zip(sizes, chosen, strict=True):
            place = place * size + index
            if weight is not None:
                share = weight if share is None else share * weight
            if within is not None:
                inside = within if inside is None else inside & within
        part = take_flat(x, planes + place[:, None])
        if share is not None:
            part = part * reshape(share, shape=(n, 1, *out))
        if inside is not None:
            part = part * inside[:, None].astype(x.dtype)
        y = part if y is None else y + part
    return y if y.dtype == x.dtype else y.astype(x.dtype)


def _taps(t: Any, size: int, mode: str, padding: str, corners: bool) -> list[Any]:
    """Along one axis: index, weight and whether it is inside, for each neighbour."""
    scale, shift = ((size - 1) / 2, 0.0) if corners else (size / 2, -0.5)
    t = (t + 1) * scale + shift
    if mode == "nearest":
        _, (index, inside) = _around(
            t, moves=(), size=size, padding=padding, corners=corners
        )
        return [(index, None, inside)]
    moves = (0, 1) if mode == "linear" else (-1, 0, 1, 2)
    base, *found = _around(t, moves=moves, size=size, padding=padding, corners=corners)
    part = t - base
    if mode == "linear":
        weights = [1 - part, part]
    else:
        weights = [_far(part + 1), _near(part), _near(1 - part), _far(2 - part)]
    return [
        (index, weight, inside)
        for (index, inside), weight in zip(found, weights, strict=True)
    ]


def neighbours(t: Any, size: int) -> list[Any]:
    """Below and above places t: index, share and whether it is inside."""
    base, *found = _around(t, moves=(0, 1), size=size, padding="zeros", corners=False)
    part = t - base
    shares = (1 - part, part)
    return [(i, share, held) for (i, held), share in zip(found, shares, strict=True)]


@step
def _around(
    t: Array, *, moves: tuple[int, ...], size: int, padding: str, corners: bool
) -> Any:
    """floor(t), and for each move from it the index and whether it is inside.

    Without moves: the nearest integer to t instead, and its index.
    """
    xp = namespace(t)
    base = xp.floor(t) if moves else xp.rint(t)
    return base, *(_bounded(base + by, size, padding, corners) for by in moves or (0,))


def _bounded(place: Array, size: int, padding: str, corners: bool) -> Any:
    """A place brought inside, and whether it was there (None where all count)."""
    xp = namespace(place)
    inside = None
    if padding == "zeros":
        inside = (place >= 0) & (place < size)
    elif padding == "reflection":
        low, high = (0, size - 1) if corners else (-0.5, size - 0.5)
        period = high - low
        if period > 0:
            away = xp.mod(place - low, 2 * period)
            place = low + xp.minimum(away, 2 * period - away)
        else:
            place = xp.zeros_like(place)
    return xp.clip(place, 0, size - 1).astype(xp.int64), inside


def _near(d: Any) -> Any:
    """Keys' cubic kernel up to a distance of 1."""
    return ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1


def _far(d: Any) -> Any:
    """Keys' cubic kernel from a distance of 1 to 2."""
    return ((CUBIC * d - 5 * CUBIC) * d + 8 * CUBIC) * d - 4 * CUBIC
