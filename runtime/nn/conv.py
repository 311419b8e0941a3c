"""Convolutions. N batch, C channels, *S sizes in, *P sizes out."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from burnish import ops
from burnish.errors import InputError
from burnish.nn import init
from burnish.nn.layer import Layer
from burnish.nn.param import Param
from burnish.tensor import Tensor


class _Conv(Layer):
    """(N, in_channels, *S) -> (N, out_channels, *P)

    padding: a number, one for each axis, (before, after) pairs, "same" or "valid".
    """

    rank: ClassVar[int]

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
        kernel = sizes(kernel_size, self.rank)
        width = in_channels // groups
        bound = (width * prod(kernel)) ** -0.5
        shape = (out_channels, width, *kernel)
        self.weight = Param(init.uniform(bound), shape, dtype)
        self.bias = Param(init.uniform(bound), (out_channels,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return ops.conv(
            x,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
        )


class Conv1d(_Conv):
    __doc__ = _Conv.__doc__
    rank = 1


class Conv2d(_Conv):
    __doc__ = _Conv.__doc__
    rank = 2


class Conv3d(_Conv):
    __doc__ = _Conv.__doc__
    rank = 3


class _ConvTranspose(Layer):
    """(N, in_channels, *P) -> (N, out_channels, *S): the adjoint of a convolution"""

    rank: ClassVar[int]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        dtype: Any = "float32",
    ):
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.output_padding = output_padding
        self.dilation = dilation
        self.groups = groups
        kernel = sizes(kernel_size, self.rank)
        width = out_channels // groups
        bound = (width * prod(kernel)) ** -0.5
        shape = (in_channels, width, *kernel)
        self.weight = Param(init.uniform(bound), shape, dtype)
        self.bias = Param(init.uniform(bound), (out_channels,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return ops.conv_transpose(
            x,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            output_padding=self.output_padding,
            dilation=self.dilation,
            groups=self.groups,
        )


class ConvTranspose1d(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    rank = 1


class ConvTranspose2d(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    rank = 2


class ConvTranspose3d(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    rank = 3


def sizes(kernel_size: Any, rank: int) -> tuple[int, ...]:
    """A kernel's size for every axis."""
    if isinstance(kernel_size, int):
        return (kernel_size,) * rank
    if len(kernel_size) != rank:
        raise InputError(f"kernel_size: expected {rank} numbers, got {kernel_size}")
    return tuple(kernel_size)
