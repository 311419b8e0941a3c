"""Over axes: axis=None is all of them, an integer or a tuple; keepdims keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burnish import ops
from burnish.autodiff import Variable
from burnish.methods._bind import along, method, reduction

if TYPE_CHECKING:
    from burnish.tensor import Tensor


class ReduceMethods(Variable):
    """Reductions, scans, and what is scaled along an axis."""

    __slots__ = ()

    def sum(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The sum over axes; small integers and booleans add up to int64."""
        return ops.reduce_sum(_counted(self), axes=axis, keepdims=keepdims)

    mean = reduction(ops.reduce_mean)
    max = reduction(ops.reduce_max)
    min = reduction(ops.reduce_min)

    def prod(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The product over axes; of small integers and booleans int64."""
        return ops.reduce_prod(_counted(self), axes=axis, keepdims=keepdims)

    any = reduction(ops.reduce_any)
    all = reduction(ops.reduce_all)
    logsumexp = reduction(ops.reduce_log_sum_exp)
    var = reduction(ops.var)
    std = reduction(ops.std)

    @along
    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Where the greatest is; the first of equal ones."""
        return ops.arg_max(self, axis=axis, keepdims=keepdims)

    @along
    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Where the least is; the first of equal ones."""
        return ops.arg_min(self, axis=axis, keepdims=keepdims)

    @along
    def max_with_indices(
        self, axis: int, keepdims: bool = False
    ) -> tuple[Tensor, Tensor]:
        """The greatest along an axis and where it is: of equal ones the first."""
        return _extreme(ops.arg_max, self, axis, keepdims)

    @along
    def min_with_indices(
        self, axis: int, keepdims: bool = False
    ) -> tuple[Tensor, Tensor]:
        """The least along an axis and where it is: of equal ones the first."""
        return _extreme(ops.arg_min, self, axis, keepdims)

    median = along(method(ops.median))
    median_with_indices = along(method(ops.median_with_indices))

    def norm(self, axis: Any = None, keepdims: bool = False, p: float = 2.0) -> Tensor:
        """The p-norm over axes, as of vectors; see `ops.vector_norm`."""
        return ops.vector_norm(self, p=p, axes=axis, keepdims=keepdims)

    def var_mean(
        self, axis: Any = None, keepdims: bool = False, correction: float = 0
    ) -> tuple[Tensor, Tensor]:
        """The variance and the mean over axes."""
        spread = self.var(axis, keepdims, correction=correction)
        return spread, self.mean(axis, keepdims)

    def softmax(self, axis: int = -1) -> Tensor:
        """exp, scaled to add up to 1 along an axis."""
        return ops.softmax(self, axis=axis)

    def log_softmax(self, axis: int = -1) -> Tensor:
        """The logarithm of softmax, without overflow."""
        return ops.log_softmax(self, axis=axis)

    @along
    def cumsum(self, axis: int) -> Tensor:
        """Sums of the elements up to each one, with dtypes as `sum`."""
        return ops.cum_sum(_counted(self), axis=axis)

    @along
    def cumprod(self, axis: int) -> Tensor:
        """Products of the elements up to each one, with dtypes as `prod`."""
        return ops.cum_prod(_counted(self), axis=axis)

    @along
    def cummax(self, axis: int) -> Tensor:
        """The greatest of the elements up to each one."""
        return ops.cum_max(self, axis=axis)

    @along
    def cummin(self, axis: int) -> Tensor:
        """The least of the elements up to each one."""
        return ops.cum_min(self, axis=axis)


def _counted(x: Any) -> Any:
    """Booleans and integers of less than 32 bits, which would overflow, as int64."""
    small = x.dtype.kind in "biu" and x.dtype.itemsize < 4
    return ops.cast(x, dtype="int64") if small else x


def _extreme(place: Any, x: Any, axis: int, keepdims: bool) -> Any:
    places = place(x, axis=axis, keepdims=True)
    values = ops.take_along_axis(x, places, axis=axis)
    if keepdims:
        return values, places
    return ops.squeeze(values, axes=axis), ops.squeeze(places, axes=axis)
