"""Tables of indices and weights by which one axis is resized.

Resizing is separable, so these tables for each axis are all that a resize needs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burnish.errors import InputError


class AxisTable(NamedTuple):
    """places and weight (P, taps); weight None: the one tap as it is; outside (P,)."""

    places: np.ndarray
    weight: np.ndarray | None
    outside: np.ndarray | None


def axis_table(
    n: int,
    out: int,
    scale: float,
    *,
    mode: str,
    coordinates: str,
    nearest_mode: str,
    cubic_coeff_a: float,
    antialias: bool,
    exclude_outside: bool,
    roi: tuple[float, float],
) -> AxisTable:
    """From n places to `out`, in ONNX's words."""
    x = _coordinates(n, out, scale, coordinates, roi)
    outside = None
    if coordinates == "tf_crop_and_resize":
        outside = (x < 0) | (x > n - 1)
    if mode == "nearest":
        index = _ROUND[nearest_mode](x).clip(0, n - 1).astype(np.int64)
        return AxisTable(index[:, None], None, outside)
    reach = {"linear": 1, "cubic": 2, "lanczos": 3}[mode]
    shrink = min(scale, 1.0) if antialias else 1.0
    first = int(np.floor(-reach / shrink)) + 1
    left = np.ceil(x) - 1
    taps = np.arange(first, 2 - first)
    index = (left[:, None] + taps).astype(np.int64)
    distance = abs(taps - (x - left)[:, None]) * shrink
    if mode == "linear":
        weight = (1 - distance).clip(0, 1)
    elif mode == "cubic":
        weight = _keys(distance, cubic_coeff_a)
    else:
        weight = np.where(
            abs(distance) < 3, np.sinc(distance) * np.sinc(distance / 3), 0
        )
    if antialias:
        weight /= weight.sum(axis=1, keepdims=True)
    if exclude_outside:
        weight = np.where((index < 0) | (index >= n), 0, weight)
        total = weight.sum(axis=1, keepdims=True)
        weight /= np.where(total == 0, 1, total)
    return AxisTable(index.clip(0, n - 1), weight, outside)


def dense(index: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
    """The table as a matrix (P, n)."""
    matrix = np.zeros((len(index), n))
    rows = np.arange(len(index))
    for tap in range(index.shape[1]):  # a tap is a place at most once in a row
        matrix[rows, index[:, tap]] += weight[:, tap]
    return matrix


def adjoint(
    index: np.ndarray, weight: np.ndarray, size: int, most: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """The adjoint's index and weight (size, taps); None where taps would be over most.

    index, weight (P, taps): which of `size` places each place reads, and how much.
    Places of fewer taps than others have -1 behind them.
    """
    from_place, tap = np.nonzero(weight)
    read = index[from_place, tap]
    counts = np.bincount(read, minlength=size)
    taps = max(int(counts.max(initial=0)), 1)
    if taps > most:
        return None
    order = np.argsort(read, kind="stable")
    rank = np.arange(len(read)) - np.repeat(np.cumsum(counts) - counts, counts)
    places, shares = np.full((size, taps), -1), np.zeros((size, taps))
    places[read[order], rank] = from_place[order]
    shares[read[order], rank] = weight[from_place, tap][order]
    return places, shares


def _coordinates(
    n: int, out: int, scale: float, mode: str, roi: tuple[float, float]
) -> np.ndarray:
    """The position in the input of each output position."""
    place = np.arange(out, dtype=np.float64)
    if mode == "asymmetric":
        return place / scale
    if mode == "align_corners":  # ONNX's cases do not round the length
        return place * (n - 1) / (scale * n - 1) if scale * n != 1 else np.zeros(out)
    if mode == "tf_crop_and_resize":
        start, end = roi[0] * (n - 1), roi[1] * (n - 1)
        if out == 1:
            return np.full(out, (start + end) / 2)
        return start + place * (end - start) / (out - 1)
    centers = (place + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return centers + n / 2 * (1 - out / (scale * n))
    if mode == "pytorch_half_pixel" and out == 1:
        return np.zeros(out)
    return centers


def _keys(distance: np.ndarray, a: float) -> np.ndarray:
    """Keys' cubic kernel at these distances."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


_ROUND: dict[str, Any] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
)


def check(mode: str, coordinates: str, nearest_mode: str) -> None:
    """Raises InputError for a word that names no way of resizing."""
    for what, word, known in (
        ("mode", mode, ("nearest", "linear", "cubic", "lanczos")),
        ("coordinate_transformation_mode", coordinates, COORDINATES),
        ("nearest_mode", nearest_mode, tuple(_ROUND)),
    ):
        if word not in known:
            raise InputError(f"resize: expected {what} among {known}, got {word!r}")
