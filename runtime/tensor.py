"""Tensor: the engine's variable with operators as methods; one line a method."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish import ops, rng
from burnish.autodiff import Gradients, Node, Variable, backward
from burnish.backend import Device, on_host
from burnish.display import describe
from burnish.methods import Methods, shape_from


class Tensor(Methods):
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
            if self.node is not None:  # stays recorded: inner() and detach() stop that
                device = device.autodiff()
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
        return cls.full(shape_from(shape), 0, dtype=dtype, device=device)

    @classmethod
    def ones(cls, *shape: Any, dtype: Any = "float32", device: Any = "cpu") -> Tensor:
        """Ones; the shape as integers or as one tuple."""
        return cls.full(shape_from(shape), 1, dtype=dtype, device=device)

    @classmethod
    def full(
        cls, shape: Any, value: Any, *, dtype: Any = "float32", device: Any = "cpu"
    ) -> Tensor:
        """Every element `value`."""
        device = Device(device)
        return Tensor.wrap(device.xp.full(shape, value, dtype), device)

    def zeros_like(self) -> Tensor:
        """Zeros of this tensor's shape, dtype and device."""
        return self.full_like(0)

    def ones_like(self) -> Tensor:
        """Ones of this tensor's shape, dtype and device."""
        return self.full_like(1)

    def full_like(self, value: Any) -> Tensor:
        """Every element `value`, with this tensor's shape, dtype and device."""
        return self.full(self.shape, value, dtype=self.dtype, device=self.device)

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
        array = rng.uniform(shape_from(shape), 0, 1, dtype, device)
        return Tensor.wrap(array, device)

    @classmethod
    def randn(cls, *shape: Any, dtype: Any = "float32", device: Any = "cpu") -> Tensor:
        """Normal with mean 0 and deviation 1, from `burnish.seed`'s source."""
        device = Device(device)
        array = rng.normal(shape_from(shape), 0, 1, dtype, device)
        return Tensor.wrap(array, device)

    # --- display ---

    def __repr__(self) -> str:
        return describe(type(self).__name__, self.data, self.device)


def _is_device(target: Any) -> bool:
    return isinstance(target, Device) or target.split(":")[0] in ("cpu", "cuda")
