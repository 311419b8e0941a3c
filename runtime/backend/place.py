"""The interface of devices: properties and actions; `Device` implements it."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from burnish.backend.namespace import library
from burnish.errors import DeviceError, InputError

_defaults: dict[tuple[str, int], tuple[np.dtype[Any], np.dtype[Any]]] = {}
_FIRST = (np.dtype(np.float32), np.dtype(np.int64))


def dtype_from(name: str, given: Any) -> np.dtype[Any]:
    """The given dtype as NumPy's; InputError, which begins with `name`, if invalid."""
    try:
        return np.dtype(given)
    except TypeError:
        message = f"{name}: expected a dtype such as 'float32', got {given!r}"
        if isinstance(given, str) and given == "bfloat16":
            message += ", which NumPy knows after import ml_dtypes"
        raise InputError(message) from None


class Place:
    """A kind of device and which of them."""

    __slots__ = ()

    kind: str
    index: int

    @property
    def xp(self) -> Any:
        """The array library of this place, such as `numpy` or `cupy`."""
        return library(self.kind)

    @property
    def float_dtype(self) -> np.dtype[Any]:
        """The default dtype of new floating-point tensors here: float32 at first."""
        return _defaults.get((self.kind, self.index), _FIRST)[0]

    @property
    def int_dtype(self) -> np.dtype[Any]:
        """The default dtype of new integer tensors here: int64 at first."""
        return _defaults.get((self.kind, self.index), _FIRST)[1]

    def configure(self, *, float_dtype: Any = None, int_dtype: Any = None) -> None:
        """Set the default dtypes of new tensors on this device; None keeps one.

        Raises DeviceError for a dtype of another kind or one that is not supported.
        """
        kept = (self.float_dtype, self.int_dtype)
        for dtype, kinds in ((float_dtype, "fV"), (int_dtype, "iu")):
            known = dtype is None or self.supports_dtype(dtype)
            if not known or (dtype is not None and np.dtype(dtype).kind not in kinds):
                wanted = "floating-point" if kinds == "fV" else "integer"
                raise DeviceError(
                    f"device {self}: expected a {wanted} dtype, got {dtype!r}"
                )
        chosen = (np.dtype(float_dtype or kept[0]), np.dtype(int_dtype or kept[1]))
        _defaults[self.kind, self.index] = chosen

    def supports_dtype(self, dtype: Any) -> bool:
        """Whether arrays of a dtype can be here."""
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            return False
        if dtype.names or dtype.kind in "mM":
            return False
        if self.kind == "cuda" and dtype.name == "bfloat16":
            return True
        return self.kind == "cpu" or (
            dtype.kind in "biufc" and dtype.char not in "gG"  # no long double
        )

    def sync(self) -> None:
        """Wait until everything that was started here is done."""
        if self.kind == "cuda":
            xp = library(self.kind)
            with xp.cuda.Device(self.index):
                xp.cuda.runtime.deviceSynchronize()
        elif self.kind != "cpu" and (wait := getattr(self.xp, "synchronize", None)):
            wait()

    def memory_cleanup(self) -> None:
        """Give memory that nothing uses back to the system."""
        gc.collect()
        if self.kind == "cuda":
            xp = library(self.kind)
            with xp.cuda.Device(self.index):
                xp.get_default_memory_pool().free_all_blocks()


def count(kind: str) -> int:
    """How many devices of a kind there are; 0 where its library or a GPU is missing."""
    try:
        xp = library(kind)
    except DeviceError:
        return 0
    return xp.cuda.runtime.getDeviceCount() if kind == "cuda" else 1
