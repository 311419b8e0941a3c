"""The operators as methods of a tensor, spelled as NumPy and PyTorch spell them."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from operator import index
from typing import TYPE_CHECKING, Any

from burnish import ops
from burnish.autodiff import Variable
from burnish.ops.index import to_index

if TYPE_CHECKING:
    from burnish.tensor import Tensor


def _method(operator: Any) -> Any:
    """An operator as a method: the tensor is its first argument."""

    @functools.wraps(operator)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return operator(self, *args, **options)

    return method


def _reflected(operator: Any) -> Any:
    """A binary operator as the method that Python tries on its right argument."""

    @functools.wraps(operator)
    def method(self: Any, other: Any) -> Any:
        return operator(other, self)

    return method


def _reduction(operator: Any) -> Any:
    """A reduction as a method that says `axis`, as NumPy does."""

    @functools.wraps(operator)
    def method(
        self: Any, axis: Any = None, keepdims: bool = False, **options: Any
    ) -> Any:
        return operator(self, axes=axis, keepdims=keepdims, **options)

    return method


def shape_from(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes that were given one by one or as one tuple, list or array."""
    if len(sizes) == 1 and not hasattr(sizes[0], "__index__"):
        sizes = tuple(sizes[0])
    return tuple(map(index, sizes))


