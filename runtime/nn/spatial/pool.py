"""Pooling. N batch, C channels; spatial axes last; stride None is the kernel's size.

One example may come without N, as in PyTorch.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from burnish import ops
from burnish.errors import InputError
from burnish.nn.core.layer import Layer
from burnish.tensor import Tensor


class Pool(Layer):
    rank: ClassVar[int]

    def forward(self, x: Tensor) -> Tensor:
        """Raises InputError for another number of axes."""
        if len(x.shape) == self.rank + 2:
            return self._pool(x)
        if len(x.shape) != self.rank + 1:
            raise InputError(
                f"{type(self).__name__}: expected x with the axes (batch, channels) "
                f"and {self.rank} more, got shape {x.shape}"
            )
        found: Any = self._pool(x[None])
        one: Any = tuple(y[0] for y in found) if isinstance(found, tuple) else found[0]
        return one

    def _pool(self, x: Tensor) -> Any:
        """x (N, C, *S)"""


class _MaxPool(Pool):
    """(N, C, *S) -> (N, C, *P): the largest element under each window

    return_indices: also its index in its channel's plane, as PyTorch counts.
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

    def _pool(self, x: Tensor) -> Any:
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


class _AvgPool(Pool):
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

    def _pool(self, x: Tensor) -> Tensor:
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

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)


class AvgPool2d(_AvgPool):
    __doc__ = _AvgPool.__doc__
    rank = 2


class AvgPool3d(_AvgPool):
    __doc__ = _AvgPool.__doc__
    rank = 3


class _AdaptiveAvgPool(Pool):
    """(N, C, *S) -> (N, C, *output_size): means of equal shares; None keeps a size"""

    def __init__(self, output_size: Any):
        self.output_size = output_size

    def _pool(self, x: Tensor) -> Tensor:
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


class _AdaptiveMaxPool(Pool):
    """(N, C, *S) -> (N, C, *output_size): maxima of equal shares; None keeps a size"""

    def __init__(self, output_size: Any, return_indices: bool = False):
        self.output_size = output_size
        self.return_indices = return_indices

    def _pool(self, x: Tensor) -> Any:
        if not self.return_indices:
            return ops.adaptive_max_pool(x, output_size=self.output_size)
        found = ops.adaptive_max_pool_with_indices(x, output_size=self.output_size)
        return _in_planes(found, x)


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
    return values, indices % prod(x.shape[2:])
