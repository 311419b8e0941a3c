"""Boxes in images: selection, and pooling of features inside them.

Legend: N images, C channels or classes, R regions, B boxes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._shapes import cast, ranked
from burnish.ops.arrays.index import take_slices
from burnish.ops.arrays.reduce import reduce_max, reduce_sum
from burnish.ops.arrays.shape import reshape, swapaxes
from burnish.ops.elementwise.arithmetic import maximum
from burnish.ops.elementwise.clip import clip
from burnish.ops.elementwise.compare import where
from burnish.steps import step


@operator
def non_max_suppression(
    boxes,
    scores,
    *,
    max_output_boxes_per_class: int = 0,
    iou_threshold: float = 0.0,
    score_threshold: float | None = None,
    center_point_box: bool = False,
) -> Array:
    """The best boxes that overlap no better one: (chosen, 3), image, class and box

    boxes (N, B, 4): any two opposite corners (y, x, y, x), or with center_point_box
    (x, y, width, height); scores (N, C, B). Two boxes overlap where their intersection
    is more than iou_threshold of their union.
    """
    xp = namespace(boxes)
    low, high = _corners(boxes, center_point_box)
    area = (high - low).prod(axis=-1)
    image = xp.arange(len(boxes))[:, None]
    classes = xp.arange(scores.shape[1])
    live = xp.ones(scores.shape, bool)
    if score_threshold is not None:
        live = scores > score_threshold
    found = []
    for _ in range(min(max_output_boxes_per_class, scores.shape[2])):
        best = xp.where(live, scores, -np.inf).argmax(axis=-1)
        taken = live[image, classes, best]
        if not taken.any():
            break
        found.append((best, taken))
        ends = (high[image, best][:, :, None], low[image, best][:, :, None])
        sides = xp.minimum(high[:, None], ends[0]) - xp.maximum(low[:, None], ends[1])
        shared = xp.maximum(sides, 0).prod(axis=-1)
        union = area[:, None] + area[image, best][:, :, None] - shared
        live = live & (shared / xp.where(shared > 0, union, 1) <= iou_threshold)
        live[image, classes, best] = False
    if not found:
        return xp.zeros((0, 3), np.int64)
    best, taken = (xp.stack(parts, axis=-1) for parts in zip(*found, strict=True))
    where_, which, _ = xp.nonzero(taken)
    return xp.stack([where_, which, best[taken]], axis=1).astype(np.int64)


def _corners(boxes: Any, center_point_box: bool) -> tuple[Any, Any]:
    one, other = boxes[..., :2], boxes[..., 2:]
    if center_point_box:
        return one - other / 2, one + other / 2
    xp = namespace(boxes)
    return xp.minimum(one, other), xp.maximum(one, other)


@composed
def roi_align(
    x: Any,
    rois: Any,
    batch_indices: Any,
    *,
    output_size: tuple[int, int] = (1, 1),
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    mode: str = "avg",
    aligned: bool = True,
) -> Array:
    """Features of x (N, C, H, W) pooled over regions: (R, C, *output_size)

    rois (R, 4): (x, y, x, y) before spatial_scale; batch_indices (R,). Each part of a
    region is sampled at sampling_ratio places an axis (0: about one a pixel), and mode
    "avg" or "max" puts them together. aligned: pixels' centers are at halves.
    """
    if mode not in ("avg", "max"):
        raise InputError(f"roi_align: expected mode 'avg' or 'max', got {mode!r}")
    ranked("roi_align: x", x, 4)
    ranked("roi_align: rois", rois, 2)
    corners = rois * spatial_scale - (0.5 if aligned else 0.0)
    rows, cols = (
        _samples(corners[:, i], corners[:, i + 2], size, out, sampling_ratio, aligned)
        for i, size, out in zip((1, 0), x.shape[2:], output_size, strict=True)
    )
    flat, image = _flat(x), _starts(batch_indices, size=x.shape[2] * x.shape[3])
    seen = []
    for row, row_share in rows[0]:
        for col, col_share in cols[0]:
            place = image + row[:, :, :, None, None] * x.shape[3] + col[:, None, None]
            share = row_share[:, :, :, None, None] * col_share[:, None, None]
            seen.append(take_slices(flat, place, axis=1) * share)
    per_region = (-1, *(1 for _ in output_size))
    count = (rows[2] * cols[2]).reshape(per_region)
    if mode == "avg":
        total = reduce_sum(seen[0] + seen[1] + seen[2] + seen[3], axes=(3, 5))
        return swapaxes(total / cast(maximum(count, 1), dtype=x.dtype), 0, 1)
    greatest = maximum(maximum(seen[0], seen[1]), maximum(seen[2], seen[3]))
    live = rows[1][:, :, :, None, None] & cols[1][:, None, None]
    y = reduce_max(where(live, greatest, -np.inf), axes=(3, 5))
    return swapaxes(where(count > 0, y, 0), 0, 1)


def _samples(
    start: Any, end: Any, size: int, out: int, ratio: int, aligned: bool
) -> Any:
    """Along one axis: neighbours with shares (R, out, G), which are real, how many."""
    length = end - start
    if not aligned:
        length = maximum(length, 1.0)
    each = (slice(None), None, None)
    count, live, parts = _spread(length, out=out, ratio=ratio)
    place = start[each] + (length * (1 / out))[each] * parts
    held = clip(place, 0, size - 1)
    inside, below, first, last = _around(place, held, live, size=size)
    part = held - below
    return [(first, (1 - part) * inside), (last, part * inside)], live, count


@step
def _spread(length: Any, *, out: int, ratio: int) -> Any:
    """How many samples each part has, (R,), which are real and where in a region."""
    xp, dtype = namespace(length), length.dtype
    count = xp.ceil(length / out) if ratio <= 0 else xp.full(length.shape, ratio)
    count = xp.maximum(count, 0).astype(np.int64)
    most = max(int(count.max()) if len(count) else 1, 1)
    each = (slice(None), None, None)
    live = xp.arange(most) < count[each]
    grid = (xp.arange(most) + 0.5) / xp.maximum(count, 1)[each]
    parts = (xp.arange(out)[:, None] + grid).astype(dtype)
    return count, xp.broadcast_to(live, parts.shape), parts


@step
def _around(place: Any, held: Any, live: Any, *, size: int) -> Any:
    """Which samples count, the place below, its number and that of the next."""
    xp, dtype = namespace(place), place.dtype
    inside = (live & (place >= -1) & (place <= size)).astype(dtype)
    below = xp.floor(held)
    above = xp.minimum(below + 1, size - 1)
    return inside, below, below.astype(np.int64), above.astype(np.int64)


@composed
def max_roi_pool(
    x: Any, rois: Any, *, output_size: tuple[int, int], spatial_scale: float = 1.0
) -> Array:
    """The maximum in each part of regions of x (N, C, H, W): (R, C, *output_size)

    rois (R, 5): image, then (x, y, x, y) before spatial_scale, both ends inside. A
    part without pixels is 0.
    """
    ranked("max_roi_pool: x", x, 4)
    ranked("max_roi_pool: rois", rois, 2)
    place, live, full = _pixels(
        rois, sizes=x.shape[2:], out=output_size, scale=spatial_scale
    )
    seen = where(live, take_slices(_flat(x), place, axis=1), -np.inf)
    y = where(full, reduce_max(seen, axes=(3, 5)), 0)
    return swapaxes(y, 0, 1)


@step
def _pixels(rois: Any, *, sizes: Any, out: tuple[int, int], scale: float) -> Any:
    """The pixels of each part, (R, rows, most, columns, most), and which are real.

    And which parts have any: (R, rows, columns).
    """
    xp = namespace(rois)
    ends = xp.floor(rois[:, 1:] * scale + 0.5).astype(np.int64)
    rows, row_live = _bins(ends[:, 1], ends[:, 3], sizes[0], out[0])
    cols, col_live = _bins(ends[:, 0], ends[:, 2], sizes[1], out[1])
    image = _starts(rois[:, 0].astype(np.int64), size=sizes[0] * sizes[1])
    place = image + rows[:, :, :, None, None] * sizes[1] + cols[:, None, None]
    live = row_live[:, :, :, None, None] & col_live[:, None, None]
    return place, live, live.any(axis=(2, 4))


def _bins(start: Any, end: Any, size: int, out: int) -> tuple[Any, Any]:
    """The pixels of each part along one axis, (R, out, most), and which are real."""
    xp = namespace(start)
    width = xp.maximum(end - start + 1, 1)[:, None]
    part = xp.arange(out)
    first = xp.clip(part * width // out + start[:, None], 0, size)
    last = xp.clip(-(-(part + 1) * width // out) + start[:, None], 0, size)
    most = max(int((last - first).max()) if first.size else 1, 1)
    place = first[:, :, None] + xp.arange(most)
    return xp.minimum(place, size - 1), place < last[:, :, None]


def _flat(x: Any) -> Any:
    """(N, C, H, W) -> (C, N * H * W)"""
    return reshape(swapaxes(x, 0, 1), shape=(x.shape[1], -1))


@step
def _starts(batch_indices: Any, *, size: int) -> Any:
    """Where each region's image starts in `_flat(x)`; (R, 1, 1, 1, 1)"""
    return (batch_indices * size).reshape(-1, 1, 1, 1, 1)
