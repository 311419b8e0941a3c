"""Devices: a kind, an index, and whether operations on it are recorded."""

from __future__ import annotations

import contextlib
import re
from typing import Any, ClassVar

import numpy as np

from burnish.backend import installed
from burnish.backend.namespace import library, namespace, on_host
from burnish.backend.place import Place, count
from burnish.errors import DeviceError

_SPELLING = re.compile(r"([a-z][a-z0-9_]*)(?::(\d+))?(:autodiff(:balanced)?)?")


class Device(Place):
    """`Device("cpu")`, `Device("cuda:0")`, `Device("cuda:0:autodiff")`.

    `Device("cpu:autodiff:balanced")` records too, but keeps less for `backward()`: what
    memory-bound operators gave is computed again when it is asked for.

    Packages bring other kinds, "name", as entry points of `burnish.backends`.

    Equal devices are the same object. Naming a device does not touch the GPU; putting
    an array there does.
    """

    __slots__ = ("_library", "index", "is_autodiff", "is_balanced", "kind")
    is_several: ClassVar[bool] = False
    """Whether a GPU besides the first was named; then each call chooses its own."""
    _known: ClassVar[dict[tuple[str, int, bool, bool], Device]] = {}

    kind: str
    index: int
    is_autodiff: bool
    is_balanced: bool
    _library: Any

    def __new__(cls, name: str | Device = "cpu") -> Device:
        if isinstance(name, Device):
            return name
        match = _SPELLING.fullmatch(name)
        if (
            match is None
            or not is_kind(match[1])
            or (match[1] != "cuda" and match[2] not in (None, "0"))
        ):
            known = "".join(f", {kind!r}" for kind in installed.kinds())
            raise DeviceError(
                f"device: expected 'cpu'{known}, 'cuda' or 'cuda:N', each also with "
                f"':autodiff' or ':autodiff:balanced', got {name!r}"
            )
        recorded, balanced = match[3] is not None, match[4] is not None
        return cls._interned(match[1], int(match[2] or 0), recorded, balanced)

    @classmethod
    def _interned(
        cls, kind: str, index: int, is_autodiff: bool, is_balanced: bool = False
    ) -> Device:
        key = (kind, index, is_autodiff, is_balanced)
        if key not in cls._known:
            device = super().__new__(cls)
            device.kind, device.index, device.is_autodiff, device.is_balanced = key
            device._library = None
            cls._known[key] = device
            if kind == "cuda" and index:
                Device.is_several = True
        return cls._known[key]

    def autodiff(self, checkpointing: str | None = None) -> Device:
        """The same place, recording operations for `backward()`.

        checkpointing: "none" keeps what the gradients need; "balanced" computes what
        memory-bound operators gave again, which takes less memory. None keeps what a
        recording device has. Raises DeviceError for another word.
        """
        if checkpointing not in (None, "none", "balanced"):
            raise DeviceError(
                f"device {self}: expected checkpointing 'none' or 'balanced', "
                f"got {checkpointing!r}"
            )
        if checkpointing is None:
            balanced = self.is_balanced
        else:
            balanced = checkpointing == "balanced"
        return self._interned(self.kind, self.index, True, balanced)

    def inner(self) -> Device:
        """The same place without recording."""
        return self._interned(self.kind, self.index, False)

    @property
    def xp(self) -> Any:
        """The array library of this device, such as `numpy` or `cupy`."""
        if self._library is None:
            self._library = library(self.kind)
        return self._library

    def put(self, array: Any, dtype: Any = None) -> Any:
        """`array` as an array on this device; copies only when it must.

        Strings are arrays of objects, on the host alone.
        """
        xp = self._library or self.xp
        if self.kind == "cuda" and type(array) is xp.ndarray:
            is_here = array.data.device_id == self.index
            if is_here and (dtype is None or array.dtype == dtype):
                return array
        if self.kind == "cpu":
            held = xp.asarray(on_host(array), dtype)
            return _text(held) if held.dtype.kind in "UST" else held
        if _holds_text(array):
            raise DeviceError(f"device {self}: strings live on the host, on 'cpu'")
        if self.kind != "cuda":
            own = namespace(array) is xp
            return xp.asarray(array if own else on_host(array), dtype)
        with xp.cuda.Device(self.index):
            return xp.asarray(array, dtype)

    def computing(self) -> contextlib.AbstractContextManager[Any]:
        """In the `with` block this thread's CUDA arrays and kernels are this GPU's."""
        if self.kind != "cuda" or not Device.is_several:
            return contextlib.nullcontext()
        place: contextlib.AbstractContextManager[Any] = self.xp.cuda.Device(self.index)
        return place

    @classmethod
    def enumerate(cls) -> list[Device]:
        """The CPU, the GPUs that CuPy finds, and those of installed packages."""
        kinds = ("cpu", "cuda", *installed.kinds())
        return [cls._interned(k, i, False) for k in kinds for i in range(count(k))]

    @classmethod
    def of(cls, array: Any) -> Device:
        """The device that a plain array lives on."""
        xp = namespace(array)
        for kind, library_of_kind in installed.loaded.items():
            if xp is library_of_kind:
                return cls._interned(kind, 0, False)
        if xp is np:
            return cls._interned("cpu", 0, False)
        return cls._interned("cuda", array.data.device_id, False)

    def __str__(self) -> str:
        place = f"{self.kind}:{self.index}" if self.kind == "cuda" else self.kind
        if not self.is_autodiff:
            return place
        return f"{place}:autodiff:balanced" if self.is_balanced else f"{place}:autodiff"

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"

    def __reduce__(self) -> tuple[type[Device], tuple[str]]:
        return Device, (str(self),)


def is_kind(word: str) -> bool:
    """Whether a word names a kind of device, ours or an installed package's."""
    return word in ("cpu", "cuda") or word in installed.kinds()


def _text(array: Any) -> Any:
    """Strings as an array of objects; bytes are UTF-8."""
    return (np.char.decode(array) if array.dtype.kind == "S" else array).astype(object)


def _holds_text(array: Any) -> bool:
    kind = getattr(array, "dtype", None) or np.asarray(array).dtype
    return kind.kind in "OUST"
