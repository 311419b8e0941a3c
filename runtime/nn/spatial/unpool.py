"""MaxUnpool and LPPool. N batch, C channels, *P sizes in."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from burnish import ops
from burnish.backend import namespace
from burnish.errors import InputError
from burnish.nn.compared import is_equal
from burnish.nn.core.layer import Layer
from burnish.nn.spatial.pool import Pool
from burnish.ops._kernels.window import each
from burnish.steps import step
from burnish.tensor import Tensor


class _LPPool(Pool):
    """(N, C, *P) -> (N, C, *S): (the sum of x ** norm_type under a window) ** (1 / p)

    Where that sum is 0, so is the gradient.
    """

    def __init__(
        self,
        norm_type: float,
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: bool = False,
    ):
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def _pool(self, x: Tensor) -> Tensor:
        count = prod(each(self.kernel_size, self.rank, "kernel_size"))
        total = count * ops.avg_pool(
            x**self.norm_type,
            kernel_size=self.kernel_size,
            stride=self.stride,
            ceil_mode=self.ceil_mode,
        )
        nothing = is_equal(total, 0)
        return ops.where(
            nothing, 0, ops.where(nothing, 1, total) ** (1 / self.norm_type)
        )


class LPPool1d(_LPPool):
    __doc__ = _LPPool.__doc__
    rank = 1


class LPPool2d(_LPPool):
    __doc__ = _LPPool.__doc__
    rank = 2


class LPPool3d(_LPPool):
    __doc__ = _LPPool.__doc__
    rank = 3


class _MaxUnpool(Layer):
    """values and indices (N, C, *P) of a max pool -> (N, C, *S), the rest zeros

    output_size: *S where several sizes are pooled to *P.
    """

    rank: ClassVar[int]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Raises InputError for indices of another shape or beyond *S."""
        if x.shape != indices.shape or len(x.shape) - self.rank not in (1, 2):
            raise InputError(
                f"{type(self).__name__}: expected x and indices of one shape "
                f"(N, C, *P), got {x.shape} and {indices.shape}"
            )
        sizes = self._sizes(x) if output_size is None else output_size[-self.rank :]
        if min(sizes) < 0:
            raise InputError(
                f"{type(self).__name__}: expected padding that leaves something of x "
                f"{x.shape}, got {self.padding}"
            )
        lead = x.shape[: -self.rank]
        flat = _in_all(
            indices, lead=prod(lead), size=prod(sizes), who=type(self).__name__
        )
        return ops.max_unpool(x, flat, shape=(*lead, *sizes))

    def _sizes(self, x: Tensor) -> tuple[int, ...]:
        kernel, padding, stride = (
            each(self.kernel_size if v is None else v, self.rank, "max_unpool")
            for v in (self.kernel_size, self.padding, self.stride)
        )
        return tuple(
            (n - 1) * s - 2 * p + k
            for n, s, p, k in zip(
                x.shape[-self.rank :], stride, padding, kernel, strict=True
            )
        )


@step
def _in_all(indices: Any, *, lead: int, size: int, who: str) -> Any:
    """Places in the planes of one example and channel as places in all of them."""
    places = indices.reshape(lead, -1)
    if places.size and (places.min() < 0 or places.max() >= size):
        raise InputError(
            f"{who}: expected indices from 0 to {size - 1}, got "
            f"{places.min()} to {places.max()}"
        )
    planes = namespace(indices).arange(lead)[:, None] * size
    return (places + planes).reshape(indices.shape)


class MaxUnpool1d(_MaxUnpool):
    __doc__ = _MaxUnpool.__doc__
    rank = 1


class MaxUnpool2d(_MaxUnpool):
    __doc__ = _MaxUnpool.__doc__
    rank = 2


class MaxUnpool3d(_MaxUnpool):
    __doc__ = _MaxUnpool.__doc__
    rank = 3
