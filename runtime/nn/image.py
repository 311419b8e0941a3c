"""Layers that change an image's size."""

from __future__ import annotations

from typing import Any

from burnish import ops
from burnish.nn.layer import Layer
from burnish.tensor import Tensor


class Upsample(Layer):
    """(N, C, *S) -> (N, C, *size), or every size times scale_factor

    mode: "nearest", "linear", "bilinear", "trilinear", "bicubic", "area".
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool = False,
        recompute_scale_factor: bool = False,
    ):
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Tensor) -> Tensor:
        return ops.interpolate(
            x,
            size=self.size,
            scale_factor=self.scale_factor,
            mode=self.mode,
            align_corners=self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )
