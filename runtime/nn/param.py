"""Param and Buffer: tensors that a module owns, with values made at first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.autodiff import Node
from burnish.backend import Array, Device
from burnish.tensor import Tensor


class Stored(Tensor):
    """A module's tensor. Until it is used or loaded it is a shape and an initializer.

    initial: an array, or a function `(shape, dtype, device) -> array` called once.
    """

    __slots__ = ("_dtype", "_initial", "_shape", "_value", "trainable")
    learns = False

    def __init__(
        self,
        initial: Array | Callable[..., Array],
        shape: tuple[int, ...] | None = None,
        dtype: Any = np.float32,
    ):
        self.device = Device("cpu")
        self.node = None
        self.index = 0
        self.trainable = self.learns
        if callable(initial):
            assert shape is not None
            self._shape, self._dtype = tuple(shape), np.dtype(dtype)
            self._initial, self._value = initial, None
        else:
            self._initial = None
            self._value = initial
            self._shape, self._dtype = initial.shape, initial.dtype
            self.device = Device.of(initial)

    def assign(self, value: Any, dtype: Any = None) -> None:
        """Give it these values, cast to `dtype` when given; its device stays."""
        value = value.data if isinstance(value, Tensor) else value
        self._value = self.device.put(value, dtype)
        self._shape, self._dtype = self._value.shape, self._value.dtype
        self._initial = None

    @property
    def data(self) -> Array:
        if self._value is None:
            value = self._initial(self._shape, self._dtype, self.device)
            self._value = self.device.put(value, self._dtype)
            self._initial = None
        return self._value

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def size(self) -> int:
        return int(np.prod(self._shape))

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def is_lazy(self) -> bool:
        """Whether the values have not been made yet."""
        return self._value is None

    def place(self, device: Device) -> None:
        """Move to `device`; on an autodiff device a trainable one is recorded."""
        if self._value is not None and device.inner() is not self.device.inner():
            self._value = device.put(self._value)
        self.device = device
        self._track()

    def freeze(self, frozen: bool = True) -> None:
        """Keep the values out of gradients (or let them back in)."""
        self.trainable = self.learns and not frozen
        self._track()

    def _track(self) -> None:
        if not (self.trainable and self.device.is_autodiff):
            self.node = None
        elif self.node is None:
            self.node = Node()

    def copy(self) -> Any:
        """Another one with the same values (arrays are shared: they never change)."""
        twin = type(self)(self.data)
        twin.device, twin.trainable = self.device, self.trainable
        twin._track()
        return twin


class Param(Stored):
    """A tensor that training changes."""

    __slots__ = ()
    learns = True


class Buffer(Stored):
    """A tensor that is saved with the module but not trained: running statistics."""

    __slots__ = ()