class Methods(Variable):
    """What Tensor can do, beside being made, moved and differentiated."""

    __slots__ = ()

    # --- shape ---

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def size(self) -> int:
        return self.data.size

    @property
    def T(self) -> Tensor:
        """All axes reversed."""
        return ops.transpose(self)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return ops.swapaxes(self, -1, -2)

    def reshape(self, *shape: Any) -> Tensor:
        """Another shape, as integers or as one tuple; one -1 is worked out."""
        return ops.reshape(self, shape=shape_from(shape))

    def transpose(self, *perm: Any) -> Tensor:
        """The axes in another order; without one, reversed."""
        return ops.transpose(self, perm=shape_from(perm) or None)

    permute = transpose

    def flatten(self, start: int = 0, end: int = -1) -> Tensor:
        """The axes from start to end as one."""
        first, last = start % max(self.ndim, 1), end % max(self.ndim, 1)
        count = math.prod(self.shape[first : last + 1])
        return self.reshape(*self.shape[:first], count, *self.shape[last + 1 :])

    def squeeze(self, *axes: Any) -> Tensor:
        """Without these axes of length 1; without any argument, all of length 1."""
        return ops.squeeze(self, axes=shape_from(axes) if axes else None)

    def unsqueeze(self, *axes: Any) -> Tensor:
        """With axes of length 1 at these places of the result."""
        return ops.unsqueeze(self, axes=shape_from(axes))

    def expand(self, *shape: Any) -> Tensor:
        """Broadcast together with a shape."""
        return ops.expand(self, shape=shape_from(shape))

    def tile(self, *repeats: Any) -> Tensor:
        """Repeated along each axis."""
        return ops.tile(self, repeats=shape_from(repeats))

    def split(self, sizes: Any, axis: int = 0) -> tuple[Tensor, ...]:
        """Parts of these sizes, or of one size, along an axis."""
        if isinstance(sizes, int):
            full, rest = divmod(self.shape[axis], sizes)
            sizes = (sizes,) * full + ((rest,) if rest else ())
        return ops.split(self, sizes=tuple(sizes), axis=axis)

    def chunk(self, num: int, axis: int = 0) -> tuple[Tensor, ...]:
        """`num` parts along an axis, the last maybe shorter."""
        return ops.split(self, num=num, axis=axis)

    def flip(self, *axes: Any) -> Tensor:
        """Backwards along axes, all when none is named."""
        return ops.flip(self, axes=shape_from(axes) if axes else None)

    def roll(self, shift: Any, axis: Any = None) -> Tensor:
        """Moved along an axis; what leaves at one end comes in at the other."""
        return ops.roll(self, shift=shift, axis=axis)

    pad = _method(ops.pad)
    swapaxes = _method(ops.swapaxes)
    moveaxis = _method(ops.moveaxis)
    repeat = tile

    # --- elements ---

    def __getitem__(self, index: Any) -> Tensor:
        return ops.getitem(self, index=to_index(index))

    def set_item(self, index: Any, values: Any) -> Tensor:
        """A copy with `values` at [index]; tensors never change in place."""
        return ops.set_item(self, values, index=to_index(index))

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def narrow(self, axis: int, start: int, length: int) -> Tensor:
        """`length` slices along an axis from `start` on."""
        stop = start + length
        return ops.slice_(self, (start,), (stop,), (axis,))

    def masked_fill(self, mask: Any, value: Any) -> Tensor:
        """`value` where the mask holds."""
        return ops.where(mask, value, self)

    def argwhere(self) -> Tensor:
        """The positions of what is not zero, one a row."""
        return ops.non_zero(self).T

    def one_hot(self, depth: int) -> Tensor:
        """Integers as vectors of length `depth`, 1 in one place; float32."""
        return ops.one_hot(self, depth)

    gather = _method(ops.gather)
    gather_elements = _method(ops.gather_elements)
    take_along_axis = _method(ops.take_along_axis)
    scatter_elements = _method(ops.scatter_elements)
    non_zero = _method(ops.non_zero)
    sort = _method(ops.sort)
    argsort = _method(ops.arg_sort)
    top_k = _method(ops.top_k)
    tril = _method(ops.tril)
    triu = _method(ops.triu)

    # --- as Python numbers ---

    def item(self) -> Any:
        """The only element as a Python number."""
        return self.data.item()

    def __bool__(self) -> bool:
        return bool(self.data)

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        return index(self.item())

    # --- arithmetic ---

    __add__ = _method(ops.add)
    __radd__ = _reflected(ops.add)
    __sub__ = _method(ops.sub)
    __rsub__ = _reflected(ops.sub)
    __mul__ = _method(ops.mul)
    __rmul__ = _reflected(ops.mul)
    __truediv__ = _method(ops.div)
    __rtruediv__ = _reflected(ops.div)
    __floordiv__ = _method(ops.floor_div)
    __rfloordiv__ = _reflected(ops.floor_div)
    __mod__ = _method(ops.mod)
    __rmod__ = _reflected(ops.mod)
    __pow__ = _method(ops.pow_)
    __rpow__ = _reflected(ops.pow_)
    __matmul__ = _method(ops.matmul)
    __rmatmul__ = _reflected(ops.matmul)
    __neg__ = _method(ops.neg)
    __abs__ = _method(ops.abs_)
    __round__ = _method(ops.round_)
    __floor__ = _method(ops.floor)
    __ceil__ = _method(ops.ceil)

    # --- bits, and logic on booleans ---

    __and__ = _method(ops.bitwise_and)
    __rand__ = _reflected(ops.bitwise_and)
    __or__ = _method(ops.bitwise_or)
    __ror__ = _reflected(ops.bitwise_or)
    __xor__ = _method(ops.bitwise_xor)
    __rxor__ = _reflected(ops.bitwise_xor)
    __invert__ = _method(ops.bitwise_not)
    __lshift__ = _method(ops.shift_left)
    __rlshift__ = _reflected(ops.shift_left)
    __rshift__ = _method(ops.shift_right)
    __rrshift__ = _reflected(ops.shift_right)

    # --- comparison, element by element ---

    __eq__ = _method(ops.equal)
    __ne__ = _method(ops.not_equal)
    __gt__ = _method(ops.greater)
    __ge__ = _method(ops.greater_or_equal)
    __lt__ = _method(ops.less)
    __le__ = _method(ops.less_or_equal)
    __hash__ = object.__hash__

    # --- functions of each element ---

    abs = _method(ops.abs_)
    sign = _method(ops.sign)
    sqrt = _method(ops.sqrt)
    square = _method(ops.square)
    reciprocal = _method(ops.reciprocal)
    exp = _method(ops.exp)
    expm1 = _method(ops.expm1)
    log = _method(ops.log)
    log1p = _method(ops.log1p)
    floor = _method(ops.floor)
    ceil = _method(ops.ceil)
    round = _method(ops.round_)
    clip = _method(ops.clip)
    sin = _method(ops.sin)
    cos = _method(ops.cos)
    tan = _method(ops.tan)
    sinh = _method(ops.sinh)
    cosh = _method(ops.cosh)
    tanh = _method(ops.tanh)
    erf = _method(ops.erf)
    pow = _method(ops.pow_)
    matmul = _method(ops.matmul)
    relu = _method(ops.relu)
    sigmoid = _method(ops.sigmoid)
    is_nan = _method(ops.is_nan)
    is_inf = _method(ops.is_inf)
    is_finite = _method(ops.is_finite)
    is_close = _method(ops.is_close)

    def all_close(self, other: Any, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
        """Whether |self - other| <= atol + rtol * |other| everywhere."""
        return bool(ops.is_close(self, other, rtol=rtol, atol=atol).data.all())

    def contains_nan(self) -> bool:
        """Whether any element is not a number."""
        return bool(ops.is_nan(self).data.any())

    # --- over axes: axis=None is all, an integer or a tuple; keepdims ---

    sum = _reduction(ops.reduce_sum)
    mean = _reduction(ops.reduce_mean)
    max = _reduction(ops.reduce_max)
    min = _reduction(ops.reduce_min)
    prod = _reduction(ops.reduce_prod)
    any = _reduction(ops.reduce_any)
    all = _reduction(ops.reduce_all)
    logsumexp = _reduction(ops.reduce_log_sum_exp)
    norm = _reduction(ops.reduce_l2)
    var = _reduction(ops.var)
    std = _reduction(ops.std)

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Where the greatest is; the first of equal ones."""
        return ops.arg_max(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Where the least is; the first of equal ones."""
        return ops.arg_min(self, axis=axis, keepdims=keepdims)

    def softmax(self, axis: int = -1) -> Tensor:
        """exp, scaled to add up to 1 along an axis."""
        return ops.softmax(self, axis=axis)

    def log_softmax(self, axis: int = -1) -> Tensor:
        """The logarithm of softmax, without overflow."""
        return ops.log_softmax(self, axis=axis)

    def cumsum(self, axis: int) -> Tensor:
        """Sums of the elements up to each one."""
        return ops.cum_sum(self, axis=axis)

    def cumprod(self, axis: int) -> Tensor:
        """Products of the elements up to each one."""
        return ops.cum_prod(self, axis=axis)
