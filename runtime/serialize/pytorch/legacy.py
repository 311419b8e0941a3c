"""PyTorch's files from before ZIP archives, and plain pickles.

Releases 0.1.10 to 1.5: pickles of a magic number, a version, the system, the object and
the storages' keys, then each storage as a count of elements and its values, which are
little-endian.
"""

from __future__ import annotations

import sys
from typing import Any

from burnish._files.budget import Budget
from burnish._files.shown import shown
from burnish.serialize.pytorch.known import StorageType, find
from burnish.serialize.pytorch.machine import Machine
from burnish.serialize.pytorch.records import Refused
from burnish.serialize.pytorch.storage import (
    Storage,
    StorageView,
    TypedStorage,
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
        raise stream.damage(f"expected version 1001, got {shown(version, 20)}")
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
    """The storages of a legacy file: declared in the pickle, placed after it."""

    def __init__(self, stream: Stream, budget: Budget):
        self.stream = stream
        self.budget = budget
        self.typed: dict[str, TypedStorage] = {}
        self.starts: dict[str, int] = {}

    def find(self, key: Any) -> Any:
        """The object of a persistent id: a storage, or a module's class."""
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

        storage = Storage(fetch, nbytes, where, self.budget, _SWAP)
        self.typed[name] = TypedStorage(storage, kind.kind)
        return self.typed[name]

    def place(self, key: Any) -> None:
        """Note the offsets of the next storage's values, and skip them."""
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
