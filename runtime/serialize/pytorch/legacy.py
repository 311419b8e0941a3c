"""PyTorch's files from before ZIP archives, and plain pickles.

Releases 0.1.10 to 1.5: pickles of a magic number, a version, the system, the object and
the storages' keys, then each storage as a count of elements and its values. Before
0.1.10: a TAR archive of storages, tensors and the object. Values are little-endian.
"""

from __future__ import annotations

import struct
import sys
from functools import partial
from typing import Any

from burnish.errors import RecordError
from burnish.serialize.budget import Budget
from burnish.serialize.pytorch.known import StorageType, find
from burnish.serialize.pytorch.machine import Machine
from burnish.serialize.pytorch.records import Refused
from burnish.serialize.pytorch.storage import (
    Storage,
    StorageView,
    StoredTensor,
    TypedStorage,
    sizes,
)
from burnish.serialize.pytorch.stream import Stream

_MAGIC = 0x1950A86A20F9469CFC6C
_SWAP = sys.byteorder == "big"
_TENSOR = 400  # bytes of memory for one and its storage


def read(data: memoryview, where: str, budget: Budget) -> tuple[Any, Any, str]:
    """The object of a legacy file or a plain pickle, its unknown names, its kind."""
    stream = Stream(data, where)
    store = _Store(stream, budget)
    machine = Machine(stream, budget, find, store.find)
    first = machine.load()
    if type(first) is not int or first != _MAGIC:
        if stream.at != len(data):
            raise stream.damage("expected the end of the file after a plain pickle")
        return first, machine.unknown, "pickle"
    version = machine.load()
    if version != 1001:
        raise stream.damage(f"expected version 1001, got {str(version)[:20]}")
    machine.load()  # the system that wrote it
    tree = machine.load()
    keys = machine.load()
    if not isinstance(keys, list):
        raise stream.damage("expected a list of storages")
    for key in keys:
        store.place(key)
    store.check()
    return tree, machine.unknown, "PyTorch legacy"


class _Store:
    """The storages of a legacy file: declared in the pickle, placed behind it."""

    def __init__(self, stream: Stream, budget: Budget):
        self.stream = stream
        self.budget = budget
        self.typed: dict[str, TypedStorage] = {}
        self.starts: dict[str, int] = {}

    def find(self, key: Any) -> Any:
        """What a persistent id stands for: a storage, or a module's class."""
        if key[0] == "module":
            return key[1]
        word, kind, name, _, count, *view = key
        if word != "storage" or not isinstance(kind, StorageType):
            raise Refused("expected a storage, got another id")
        if type(count) is not int or not isinstance(name, str | int):
            raise Refused("expected a storage's name and size")
        typed = self.typed.get(str(name)) or self._declare(str(name), kind, count)
        if not view or view[0] is None:
            return typed
        _, offset, length = view[0]
        size = typed.kind.bits // 8
        part = StorageView(typed.storage, offset * size, length * size)
        return TypedStorage(part, typed.kind)

    def _declare(self, name: str, kind: StorageType, count: int) -> TypedStorage:
        nbytes = count * kind.kind.bits // 8
        if not 0 <= nbytes <= len(self.stream.data):
            raise Refused(f"a storage of {count} elements, more than the file has")
        stream, where = self.stream, f"{self.stream.where}: storage {name[:40]!a}"

        def fetch() -> memoryview:
            start = self.starts[name]
            return stream.data[start : start + nbytes]

        storage = Storage(fetch, nbytes, where, self.budget.limit, _SWAP)
        self.typed[name] = TypedStorage(storage, kind.kind)
        return self.typed[name]

    def place(self, key: Any) -> None:
        """Note where the values of the next storage stand, and pass over them."""
        name = str(key) if isinstance(key, str | int) else ""
        if name not in self.typed or name in self.starts:
            raise self.stream.damage("expected the key of a storage, used once")
        storage = self.typed[name].storage
        count = self.stream.signed(8)
        size = self.typed[name].kind.bits // 8
        if count * size != storage.nbytes:
            raise self.stream.damage(
                f"expected {storage.nbytes // size} elements, got {count}"
            )
        self.starts[name] = self.stream.at
        self.stream.take(storage.nbytes)

    def check(self) -> None:
        """Raise RecordError when a storage has no values, or the file has more."""
        if lacking := [name for name in self.typed if name not in self.starts]:
            raise self.stream.damage(f"storage {lacking[0][:40]!a} has no values")
        if self.stream.at != len(self.stream.data):
            raise self.stream.damage("expected the end of the file")


