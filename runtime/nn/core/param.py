"""Param and Buffer: tensors that a module owns, with values made at first use."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from burnish import rng
from burnish.autodiff import Node, Variable, recording
from burnish.backend import Array, Device, dtype_from, on_host
from burnish.errors import InputError
from burnish.habits import Size
from burnish.lowbit import Packed, QuantizedTensor
from burnish.nn.core.fit import number_kind
from burnish.nn.init import loaded
from burnish.steps import call
from burnish.tensor import Tensor, is_literal, literal

if TYPE_CHECKING:
    from burnish.lowbit import QuantScheme

_making = threading.RLock()
_changing = threading.RLock()  # held briefly: who has it waits for no loan


class Loan:
    """What a parameter has in place of an initializer while its values are changed.

    Who reads or assigns them waits. array: the values, once it is done.
    """

    __slots__ = ("_is_done", "array")

    def __init__(self, is_done: threading.Event):
        self._is_done = is_done
        self.array: Any = None

    def value(self) -> Array:
        """The values; waits for them."""
        self._is_done.wait()
        return self.array


class Stored(Tensor):
    """A module's tensor. Until it is used or loaded it is a shape and an initializer.

    initial: an array, or a function `(shape, dtype, device) -> array` called once.
    shape, dtype: what a function is asked for; an array has its own.

    It may hold its values as small numbers: once it is assigned a QuantizedTensor they
    are computed at every use, and it is frozen until it is assigned plain values.
    """

    __slots__ = ("_dtype", "_initial", "_shape", "_value", "trainable")
    learns = False
    is_adapter = False
    persistent: bool = True  #: whether `state_dict` has it
    is_loaded: bool = False  #: whether files bring its values beside the `state_dict`

    _dtype: np.dtype[Any]
    _initial: Callable[..., Array] | Loan | None
    _shape: tuple[int, ...]
    _value: Any  #: an Array, a Packed, or None where it is lazy
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
            self._shape = tuple(shape)
            self._dtype = dtype_from(type(self).__name__, dtype)
            self._initial, self._value = initial, None
        else:
            self._initial = None
            self._hold(initial)
            held = self._value
            self.device = Device.of(held.codes if isinstance(held, Packed) else held)

    def _hold(self, value: Any) -> None:
        value = _plain(value)
        if is_literal(value):
            value = np.asarray(*literal(value, Device("cpu")))
        self._keep(value if hasattr(value, "dtype") else np.asarray(value))

    def _keep(self, value: Any) -> None:
        """Hold an array or a packed form; waits while the values are lent."""
        self._begin_change()
        try:
            self._value, self._initial = value, None
            self._shape, self._dtype = value.shape, value.dtype
        finally:
            _changing.release()

    def _begin_change(self) -> None:
        """Take the lock of changes; waits while the values are lent."""
        while True:
            _changing.acquire()
            loan = self._initial
            if not isinstance(loan, Loan):
                return
            _changing.release()
            loan.value()

    def assign(self, value: Any, dtype: Any = None) -> None:
        """Give it these values, cast to `dtype` when given; its device stays.

        The old array is let go, not written to: copies of the module keep it. While
        `checkpoint` computes something again, buffers stay as they are.
        """
        if recording.replaying and not self.learns:
            return
        if recording.tape is not None:
            recording.tape.assign(self, value, dtype)
            return
        value = _plain(value)
        shape = getattr(value, "shape", ())
        if shape != self._shape and tuple(shape) != self._shape:
            raise InputError(
                f"assign: expected values of shape {self._shape}, got {tuple(shape)}"
            )
        was, now = type(self._value) is Packed, type(value) is Packed
        self._keep(_put(self.device, value, dtype))
        if was is not now:
            self.freeze(now)

    def check_assignment(self, value: Any, where: str) -> None:
        """Raise InputError for what cannot be assigned: other shapes, wider dtypes.

        where: what the error calls this tensor.
        """
        array = value if hasattr(value, "dtype") else _array(value)
        wanted = f"{where}: expected values of shape {self._shape} and {self._dtype}"
        if array is None:
            raise InputError(
                f"{wanted}, got {value!r:.60}; replace() puts something else there"
            )
        shape, dtype = tuple(array.shape), array.dtype
        is_number = dtype.kind in "biufcV"
        if shape != self._shape or is_number is not (self._dtype.kind in "biufcV"):
            raise InputError(
                f"{wanted}, got {shape} {dtype}; replace() takes an nn.Param or "
                f"nn.Buffer of any shape"
            )
        if number_kind(dtype) > number_kind(self._dtype):
            raise InputError(f"{wanted}, got {dtype}, which it does not hold")

    @property
    def data(self) -> Array:
        """The values; a lazy tensor makes them now, a quantized one every time."""
        value = self._value
        if value is None or recording.tape is not None:
            value = self.held
        return value.unpack() if type(value) is Packed else value

    @data.setter
    def data(self, values: Any) -> None:
        """As `assign`, which checks them."""
        self.assign(values)

    def lend(self, values: Callable[..., Array]) -> None:
        """Its values are what `values(shape, dtype, device)` gives when it is asked."""
        self._begin_change()
        try:
            self._initial, self._value = values, None
        finally:
            _changing.release()

    def borrow(self, loan: Loan) -> Array:
        """Its last values before a loan: no one else reads or changes them meanwhile.

        Waits while the values are lent.
        """
        while True:
            held = self.held
            with _changing:
                if self._value is held:
                    self._initial, self._value = loan, None
                    return held.unpack() if type(held) is Packed else held

    def end_loan(self, loan: Loan) -> None:
        """Its values are those of a loan from now on: of its own shape and dtype."""
        with _changing:
            self._value, self._initial = loan.array, None

    def is_lent(self, values: Callable[..., Array]) -> bool:
        """Whether it was lent these values, and none has been read yet."""
        return self._value is None and self._initial is values

    @property
    def held(self) -> Array | Packed:
        """The value in memory: an array, or its packed low-bit form."""
        if recording.tape is not None:
            recording.tape.read(self)
        value = self._value
        while value is None:
            loan = self._initial
            value = loan.value() if isinstance(loan, Loan) else self._made()
        return value

    def _made(self) -> Array | Packed | None:
        """The values of its initializer, which is called once."""
        with _making:
            initial = self._initial
            if self._value is None and initial and not isinstance(initial, Loan):
                with rng.initial(), self.device.computing():
                    value = initial(self._shape, self._dtype, self.device)
                if np.shape(value) != self._shape:
                    raise InputError(
                        f"{type(self).__name__}: expected an initializer that "
                        f"gives the shape {self._shape}, got {np.shape(value)}"
                    )
                self._hold(self.device.put(value, self._dtype))
        return self._value

    def settled(self) -> np.ndarray:
        """The values on the host, as Python reads settings from them.

        A captured program refuses to run once they are others.
        """
        if recording.tape is not None:
            return on_host(recording.tape.settled(self))
        return self.numpy()

    def arrays(self) -> dict[str, Array]:
        """The arrays that a file keeps, by the suffix of their name: "" for itself."""
        held = self.held
        return held.arrays() if isinstance(held, Packed) else {"": held}

    @property
    def scheme(self) -> QuantScheme | None:
        """How its values are quantized, None when they are not."""
        return self._value.scheme if isinstance(self._value, Packed) else None

    @property
    def nbytes(self) -> int:
        """The bytes that its values take, or will take."""
        if isinstance(self._value, Packed):
            return self._value.nbytes
        return self.size * self._dtype.itemsize

    @call
    def dequantize(self) -> Tensor:
        """A plain tensor of its values; itself where it holds plain numbers."""
        return self if self.scheme is None else Tensor.wrap(self.data, self.device)

    def parts(self) -> Iterator[tuple[str, Stored]]:
        """The tensors that a module keeps, by the suffix of their name: itself."""
        yield "", self

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def size(self) -> int:
        return Size(math.prod(self._shape))

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def is_lazy(self) -> bool:
        """Whether the values have not been made yet."""
        return self._value is None

    def place(self, device: Device) -> None:
        """Move to `device`; on an autodiff device a trainable one is recorded."""
        self._begin_change()
        try:
            if self._value is not None and device.inner() is not self.device.inner():
                self._value = _put(device, self._value)
            self.device = device
        finally:
            _changing.release()
        self._track()

    def freeze(self, frozen: bool = True) -> None:
        """Keep the values out of gradients (or let them back in, unless quantized)."""
        quantized = isinstance(self._value, Packed)
        self.trainable = self.learns and not frozen and not quantized
        self._track()

    def _track(self) -> None:
        if not (self.trainable and self.device.is_autodiff):
            self.node = None
        elif self.node is None:
            self.node = Node()

    def copy(self) -> Self:
        """Another one with the same values (arrays are shared: they never change)."""
        return _restored(type(self), self.held, self.device, self.trainable)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.held, self.device, self.trainable)

    def __repr__(self) -> str:
        lazy = ", lazy" if self.is_lazy else ""
        frozen = ", frozen" if self.learns and not self.trainable else ""
        scheme = f" as {self.scheme}" if self.scheme else ""
        return (
            f"{type(self).__name__}({self._shape}, {self._dtype}{scheme}, "
            f"device='{self.device}'{lazy}{frozen})"
        )


version: Callable[[Stored], Any] = operator.attrgetter("_value")
"""The value of a parameter or buffer: another object after each assignment."""


def _restored(kind: Any, value: Array | Packed, device: Device, trainable: bool) -> Any:
    made = object.__new__(kind)
    made.node, made.index, made._initial = None, 0, None
    made.device, made.trainable = device, trainable
    made._hold(_put(device, value))
    made._track()
    return made


def _plain(value: Any) -> Any:
    """A variable's value: an array, or the packed form of a quantized one."""
    if not isinstance(value, Variable):
        return value
    if isinstance(value, QuantizedTensor):
        return value.packed
    if isinstance(value, Stored) and not value.derived:
        return value.held
    return value.data


