"""Pooling. N batch, C channels; spatial axes last; stride None is the kernel's size."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from burnish import ops
from burnish.errors import InputError
from burnish.nn.layer import Layer
from burnish.tensor import Tensor


class _Pool(Layer):
    rank: ClassVar[int]

    def _check(self, x: Tensor) -> None:
        if len(x.shape) != self.rank + 2:
            raise InputError(
                f"{type(self).__name__}: expected x with the axes (batch, channels) "
                f"and {self.rank} more, got shape {x.shape}"
            )


class _MaxPool(_Pool):
    """(N, C, *S) -> (N, C, *P): the largest element under each window

    return_indices: also where it stands in its channel's plane, as PyTorch counts.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, x: Tensor) -> Any:
        self._check(x)
        pool = ops.max_pool_with_indices if self.return_indices else ops.max_pool
        found = pool(
            x,
            kernel_size=self.kernel_size,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            ceil_mode=self.ceil_mode,
        )
        return _in_planes(found, x) if self.return_indices else found


class MaxPool1d(_MaxPool):
    __doc__ = _MaxPool.__doc__
    rank = 1


class MaxPool2d(_MaxPool):
    __doc__ = _MaxPool.__doc__
    rank = 2


class MaxPool3d(_MaxPool):
    __doc__ = _MaxPool.__doc__
    rank = 3


class _AvgPool(_Pool):
    """(N, C, *S) -> (N, C, *P): the mean of each window"""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        return ops.avg_pool(
            x,
            kernel_size=self.kernel_size,
            stride=self.stride,
            padding=self.padding,
            ceil_mode=self.ceil_mode,
            count_include_pad=self.count_include_pad,
            divisor_override=self.divisor_override,
        )


class AvgPool1d(_AvgPool):
    __doc__ = _AvgPool.__doc__
    rank = 1


class AvgPool2d(_AvgPool):
    __doc__ = _AvgPool.__doc__
    rank = 2


class AvgPool3d(_AvgPool):
    __doc__ = _AvgPool.__doc__
    rank = 3


class _AdaptiveAvgPool(_Pool):
    """(N, C, *S) -> (N, C, *output_size): means of equal shares; None keeps a size"""

    def __init__(self, output_size: Any):
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        return ops.adaptive_avg_pool(x, output_size=self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    __doc__ = _AdaptiveAvgPool.__doc__
    rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    __doc__ = _AdaptiveAvgPool.__doc__
    rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    __doc__ = _AdaptiveAvgPool.__doc__
    rank = 3


class _AdaptiveMaxPool(_Pool):
    """(N, C, *S) -> (N, C, *output_size): maxima of equal shares; None keeps a size"""

    def __init__(self, output_size: Any, return_indices: bool = False):
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, x: Tensor) -> Any:
        self._check(x)
        found = ops.adaptive_max_pool_with_indices(x, output_size=self.output_size)
        return _in_planes(found, x) if self.return_indices else found[0]


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    __doc__ = _AdaptiveMaxPool.__doc__
    rank = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    __doc__ = _AdaptiveMaxPool.__doc__
    rank = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    __doc__ = _AdaptiveMaxPool.__doc__
    rank = 3


def _in_planes(found: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    values, indices = found
    return values, indices.wrap(indices.data % prod(x.shape[2:]), indices.device)
