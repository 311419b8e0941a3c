"""Images: resizing and sampling."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops.arrays.shape import shape_option
from burnish.codegen.ops.rule.expressions import call, ints, known, plain, tensor
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE, RESIZE, UNBOUNDED
from burnish.codegen.ops.shapes import layers
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


@onnx_op("Resize", since=10)
@onnx_op("Upsample", since=9, traits=OWN_SHAPE)
def upsample(X: Expression, scales: Expression, *, mode: str = "nearest") -> Result:
    return _resize(
        (X, None, scales, None),
        axes=None,
        mode=mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
        cubic_coeff_a=-0.75,
    )


@onnx_op("Resize", since=11, traits=OWN_SHAPE | RESIZE, shapes=layers.resized)
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
    whole_lengths: int = 0,
) -> Result:
    """whole_lengths is the reader's: corners are aligned by the result's elements."""
    return _resize(
        (X, roi, scales, sizes),
        whole_lengths=bool(whole_lengths),
        antialias=antialias,
        axes=None if axes is None else tuple(axes),
        coordinate_transformation_mode=coordinate_transformation_mode,
        cubic_coeff_a=cubic_coeff_a,
        exclude_outside=exclude_outside,
        extrapolation_value=extrapolation_value,
        keep_aspect_ratio_policy=keep_aspect_ratio_policy,
        mode=mode,
        nearest_mode=nearest_mode,
    )


_IN_TORCH = {
    ("nearest", "asymmetric", "floor"): ("nearest",) * 3,
    ("nearest", "half_pixel", "round_prefer_ceil"): ("nearest-exact",) * 3,
    ("linear", "half_pixel", ""): ("linear", "bilinear", "trilinear"),
    ("cubic", "half_pixel", ""): ("", "bicubic", ""),
}
"""PyTorch's modes for one, two and three axes behind the channels."""
_DEFAULTS = {
    "antialias": False,
    "cubic_coeff_a": -0.75,
    "exclude_outside": False,
    "extrapolation_value": 0.0,
    "keep_aspect_ratio_policy": "stretch",
}


def _interpolate_options(
    x: Expression, scales: Any, sizes: Any, whole: bool, options: dict[str, Any]
) -> dict[str, Any] | None:
    """The options of `interpolate`, if batch and channels are not resized.

    whole: corners are aligned by the result's elements, whatever the scales.
    """
    spatial = _spatial(x, scales, sizes, options["axes"])
    if spatial is None or not 1 <= len(spatial) <= 3:
        return None
    if any(options.get(name, usual) != usual for name, usual in _DEFAULTS.items()):
        return None
    how = ("mode", "coordinate_transformation_mode", "nearest_mode")
    mode, coordinates, nearest = (options.get(name, "") for name in how)
    whole |= sizes is not None or all(factor == int(factor) for factor in spatial)
    aligned = whole and mode != "nearest" and coordinates == "align_corners"
    if aligned or (sizes is not None and _is_half_pixel(coordinates, spatial)):
        coordinates = "half_pixel"
    modes = _IN_TORCH.get((mode, coordinates, nearest))
    if modes is None or not modes[len(spatial) - 1]:
        return None
    made: dict[str, Any] = {"mode": modes[len(spatial) - 1]}
    if aligned:
        made["align_corners"] = True
    if sizes is not None:
        return {"size": spatial} | made
    factors = [int(f) if f == int(f) else f for f in spatial]
    alike = len(set(factors)) == 1
    return {"scale_factor": factors[0] if alike else tuple(factors)} | made


def _spatial(
    x: Expression, scales: Any, sizes: Any, axes: Any
) -> tuple[Any, ...] | None:
    """The scales or sizes of all axes behind the channels, if no others change."""
    given = scales if sizes is None else sizes
    if not isinstance(given, tuple):
        return None
    if axes is None and sizes is None:
        return given[2:] if given[:2] == (1.0, 1.0) else None
    rank = 0 if x.shape is None else len(x.shape)
    return given if axes == tuple(range(2, rank)) else None


def _is_half_pixel(coordinates: str, sizes: tuple[Any, ...]) -> bool:
    """Whether it is PyTorch's half_pixel, which has places of its own for one pixel."""
    large = all(isinstance(size, int) and size > 1 for size in sizes)
    return coordinates == "pytorch_half_pixel" and large


def _resize(
    inputs: tuple[Any, ...], *, whole_lengths: bool = False, **options: Any
) -> Result:
    x, roi, scales, sizes = inputs
    crops = options["coordinate_transformation_mode"] == "tf_crop_and_resize"
    if options["mode"] != "nearest":
        del options["nearest_mode"]
    if options["mode"] != "cubic":
        del options["cubic_coeff_a"]
    scales, sizes = _numbers(scales), _numbers(sizes)
    torch_options = _interpolate_options(x, scales, sizes, whole_lengths, options)
    if torch_options is not None:
        return call("interpolate", x, **torch_options)
    return call(
        "resize_image",
        x,
        scales=scales,
        sizes=sizes,
        roi=_numbers(roi) if crops else None,
        **options,
    )


@onnx_op("GridSample", since=20, traits=OWN_SHAPE | UNBOUNDED)
def grid_sample(
    X: Expression,
    grid: Expression,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Result:
    names = {"linear": "bilinear", "cubic": "bicubic"}
    options = {"mode": names.get(mode, mode), "padding_mode": padding_mode}
    return call("grid_sample", X, tensor(grid), **options, align_corners=align_corners)


@onnx_op("GridSample", options=grid_sample)
def grid_sample_in_two_dimensions(
    X: Expression, grid: Expression, *, mode: str = "bilinear", **options: Any
) -> Result:
    return grid_sample(X, grid, mode=mode, **options)


@onnx_op("AffineGrid", since=20, traits=OWN_SHAPE | UNBOUNDED)
def affine_grid(
    theta: Expression, size: Expression, *, align_corners: int = 0
) -> Result:
    sizes = shape_option(size)
    return call("affine_grid", tensor(theta), sizes, align_corners=align_corners)


@onnx_op("ImageDecoder", since=20, traits=OWN_SHAPE | UNBOUNDED)
def image_decoder(encoded_stream: Expression, *, pixel_format: str = "RGB") -> Result:
    return call("decode_image", tensor(encoded_stream), pixel_format=pixel_format)
