"""Param and Buffer: tensors that a module owns, with values made at first use."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from burnish import rng
from burnish.autodiff import Node, Variable, recording
from burnish.backend import Array, Device
from burnish.errors import InputError
from burnish.tensor import Tensor

_making = threading.RLock()


class Stored(Tensor):
    """A module's tensor. Until it is used or loaded it is a shape and an initializer.

    initial: an array, or a function `(shape, dtype, device) -> array` called once.
    shape, dtype: what a function is asked for; an array has its own.
    """

    __slots__ = ("_dtype", "_initial", "_shape", "_value", "trainable")
    learns = False
    is_adapter = False

    _dtype: np.dtype[Any]
    _initial: Callable[..., Array] | None
    _shape: tuple[int, ...]
    _value: Array
    trainable: bool

    def __init__(
        self,
        initial: Array | Callable[..., Array],
        shape: tuple[int, ...] | None = None,
        dtype: Any = np.float32,
    ):
        self.node = None
        self.index = 0
        self.trainable = self.learns
        if callable(initial):
            if shape is None:
                raise InputError(f"{type(self).__name__}: an initializer needs a shape")
            self.device = Device("cpu")
            self._shape, self._dtype = tuple(shape), np.dtype(dtype)
            self._initial, self._value = initial, None
        else:
            self._hold(initial)
            self.device = Device.of(self._value)

    def _hold(self, value: Any) -> None:
        value = value.data if isinstance(value, Variable) else value
        self._value = value if hasattr(value, "dtype") else np.asarray(value)
        self._shape, self._dtype = self._value.shape, self._value.dtype
        self._initial = None

    def assign(self, value: Any, dtype: Any = None) -> None:
        """Give it these values, cast to `dtype` when given; its device stays.

        The old array is let go, not written to: copies of the module keep it. While
        `checkpoint` computes something again, buffers stay as they are.
        """
        if recording.replaying and not self.learns:
            return
        value = value.data if isinstance(value, Variable) else value
        if tuple(getattr(value, "shape", ())) != self._shape:
            raise InputError(
                f"assign: expected values of shape {self._shape}, "
                f"got {tuple(getattr(value, 'shape', ()))}"
            )
        self._hold(self.device.put(value, dtype))

    @property
    def data(self) -> Array:
        """The values; a lazy tensor makes them now."""
        if self._value is None:
            with _making:
                if self._value is None and self._initial is not None:
                    with rng.initial():
                        value = self._initial(self._shape, self._dtype, self.device)
                    self._hold(self.device.put(value, self._dtype))
        return self._value

    def parts(self) -> Iterator[tuple[str, Stored]]:
        """What a module keeps of it, with what stands behind its name: itself."""
        yield "", self

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def size(self) -> int:
        return math.prod(self._shape)

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

    def copy(self) -> Self:
        """Another one with the same values (arrays are shared: they never change)."""
        return _restored(type(self), self.data, self.device, self.trainable)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.data, self.device, self.trainable)

    def __repr__(self) -> str:
        lazy = ", lazy" if self.is_lazy else ""
        frozen = ", frozen" if self.learns and not self.trainable else ""
        return (
            f"{type(self).__name__}({self._shape}, {self._dtype}, "
            f"device='{self.device}'{lazy}{frozen})"
        )


def _restored(kind: Any, value: Array, device: Device, trainable: bool) -> Any:
    made = object.__new__(kind)
    made.node, made.index = None, 0
    made.device, made.trainable = device, trainable
    made._hold(device.put(value))
    made._track()
    return made


class Param(Stored):
    """A tensor that training changes."""

    __slots__ = ()
    learns = True

    @property
    def base(self) -> Tensor:
        """Its own values, whatever has been added to them: see `Reparameterized`."""
        return self


class Buffer(Stored):
    """A tensor that is saved with the module but not trained: running statistics."""

    __slots__ = ()
