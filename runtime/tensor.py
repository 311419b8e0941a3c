"""Tensor: the engine's variable with operators as methods; one line a method."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from operator import index
from typing import Any

import numpy as np

from burnish import ops, rng
from burnish.autodiff import Gradients, Node, Variable, backward
from burnish.backend import Device, on_host
from burnish.display import describe
from burnish.ops.index import to_index


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


class Tensor(Variable):
    """An array on a device.

    Tensor(data): anything that `numpy.asarray` takes, a CuPy array, another tensor.
    dtype: None keeps what NumPy gives (Python floats are float64); device: where to put
    it. Broadcasting, indexing and dtype promotion are NumPy's.
    """

    __slots__ = ()
    __array_ufunc__ = None  # array + tensor asks the tensor
    __array_priority__ = 1000  # CuPy's word for the same

    def __init__(
        self, data: Any, dtype: Any = None, device: Device | str | None = None
    ):
        if isinstance(data, Variable):
            device = device or data.device
            data = data.data
        self.device = Device(device) if device else Device.of(data)
        self.data = self.device.put(data, dtype)
        self.node = None
        self.index = 0

    @classmethod
    def result_type(cls) -> type[Tensor]:
        return Tensor

    # --- where it is, and gradients ---

    def to(self, target: Any) -> Tensor:
        """On another device (`"cuda"`, `Device`) or with another dtype."""
        if isinstance(target, Device | str) and _is_device(target):
            device = Device(target)
            if device.inner() is self.device.inner():
                return self.wrap(self.data, device, self.node, self.index)
            return ops.to_device(self, device=device)
        return self.astype(target)

    def astype(self, dtype: Any) -> Tensor:
        """With another dtype; itself where it has it."""
        return ops.cast(self, dtype=np.dtype(dtype))

    cast = astype

    def clone(self) -> Tensor:
        """The same values in memory of their own, recorded as this tensor is."""
        return self.wrap(self.data.copy(), self.device, self.node, self.index)

    def require_grad(self) -> Tensor:
        """The same values as a leaf that `backward()` finds gradients for."""
        return self.wrap(self.data, self.device.autodiff(), Node())

    @property
    def requires_grad(self) -> bool:
        return self.node is not None

    def detach(self) -> Tensor:
        """The same values, no longer recorded."""
        return self.wrap(self.data, self.device)

    def inner(self) -> Tensor:
        """The same values on the device without autodiff."""
        return self.wrap(self.data, self.device.inner())

    def backward(
        self, gradient: Any = None, *, create_graph: bool = False
    ) -> Gradients:
        """Gradients of this tensor; see `burnish.autodiff.backward`."""
        return backward(self, gradient, create_graph=create_graph)

    def grad(self, gradients: Gradients) -> Tensor | None:
        """This tensor's gradient in what `backward()` returned."""
        return gradients.get(self)

    # --- out of Burnish ---

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array; shares memory on the CPU."""
        return on_host(self.data)

    def item(self) -> Any:
        return self.data.item()

    def tolist(self) -> Any:
        return self.data.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.data.__dlpack_device__()

    @classmethod
    def from_dlpack(cls, source: Any) -> Tensor:
        """A tensor that shares memory with any DLPack array, such as torch's."""
        kind, _ = source.__dlpack_device__()
        xp = Device("cpu").xp if kind == 1 else Device("cuda").xp
        array = xp.from_dlpack(source)
        return cls.wrap(array, Device.of(array))

    # --- out of Tensor's class: new ones ---

    @classmethod
    def zeros(cls, *shape: Any, dtype: Any = "float32", device: Any = "cpu") -> Tensor:
        """Zeros; the shape as integers or as one tuple."""
        return cls.full(_shape(shape), 0, dtype=dtype, device=device)

    @classmethod
    def ones(cls, *shape: Any, dtype: Any = "float32", device: Any = "cpu") -> Tensor:
        """Ones; the shape as integers or as one tuple."""
        return cls.full(_shape(shape), 1, dtype=dtype, device=device)

    @classmethod
    def full(
        cls, shape: Any, value: Any, *, dtype: Any = "float32", device: Any = "cpu"
    ) -> Tensor:
        """Every element `value`."""
        device = Device(device)
        return Tensor.wrap(device.xp.full(shape, value, dtype), device)

    @classmethod
    def arange(cls, *limits: Any, dtype: Any = None, device: Any = "cpu") -> Tensor:
        """stop, or start, stop, or start, stop, step; floats are float32 by default."""
        if dtype is None:
            whole = all(isinstance(limit, int) for limit in limits)
            dtype = "int64" if whole else "float32"
        device = Device(device)
        return Tensor.wrap(device.xp.arange(*limits, dtype=dtype), device)

    @classmethod
    def linspace(
        cls,
        start: float,
        stop: float,
        num: int,
        *,
        dtype: Any = "float32",
        device: Any = "cpu",
    ) -> Tensor:
        """`num` numbers at equal distances, both ends among them."""
        device = Device(device)
        return Tensor.wrap(device.xp.linspace(start, stop, num, dtype=dtype), device)

    @classmethod
    def eye(
        cls,
        n: int,
        m: int | None = None,
        *,
        dtype: Any = "float32",
        device: Any = "cpu",
    ) -> Tensor:
        """An n by m matrix with ones on the diagonal."""
        device = Device(device)
        return Tensor.wrap(device.xp.eye(n, m, dtype=dtype), device)

    @classmethod
    def rand(cls, *shape: Any, dtype: Any = "float32", device: Any = "cpu") -> Tensor:
        """Uniform in [0, 1), from `burnish.seed`'s source."""
        device = Device(device)
        array = rng.uniform(_shape(shape), 0, 1, dtype, device)
        return Tensor.wrap(array, device)

    @classmethod
    def randn(cls, *shape: Any, dtype: Any = "float32", device: Any = "cpu") -> Tensor:
        """Normal with mean 0 and deviation 1, from `burnish.seed`'s source."""
        device = Device(device)
        array = rng.normal(_shape(shape), 0, 1, dtype, device)
        return Tensor.wrap(array, device)

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
        return ops.reshape(self, shape=_shape(shape))

    def transpose(self, *perm: Any) -> Tensor:
        """The axes in another order; without one, reversed."""
        return ops.transpose(self, perm=_shape(perm) or None)

    permute = transpose

    def flatten(self, start: int = 0, end: int = -1) -> Tensor:
        """The axes from start to end as one."""
        first, last = start % max(self.ndim, 1), end % max(self.ndim, 1)
        count = math.prod(self.shape[first : last + 1])
        return self.reshape(*self.shape[:first], count, *self.shape[last + 1 :])

    def squeeze(self, *axes: Any) -> Tensor:
        """Without these axes of length 1; without any argument, all of length 1."""
        return ops.squeeze(self, axes=_shape(axes) if axes else None)

    def unsqueeze(self, *axes: Any) -> Tensor:
        """With axes of length 1 at these places of the result."""
        return ops.unsqueeze(self, axes=_shape(axes))

    def expand(self, *shape: Any) -> Tensor:
        """Broadcast together with a shape."""
        return ops.expand(self, shape=_shape(shape))

    def tile(self, *repeats: Any) -> Tensor:
        """Repeated along each axis."""
        return ops.tile(self, repeats=_shape(repeats))

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
        return ops.flip(self, axes=_shape(axes) if axes else None)

    def roll(self, shift: Any, axis: Any = None) -> Tensor:
        """Moved along an axis; what leaves at one end comes in at the other."""
        return ops.roll(self, shift=shift, axis=axis)

    pad = _method(ops.pad)
    swapaxes = _method(ops.swapaxes)

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

    gather = _method(ops.gather)
    gather_elements = _method(ops.gather_elements)
    take_along_axis = _method(ops.take_along_axis)
    scatter_elements = _method(ops.scatter_elements)
    top_k = _method(ops.top_k)
    tril = _method(ops.tril)
    triu = _method(ops.triu)

    # --- as Python numbers ---

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
    tanh = _method(ops.tanh)
    erf = _method(ops.erf)
    pow = _method(ops.pow_)
    relu = _method(ops.relu)
    sigmoid = _method(ops.sigmoid)
    is_nan = _method(ops.is_nan)
    is_inf = _method(ops.is_inf)

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

    # --- display ---

    def __repr__(self) -> str:
        return describe(type(self).__name__, self.data, self.device)


def _is_device(target: Any) -> bool:
    return isinstance(target, Device) or target.split(":")[0] in ("cpu", "cuda")


def _shape(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes that were given one by one or as one tuple, list or array."""
    if len(sizes) == 1 and not hasattr(sizes[0], "__index__"):
        sizes = tuple(sizes[0])
    return tuple(map(index, sizes))
