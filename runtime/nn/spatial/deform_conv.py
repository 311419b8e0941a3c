"""Deformable convolutions. N batch, K places of a kernel, *P out."""

from __future__ import annotations

from math import prod
from typing import Any

from burnish import ops
from burnish.errors import InputError
from burnish.nn.spatial.conv import Kernel
from burnish.tensor import Tensor


class DeformConv2d(Kernel):
    """(N, in_channels, *S) -> (N, out_channels, *P), looking at shifted places

    A call takes offsets (N, 2 * groups * K, *P), the rows' before the columns' for each
    of the kernel's K places, and weights (N, groups * K, *P) of the values there.
    The number of offset groups follows from their shape.
    """

    rank = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.groups = groups
        self._build(False, bias, dtype)

    def forward(self, x: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        """Raises InputError for offsets that are no multiple of 2 * K."""
        count = 2 * prod(self.weight.shape[2:])
        if len(offset.shape) != 4 or not offset.shape[1] or offset.shape[1] % count:
            raise InputError(
                f"DeformConv2d: expected offset (N, a multiple of {count}, *P), "
                f"got {offset.shape}"
            )
        return ops.deform_conv(
            x,
            self.weight,
            offset,
            self.bias,
            mask,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
            offset_groups=offset.shape[1] // count,
        )
