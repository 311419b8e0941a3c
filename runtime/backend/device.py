"""Devices: a kind, an index, and whether operations on it are recorded."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np

from burnish.backend.namespace import library, namespace
from burnish.backend.place import Place, count
from burnish.errors import DeviceError

_SPELLING = re.compile(r"(cpu|cuda)(?::(\d+))?(:autodiff)?")


class Device(Place):
    """`Device("cpu")`, `Device("cuda:0")`, `Device("cuda:0:autodiff")`.

    Equal devices are the same object. Naming a device does not touch the GPU; putting
    an array there does.
    """

    __slots__ = ("_library", "index", "is_autodiff", "kind")
    _known: ClassVar[dict[tuple[str, int, bool], Device]] = {}

    kind: str
    index: int
    is_autodiff: bool
    _library: Any

    def __new__(cls, name: str | Device = "cpu") -> Device:
        if isinstance(name, Device):
            return name
        match = _SPELLING.fullmatch(name)
        if match is None or (name.startswith("cpu") and match[2] not in (None, "0")):
            raise DeviceError(
                f"device: expected 'cpu', 'cuda' or 'cuda:N', each also with "
                f"':autodiff', got {name!r}"
            )
        return cls._interned(match[1], int(match[2] or 0), match[3] is not None)

    @classmethod
    def _interned(cls, kind: str, index: int, is_autodiff: bool) -> Device:
        key = (kind, index, is_autodiff)
        if key not in cls._known:
            device = super().__new__(cls)
            device.kind, device.index, device.is_autodiff = key
            device._library = None
            cls._known[key] = device
        return cls._known[key]

    def autodiff(self) -> Device:
        """The same place, recording operations for `backward()`."""
        return self._interned(self.kind, self.index, True)

    def inner(self) -> Device:
        """The same place without recording."""
        return self._interned(self.kind, self.index, False)

    @property
    def xp(self) -> Any:
        """The array library of this device, `numpy` or `cupy`."""
        if self._library is None:
            self._library = library(self.kind)
        return self._library

    def put(self, array: Any, dtype: Any = None) -> Any:
        """`array` as an array on this device; copies only when it must.

        Strings are arrays of objects, on the host alone.
        """
        xp = self.xp
        if self.kind == "cpu":
            source = array if namespace(array) is xp else array.get()
            held = xp.asarray(source, dtype)
            return _text(held) if held.dtype.kind in "UST" else held
        if _holds_text(array):
            raise DeviceError(f"device {self}: strings live on the host, on 'cpu'")
        with xp.cuda.Device(self.index):
            return xp.asarray(array, dtype)

    @classmethod
    def enumerate(cls) -> list[Device]:
        """Every device of this machine: the CPU, then the GPUs that CuPy finds."""
        kinds = ("cpu", "cuda")
        return [cls._interned(k, i, False) for k in kinds for i in range(count(k))]

    @classmethod
    def of(cls, array: Any) -> Device:
        """The device that a plain array lives on."""
        if namespace(array).__name__ == "numpy":
            return cls("cpu")
        return cls._interned("cuda", array.device.id, False)

    def __str__(self) -> str:
        place = self.kind if self.kind == "cpu" else f"{self.kind}:{self.index}"
        return f"{place}:autodiff" if self.is_autodiff else place

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"

    def __reduce__(self) -> tuple[type[Device], tuple[str]]:
        return Device, (str(self),)


def _text(array: Any) -> Any:
    """Strings as an array of objects; bytes are UTF-8."""
    return (np.char.decode(array) if array.dtype.kind == "S" else array).astype(object)


def _holds_text(array: Any) -> bool:
    kind = getattr(array, "dtype", None) or np.asarray(array).dtype
    return kind.kind in "OUST"