def read_tar(data: memoryview, where: str, budget: Budget) -> tuple[Any, Any, str]:
    """The object of a TAR archive, its unknown names, its kind."""
    parts = _members(data, where)
    typed = _tar_storages(Stream(parts["storages"], f"{where}: storages"), budget)
    tensors = _tar_tensors(Stream(parts["tensors"], f"{where}: tensors"), typed, budget)

    def find_tensor(key: Any) -> Any:
        return key[0] if isinstance(key, tuple) else tensors[int(key)]

    stream = Stream(parts["pickle"], where)
    machine = Machine(stream, budget, find, find_tensor)
    return machine.load(), machine.unknown, "PyTorch TAR"


def _members(data: memoryview, where: str) -> dict[str, memoryview]:
    """The parts of the archive: 512 bytes of header and padding around each."""
    found: dict[str, memoryview] = {}
    at = 0
    while at + 512 <= len(data) and data[at]:
        head = bytes(data[at : at + 512])
        octal = head[124:136].strip(b" \0")
        if not octal.isdigit() or len(octal) > 12 or set(octal) - set(b"01234567"):
            raise RecordError(f"{where}: TAR archive: expected a size at byte {at}")
        size = int(octal, 8)
        if at + 512 + size > len(data):
            raise RecordError(f"{where}: TAR archive: ends within a member")
        name = head[:100].partition(b"\0")[0].decode("utf-8", "replace")
        found.setdefault(name.removeprefix("./"), data[at + 512 : at + 512 + size])
        at += 512 + -(-size // 512) * 512
    if lacking := [n for n in ("storages", "tensors", "pickle") if n not in found]:
        raise RecordError(
            f"{where}: expected a TAR archive of PyTorch, it has no {lacking[0]!r}"
        )
    return found


def _tar_storages(stream: Stream, budget: Budget) -> dict[int, TypedStorage]:
    machine = Machine(stream, budget, find)
    typed: dict[int, TypedStorage] = {}
    for _ in range(_count(machine)):
        key, _location, kind = _fields(machine, 3)
        if type(key) is not int or not isinstance(kind, StorageType):
            raise stream.damage("expected a storage's key and type")
        nbytes = stream.signed(8) * kind.kind.bits // 8
        if nbytes < 0:
            raise stream.damage("expected a number of elements")
        part = stream.take(nbytes)
        where = f"{stream.where}: storage {key}"
        budget.take(_TENSOR)
        storage = Storage(partial(_same, part), nbytes, where, budget.limit, _SWAP)
        typed[key] = TypedStorage(storage, kind.kind)
    views = machine.load()
    for view in views if isinstance(views, list) else ():
        budget.take(_TENSOR)
        try:
            target, root, offset, length = view
            size = typed[root].kind.bits // 8
            sub = StorageView(typed[root].storage, offset * size, length * size)
            typed[target] = TypedStorage(sub, typed[root].kind)
        except (TypeError, ValueError, LookupError, Refused):
            raise stream.damage("expected a view of a storage") from None
    return typed


def _tar_tensors(
    stream: Stream, typed: dict[int, TypedStorage], budget: Budget
) -> dict[int, StoredTensor]:
    machine = Machine(stream, budget, find)
    tensors: dict[int, StoredTensor] = {}
    for _ in range(_count(machine)):
        key, root, _kind = _fields(machine, 3)
        dims = stream.number(4)
        stream.take(4)  # a width that once was eight bytes
        budget.take(_TENSOR)
        if not type(key) is type(root) is int or root not in typed or dims > 64:
            raise stream.damage("expected a tensor's key, storage and dimensions")
        shape = struct.unpack(f"<{dims}q", stream.take(8 * dims))
        strides = struct.unpack(f"<{dims}q", stream.take(8 * dims))
        try:
            tensors[key] = StoredTensor(
                typed[root].storage,
                typed[root].kind,
                stream.signed(8),
                sizes(shape, "a shape"),
                sizes(strides, "strides"),
            )
        except Refused as problem:
            raise stream.damage(str(problem)) from None
    return tensors


def _same(part: memoryview) -> memoryview:
    return part


def _count(machine: Machine) -> int:
    count = machine.load()
    if type(count) is not int or not 0 <= count <= len(machine.stream.data):
        raise machine.stream.damage("expected a count")
    return count


def _fields(machine: Machine, count: int) -> Any:
    fields = machine.load()
    if not isinstance(fields, tuple | list) or len(fields) != count:
        raise machine.stream.damage(f"expected {count} fields")
    return fields
