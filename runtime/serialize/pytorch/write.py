"""Writing the ZIP archive that torch.load reads, with weights_only=True too."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from burnish.backend import Array, on_host
from burnish.errors import RecordError
from burnish.serialize.pytorch.dtypes import DTYPES, STORAGES

_ALIGNED = 64
_NARROW = 0xFFFFFFFF
_TYPED = {name: word for word, name in STORAGES.items()}


class _Held(NamedTuple):
    """An array, the dtype that torch calls it, and its storage's place."""

    array: Any
    dtype: str
    key: int


def write(out: BinaryIO, state: Mapping[str, Array], where: str) -> None:
    """Write arrays by name as a state_dict. One array under two names is stored once.

    Raises RecordError for a dtype that torch does not have.
    """
    held: dict[str, _Held] = {}
    keys: dict[Any, int] = {}
    for name, array in state.items():
        key = keys.setdefault(_place(array), len(keys))
        held[name] = _Held(array, _dtype(array, f"{where}: tensor {name!r}"), key)
    archive = _Archive(out)
    archive.add("data.pkl", _pickled(held))
    archive.add("byteorder", b"little")
    written = set()
    for item in held.values():
        if item.key not in written:
            written.add(item.key)
            archive.add(f"data/{item.key}", _raw(item.array))
    archive.add("version", b"3\n")
    archive.close()


def _dtype(array: Any, where: str) -> str:
    name = str(array.dtype.name)
    if name not in DTYPES:
        raise RecordError(f"{where}: expected a dtype that PyTorch has, got {name}")
    return name


def _place(array: Any) -> Any:
    """The same for arrays that are the same memory, seen in the same way."""
    if not isinstance(array, np.ndarray) or array.size == 0:
        return id(array)
    seen = array.__array_interface__
    return seen["data"][0], array.shape, array.strides, array.dtype


def _raw(array: Any) -> memoryview:
    host = on_host(array)
    host = host.astype(host.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(host).reshape(-1).view(np.uint8).data


# --- the pickle ---


def _pickled(held: Mapping[str, _Held]) -> bytes:
    """An OrderedDict of tensors, protocol 2."""
    parts = [b"\x80\x02", _EMPTY, b"("]
    for name, item in held.items():
        parts += [_text(name), _tensor(item)]
    return b"".join((*parts, b"u."))


def _tensor(item: _Held) -> bytes:
    """A call of torch._utils._rebuild_tensor_v2, or v3 where no storage has a type."""
    shape = tuple(item.array.shape)
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    typed = item.dtype in _TYPED
    kind = f"{_TYPED[item.dtype]}Storage" if typed else "UntypedStorage"
    count = item.array.size if typed else item.array.nbytes
    storage = _tuple(
        _text("storage"),
        _name("torch" if typed else "torch.storage", kind),
        _text(str(item.key)),
        _text("cpu"),
        _integer(count),
    )
    numbers = [_tuple(*map(_integer, n)) for n in (shape, reversed(strides))]
    args = [storage + b"Q", _integer(0), *numbers, b"\x89", _EMPTY]
    if not typed:
        args.append(_name("torch", item.dtype))
    function = f"_rebuild_tensor_v{2 if typed else 3}"
    return _name("torch._utils", function) + _tuple(*args) + b"R"


def _name(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _text(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(raw)) + raw


def _integer(number: int) -> bytes:
    if number < 1 << 31:
        return b"J" + struct.pack("<i", number)
    return b"\x8a\x08" + struct.pack("<q", number)


def _tuple(*parts: bytes) -> bytes:
    return b"(" + b"".join(parts) + b"t"


_EMPTY = _name("collections", "OrderedDict") + b")R"


# --- the archive ---


class _Archive:
    """A ZIP archive whose members are stored as they are, each at a round place."""

    def __init__(self, out: BinaryIO):
        self.out = out
        self.at = 0
        self.central: list[bytes] = []

    def add(self, name: str, data: Any) -> None:
        raw, size, start = f"archive/{name}".encode(), len(data), self.at
        wide = struct.pack("<QQ", size, size) if size >= _NARROW else b""
        extra = _field(1, wide) if wide else b""
        begin = start + 30 + len(raw) + len(extra) + 4
        extra += _field(0x4246, b"Z" * (-begin % _ALIGNED))
        crc, short = zlib.crc32(data), _NARROW if wide else size
        common = struct.pack("<HHHHHIII", 45, 1 << 11, 0, 0, 33, crc, short, short)
        self._write(b"PK\x03\x04" + common + struct.pack("<HH", len(raw), len(extra)))
        self._write(raw + extra)
        self._write(data)
        far = start >= _NARROW
        wide += struct.pack("<Q", start) if far else b""
        extra = _field(1, wide) if wide else b""
        lengths = struct.pack("<HHHHHI", len(raw), len(extra), 0, 0, 0, 0)
        place = struct.pack("<I", _NARROW if far else start)
        head = b"PK\x01\x02" + struct.pack("<H", 45) + common
        self.central.append(head + lengths + place + raw + extra)

    def close(self) -> None:
        start, count = self.at, len(self.central)
        self._write(b"".join(self.central))
        size, end = self.at - start, self.at
        if start >= _NARROW or count >= 0xFFFF:
            numbers = (44, 45, 45, 0, 0, count, count, size, start)
            self._write(b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", *numbers))
            self._write(b"PK\x06\x07" + struct.pack("<IQI", 0, end, 1))
        count, start = min(count, 0xFFFF), min(start, _NARROW)
        tail = struct.pack("<HHHHIIH", 0, 0, count, count, size, start, 0)
        self._write(b"PK\x05\x06" + tail)

    def _write(self, data: Any) -> None:
        self.out.write(data)
        self.at += len(data)


def _field(tag: int, data: bytes) -> bytes:
    return struct.pack("<HH", tag, len(data)) + data
