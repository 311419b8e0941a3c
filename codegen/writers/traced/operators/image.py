"""Resizing and sampling images, regions, boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.capture.ref import Ref
from burnish.codegen.writers.traced.emitter import Emitter
from burnish.codegen.writers.traced.table import writes


@writes("resize_image")
def resize_image(
    emit: Emitter,
    x: Any,
    *,
    sizes: Any = None,
    scales: Any = None,
    axes: Any = None,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    antialias: bool = False,
    exclude_outside: bool = False,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    roi: Any = None,
) -> Any:
    if mode == "lanczos":
        raise emit.cannot("mode 'lanczos'")
    options: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": coordinate_transformation_mode,
        "nearest_mode": nearest_mode if mode == "nearest" else None,
        "cubic_coeff_a": cubic_coeff_a if mode == "cubic" else None,
        "antialias": int(antialias) or None,
        "exclude_outside": int(exclude_outside) or None,
        "extrapolation_value": extrapolation_value or None,
    }
    if keep_aspect_ratio_policy != "stretch":
        options["keep_aspect_ratio_policy"] = keep_aspect_ratio_policy
    rank = len(x.shape)
    axes = None if axes is None else [a % rank for a in axes]
    region = None if roi is None else np.asarray(roi, np.float32)
    if sizes is None:  # onnxruntime takes scales of all axes only
        every = np.ones(rank, np.float32)
        every[list(range(rank)) if axes is None else axes] = np.asarray(scales)
        if region is not None and axes is not None:
            options["axes"], every = axes, np.asarray(scales, np.float32)
        return emit("Resize", x, region, every, **options)
    out = emit.result.shape
    if axes is not None and keep_aspect_ratio_policy != "stretch":
        options["axes"] = axes
        return emit("Resize", x, region, None, emit.ints(sizes), **options)
    if keep_aspect_ratio_policy != "stretch":
        out = tuple(sizes)
    return emit("Resize", x, region, None, emit.ints(out), **options)


_SAMPLE = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}


@writes("grid_sample")
def grid_sample(
    emit: Emitter,
    x: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Any:
    return emit(
        "GridSample", x, grid, mode=_SAMPLE[mode], padding_mode=padding_mode,
        align_corners=int(align_corners),
    )  # fmt: skip


@writes("affine_grid")
def affine_grid(
    emit: Emitter, theta: Any, size: Any, align_corners: bool = False
) -> Any:
    if not isinstance(size, Ref) and 1 in tuple(size)[2:]:
        raise emit.cannot("a grid of one place along an axis")
    sizes = size if isinstance(size, Ref) else emit.ints(size)
    return emit("AffineGrid", theta, sizes, align_corners=int(align_corners))


@writes("roi_align")
def roi_align(
    emit: Emitter,
    x: Any,
    rois: Any,
    batch_indices: Any,
    *,
    output_size: Any = (1, 1),
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    mode: str = "avg",
    aligned: bool = True,
) -> Any:
    return emit(
        "RoiAlign", x, rois, emit.cast(batch_indices, np.int64),
        output_height=output_size[0], output_width=output_size[1],
        sampling_ratio=sampling_ratio, spatial_scale=spatial_scale, mode=mode,
        coordinate_transformation_mode="half_pixel" if aligned
        else "output_half_pixel",
    )  # fmt: skip


@writes("max_roi_pool")
def max_roi_pool(
    emit: Emitter, x: Any, rois: Any, *, output_size: Any, spatial_scale: float = 1.0
) -> Any:
    return emit(
        "MaxRoiPool", x, rois, pooled_shape=list(output_size),
        spatial_scale=spatial_scale,
    )  # fmt: skip


@writes("non_max_suppression")
def non_max_suppression(
    emit: Emitter,
    boxes: Any,
    scores: Any,
    *,
    max_output_boxes_per_class: int,
    iou_threshold: float,
    score_threshold: float | None,
    center_point_box: bool,
) -> Any:
    least = (
        None if score_threshold is None else np.asarray([score_threshold], "float32")
    )
    return emit(
        "NonMaxSuppression", boxes, scores,
        np.asarray([max_output_boxes_per_class]),
        np.asarray([iou_threshold], "float32"),
        least, center_point_box=int(center_point_box),
    )  # fmt: skip


@writes("resample")
def resample(emit: Emitter, x: Any, index: Any, weight: Any, *, axis: int) -> Any:
    """Each place along an axis as a weighted sum: by a matrix."""
    from burnish.ops._kernels.axis_tables import dense

    if not all(isinstance(n, int) for n in (x.shape[axis],)):
        raise emit.cannot("resampling of a dynamic axis")
    matrix = dense(np.asarray(index), np.asarray(weight), x.shape[axis])
    order = list(range(len(x.shape)))
    order[axis], order[-1] = order[-1], order[axis]
    transposed = emit("Transpose", x, perm=order)
    made = emit("MatMul", transposed, np.asarray(matrix.T, x.dtype))
    return emit("Transpose", made, perm=order)
