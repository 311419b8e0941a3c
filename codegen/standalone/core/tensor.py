"""Tensor: an array with the methods of operators, and how new ones are made."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish import ops, rng
from burnish.autodiff import Variable
from burnish.backend import Device
from burnish.methods import Methods, shape_from


class Tensor(Methods):
    """An array with operators as methods; `numpy()` gives the array back."""

    __slots__ = ()
    __array_ufunc__ = None  # array + tensor asks the tensor

    def __init__(self, data: Any, dtype: Any = None, device: Any = None):
        if isinstance(data, Variable):
            data = data.data
        if dtype is None and is_literal(data):
            data, dtype = literal(data)
        self.data = Device().put(data, dtype)

    @classmethod
    def result_type(cls) -> type[Tensor]:
        return Tensor

    def to(self, target: Any) -> Any:
        """With another dtype; there is one device."""
        return (
            self.wrap(self.data, target)
            if isinstance(target, Device)
            else self.astype(target)
        )

    def astype(self, dtype: Any) -> Any:
        """With another dtype; itself where it has it."""
        return ops.cast(self, dtype=np.dtype(dtype))

    def clone(self) -> Tensor:
        """The same values in memory of their own."""
        return self.wrap(self.data.copy(), self.device)

    def detach(self) -> Tensor:
        """The same values."""
        return self.wrap(self.data, self.device)

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array; shares memory."""
        return np.asarray(self.data)

    def tolist(self) -> Any:
        return self.data.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.data, dtype, copy=copy)

    @classmethod
    def zeros(cls, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """Zeros; the shape as integers or as one tuple."""
        return cls.full(shape_from(shape), 0, dtype=dtype)

    @classmethod
    def ones(cls, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """Ones; the shape as integers or as one tuple."""
        return cls.full(shape_from(shape), 1, dtype=dtype)

    @classmethod
    def full(
        cls, shape: Any, value: Any, *, dtype: Any = None, device: Any = None
    ) -> Tensor:
        """Every element `value`."""
        return _made(np.full(shape, value, dtype or Device().float_dtype))

    def zeros_like(self) -> Tensor:
        """Zeros of this tensor's shape and dtype."""
        return self.full_like(0)

    def ones_like(self) -> Tensor:
        """Ones of this tensor's shape and dtype."""
        return self.full_like(1)

    def full_like(self, value: Any) -> Tensor:
        """Every element `value`, with this tensor's shape and dtype."""
        return self.full(self.shape, value, dtype=self.dtype)

    @classmethod
    def arange(cls, *limits: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """stop, or start, stop, or start, stop, step."""
        whole = all(isinstance(limit, int) for limit in limits)
        dtype = dtype or (Device().int_dtype if whole else Device().float_dtype)
        return _made(np.arange(*limits, dtype=dtype))

    @classmethod
    def linspace(
        cls,
        start: float,
        stop: float,
        num: int,
        *,
        dtype: Any = None,
        device: Any = None,
    ) -> Tensor:
        """`num` numbers at equal distances, both ends among them."""
        dtype = dtype or Device().float_dtype
        return _made(np.linspace(start, stop, num, dtype=dtype))

    @classmethod
    def eye(
        cls, n: int, m: int | None = None, *, dtype: Any = None, device: Any = None
    ) -> Tensor:
        """An n by m matrix with ones on the diagonal."""
        kind: Any = dtype or Device().float_dtype
        return _made(np.eye(n, m, dtype=kind))

    @classmethod
    def random(
        cls, shape: Any, distribution: Any, *, dtype: Any = None, device: Any = None
    ) -> Tensor:
        """Draws of a distribution, from `seed`'s source."""
        dtype = dtype or Device().float_dtype
        return _made(distribution.draw(shape_from((shape,)), dtype, Device()))

    @classmethod
    def rand(cls, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """Uniform in [0, 1), from `seed`'s source."""
        dtype = dtype or Device().float_dtype
        return _made(rng.uniform(shape_from(shape), 0.0, 1.0, dtype, Device()))

    @classmethod
    def randn(cls, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """Normal with mean 0 and deviation 1, from `seed`'s source."""
        dtype = dtype or Device().float_dtype
        return _made(rng.normal(shape_from(shape), 0.0, 1.0, dtype, Device()))

    def __repr__(self) -> str:
        return f"Tensor({self.data})"


def _made(array: Any) -> Tensor:
    made: Tensor = Tensor.wrap(array, Device())
    return made


def is_literal(data: Any) -> bool:
    """Whether these are Python's numbers, by themselves or in lists and tuples."""
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return isinstance(data, int | float | complex) and not hasattr(data, "dtype")


def literal(data: Any) -> tuple[Any, Any]:
    """Python's numbers as an array, and the dtype that they have."""
    array = np.asarray(data)
    dtypes: Any = {
        "f": Device().float_dtype,
        "i": Device().int_dtype,
        "c": np.complex64,
    }
    return array, dtypes.get(array.dtype.kind)
