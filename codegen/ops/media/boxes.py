"""Object detection: non-maximum suppression and RoI pooling."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops.rule.expressions import call, number, tensor
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE, UNBOUNDED
from burnish.codegen.program import Expression


@onnx_op("NonMaxSuppression", since=10, traits=OWN_SHAPE | UNBOUNDED)
def non_max_suppression(
    boxes: Expression,
    scores: Expression,
    max_output_boxes_per_class: Expression | None = None,
    iou_threshold: Expression | None = None,
    score_threshold: Expression | None = None,
    *,
    center_point_box: int = 0,
) -> Result:
    def given(value: Expression | None, default: Any) -> Any:
        return default if value is None else number(value)

    return call(
        "non_max_suppression",
        tensor(boxes),
        tensor(scores),
        max_output_boxes_per_class=given(max_output_boxes_per_class, 0),
        iou_threshold=given(iou_threshold, 0.0),
        score_threshold=given(score_threshold, None),
        center_point_box=center_point_box,
    )


def _roi_align(
    inputs: tuple[Expression, ...],
    aligned: bool,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Result:
    return call(
        "roi_align",
        *map(tensor, inputs),
        output_size=(output_height, output_width),
        sampling_ratio=sampling_ratio,
        spatial_scale=spatial_scale,
        mode=mode,
        aligned=aligned,
    )


@onnx_op("RoiAlign", since=10, options=_roi_align)
def roi_align_of_corners(
    X: Expression, rois: Expression, batch_indices: Expression, **options: Any
) -> Result:
    return _roi_align((X, rois, batch_indices), False, **options)


@onnx_op("RoiAlign", since=16, traits=OWN_SHAPE | UNBOUNDED, options=_roi_align)
def roi_align(
    X: Expression,
    rois: Expression,
    batch_indices: Expression,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    **options: Any,
) -> Result:
    aligned = coordinate_transformation_mode == "half_pixel"
    return _roi_align((X, rois, batch_indices), aligned, **options)


@onnx_op("MaxRoiPool", traits=OWN_SHAPE | UNBOUNDED)
def max_roi_pool(
    X: Expression,
    rois: Expression,
    *,
    pooled_shape: list[int],
    spatial_scale: float = 1.0,
) -> Result:
    options = {"output_size": tuple(pooled_shape), "spatial_scale": spatial_scale}
    return call("max_roi_pool", tensor(X), tensor(rois), **options)
