"""Images: resizing and sampling."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops._rules import Result, call, ints, known, onnx_op, plain, tensor
from burnish.codegen.program import Expression, Method


def _numbers(value: Expression | None) -> Any:
    """A vector as a tuple of numbers, or as a list when the model runs."""
    if value is None or value.shape == (0,):
        return None
    array = known(value)
    if array is not None:
        return tuple(plain(array.reshape(-1)))
    listed = ints(value)
    return Method(value, "tolist") if isinstance(listed, Expression) else tuple(listed)


@onnx_op("Upsample", since=9)
def upsample(X: Expression, scales: Expression, *, mode: str = "nearest") -> Result:
    return call(
        "resize",
        X,
        scales=_numbers(scales),
        mode=mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


@onnx_op("Resize", since=10)
def resize_by_scales(
    X: Expression, scales: Expression, *, mode: str = "nearest"
) -> Result:
    return upsample(X, scales, mode=mode)


@onnx_op("Resize", since=11)
def resize_of_all_axes(
    X: Expression,
    roi: Expression | None = None,
    scales: Expression | None = None,
    sizes: Expression | None = None,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Result:
    return _resize(
        (X, roi, scales, sizes),
        coordinate_transformation_mode=coordinate_transformation_mode,
        cubic_coeff_a=cubic_coeff_a,
        exclude_outside=bool(exclude_outside),
        extrapolation_value=extrapolation_value,
        mode=mode,
        nearest_mode=nearest_mode,
    )


@onnx_op("Resize", since=18)
def resize(
    X: Expression,
    roi: Expression | None = None,
    scales: Expression | None = None,
    sizes: Expression | None = None,
    *,
    antialias: int = 0,
    axes: list[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Result:
    return _resize(
        (X, roi, scales, sizes),
        antialias=bool(antialias),
        axes=None if axes is None else tuple(axes),
        coordinate_transformation_mode=coordinate_transformation_mode,
        cubic_coeff_a=cubic_coeff_a,
        exclude_outside=bool(exclude_outside),
        extrapolation_value=extrapolation_value,
        keep_aspect_ratio_policy=keep_aspect_ratio_policy,
        mode=mode,
        nearest_mode=nearest_mode,
    )


def _resize(inputs: tuple[Any, ...], **options: Any) -> Result:
    x, roi, scales, sizes = inputs
    crops = options["coordinate_transformation_mode"] == "tf_crop_and_resize"
    if options["mode"] != "nearest":
        del options["nearest_mode"]
    if options["mode"] != "cubic":
        del options["cubic_coeff_a"]
    return call(
        "resize",
        x,
        scales=_numbers(scales),
        sizes=_numbers(sizes),
        roi=_numbers(roi) if crops else None,
        **options,
    )


@onnx_op("GridSample")
def grid_sample_in_two_dimensions(
    X: Expression,
    grid: Expression,
    *,
    align_corners: int = 0,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
) -> Result:
    names = {"bilinear": "linear", "bicubic": "cubic"}
    return _sampled(X, grid, align_corners, names.get(mode, mode), padding_mode)


@onnx_op("GridSample", since=20)
def grid_sample(
    X: Expression,
    grid: Expression,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Result:
    return _sampled(X, grid, align_corners, mode, padding_mode)


def _sampled(
    x: Expression, grid: Expression, align_corners: int, mode: str, padding_mode: str
) -> Result:
    options = {"mode": mode, "padding_mode": padding_mode}
    aligned = bool(align_corners)
    return call("grid_sample", x, tensor(grid), **options, align_corners=aligned)


@onnx_op("ImageDecoder", since=20)
def image_decoder(encoded_stream: Expression, *, pixel_format: str = "RGB") -> Result:
    return call("decode_image", tensor(encoded_stream), pixel_format=pixel_format)
