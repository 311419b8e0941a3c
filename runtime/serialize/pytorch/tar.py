"""PyTorch's files from before 0.1.10: TAR archives of storages, tensors, the object."""

from __future__ import annotations

import struct
import sys
from functools import partial
from typing import Any

from burnish._files.budget import Budget
from burnish.errors import RecordError
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

_SWAP = sys.byteorder == "big"  # values are little-endian
_TENSOR = 400  # bytes of memory for one and its storage


def read(data: memoryview, where: str, budget: Budget) -> tuple[Any, Any, str]:
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
        storage = Storage(partial(_same, part), nbytes, where, budget, _SWAP)
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