def _array(value: Any) -> Any:
    """Numbers in lists as an array; None for anything else."""
    if value is None or isinstance(value, str | bytes):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # of rows that are not equally long
        return None
    return None if array.dtype.kind == "O" else array


def _put(device: Device, value: Any, dtype: Any = None) -> Any:
    if isinstance(value, Packed):
        return (value if dtype is None else value.astype(dtype)).put(device)
    return device.put(value, dtype)


class Param(Stored):
    """A tensor that training changes."""

    __slots__ = ()
    learns = True

    @property
    def base(self) -> Tensor:
        """Its own values, whatever has been added to them: see `Reparameterized`."""
        return self


class Buffer(Stored):
    """A tensor that is not trained: running statistics, places, a mask.

    persistent: whether it is saved with the module, as in PyTorch. One that is not has
    its initializer's values; `init.loaded` says that weights files bring them.
    """

    __slots__ = ("is_loaded", "persistent")

    def __init__(
        self,
        initial: Array | Callable[..., Array],
        shape: tuple[int, ...] | None = None,
        dtype: Any = np.float32,
        *,
        persistent: bool = True,
    ):
        super().__init__(initial, shape, dtype)
        self.persistent = persistent
        self.is_loaded = not persistent and initial is loaded

    def copy(self) -> Self:
        made = super().copy()
        made.persistent, made.is_loaded = self.persistent, self.is_loaded
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {"persistent": self.persistent, "is_loaded": self.is_loaded}
        return (*super().__reduce__(), (None, kept))
