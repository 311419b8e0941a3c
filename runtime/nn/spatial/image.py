"""Layers that change an image's size or rearrange it. N batch, C channels, *S sizes."""

from __future__ import annotations

from math import prod
from typing import Any

from burnish import ops
from burnish.errors import InputError
from burnish.nn.core.layer import Layer
from burnish.tensor import Tensor


class Upsample(Layer):
    """(N, C, *S) -> (N, C, *size), or every size times scale_factor

    mode: "nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic",
    "lanczos" or "area". antialias: smaller images weigh all that they leave out.
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
        antialias: bool = False,
    ):
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor
        self.antialias = antialias

    def forward(self, x: Tensor) -> Tensor:
        return ops.interpolate(
            x,
            size=self.size,
            scale_factor=self.scale_factor,
            mode=self.mode,
            align_corners=bool(self.align_corners),
            recompute_scale_factor=bool(self.recompute_scale_factor),
            antialias=self.antialias,
        )


class UpsamplingNearest2d(Upsample):
    """`Upsample` with mode "nearest" """

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """`Upsample` with mode "bilinear" and corners that stay where they are"""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Layer):
    """(..., C * r * r, H, W) -> (..., C, H * r, W * r), r the upscale_factor"""

    def __init__(self, upscale_factor: int):
        self.upscale_factor = upscale_factor

    def forward(self, x: Tensor) -> Tensor:
        r = self.upscale_factor
        *lead, c, h, w = _sizes(self, x, 3)
        _divides(self, x, c, r * r)
        x = x.reshape(-1, c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
        return x.reshape(*lead, c // (r * r), h * r, w * r)


class PixelUnshuffle(Layer):
    """(..., C, H * r, W * r) -> (..., C * r * r, H, W), r the downscale_factor"""

    def __init__(self, downscale_factor: int):
        self.downscale_factor = downscale_factor

    def forward(self, x: Tensor) -> Tensor:
        r = self.downscale_factor
        *lead, c, h, w = _sizes(self, x, 3)
        _divides(self, x, h, r)
        _divides(self, x, w, r)
        x = x.reshape(-1, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
        return x.reshape(*lead, c * r * r, h // r, w // r)


class ChannelShuffle(Layer):
    """(N, C, *S) -> the same shape: each group's first channel, then its second"""

    def __init__(self, groups: int):
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        n, c, *sizes = _sizes(self, x, 3)
        _divides(self, x, c, self.groups)
        parts = x.reshape(n, self.groups, c // self.groups, prod(sizes))
        return parts.transpose(0, 2, 1, 3).reshape(*x.shape)


class Unfold(Layer):
    """(N, C, H, W) -> (N, C * K, P): what each of P windows sees, as a column"""

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ):
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        if len(x.shape) == 3:
            return self.forward(x[None])[0]
        _sizes(self, x, 4)
        return ops.im2col(
            x,
            kernel_size=_two(self.kernel_size),
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
        )


class Fold(Layer):
    """(N, C * K, P) -> (N, C, *output_size): columns added where their windows were"""

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ):
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        if len(x.shape) == 2:
            return self.forward(x[None])[0]
        _sizes(self, x, 3)
        return ops.col2im(
            x,
            sizes=_two(self.output_size),
            kernel_size=_two(self.kernel_size),
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
        )


def _two(size: Any) -> tuple[int, ...]:
    return (size, size) if isinstance(size, int) else tuple(size)


def _sizes(layer: Layer, x: Tensor, least: int) -> tuple[int, ...]:
    if len(x.shape) < least:
        raise InputError(
            f"{type(layer).__name__}: expected x with {least} axes or more, "
            f"got shape {x.shape}"
        )
    return x.shape


def _divides(layer: Layer, x: Tensor, size: int, count: int) -> None:
    if size % count:
        raise InputError(
            f"{type(layer).__name__}: expected a multiple of {count}, got {size} in "
            f"x {x.shape}"
        )
