"""Tensor: the engine's variable with operators as methods; one line a method."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish import ops
from burnish.autodiff import Gradients, Node, Variable, backward
from burnish.backend import Device, on_host


class Tensor(Variable):
    """An array on a device.

    Tensor(data): anything that `numpy.asarray` takes, a CuPy array, another tensor.
    dtype: None keeps what NumPy gives (Python floats are float64); device: where to put
    it. Broadcasting, indexing and dtype promotion are NumPy's.
    """

    __slots__ = ()
    __array_ufunc__ = None  # array + tensor asks the tensor

    def __init__(self, data: Any, dtype: Any = None, device: Device | str | None = None):
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
            return self.wrap(device.put(self.data), device, self.node, self.index)
        return ops.cast(self, dtype=np.dtype(target))

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

    def backward(self, gradient: Any = None, *, create_graph: bool = False) -> Gradients:
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

    # --- shape ---

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def size(self) -> int:
        return self.data.size

    def __len__(self) -> int:
        return len(self.data)

    # --- arithmetic ---

    def __add__(self, other: Any) -> Tensor:
        return ops.add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return ops.add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return ops.sub(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return ops.sub(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return ops.mul(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return ops.mul(other, self)

    def __neg__(self) -> Tensor:
        return ops.neg(self)

    def __matmul__(self, other: Any) -> Tensor:
        return ops.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return ops.matmul(other, self)


def _is_device(target: Any) -> bool:
    return isinstance(target, Device) or target.split(":")[0] in ("cpu", "cuda")
