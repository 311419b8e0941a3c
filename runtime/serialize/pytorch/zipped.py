"""PyTorch's ZIP archives: `data.pkl` and one member a storage, TorchScript's too."""

from __future__ import annotations

import sys
from typing import Any

from burnish._files.budget import Budget
from burnish.errors import RecordError
from burnish.serialize.archive import Archive
from burnish.serialize.pytorch.known import StorageType, find
from burnish.serialize.pytorch.machine import Machine
from burnish.serialize.pytorch.records import Refused
from burnish.serialize.pytorch.storage import Storage, TypedStorage
from burnish.serialize.pytorch.stream import Stream

_PICKLE = "data.pkl"


def read(data: memoryview, where: str, budget: Budget) -> tuple[Any, Any, str]:
    """The object of the archive, the unknown names in it, and its kind."""
    archive = Archive(data, where, budget)
    found = [n for n in archive.members if n == _PICKLE or n.endswith("/" + _PICKLE)]
    if not found:
        some = ", ".join(list(archive.members)[:3])
        if any(name.endswith("/archive_format") for name in archive.members):
            raise RecordError(
                f"{where}: expected a ZIP archive of PyTorch with data.pkl in it, got "
                f"a program of torch.export; save its state_dict with torch.save"
            )
        raise RecordError(
            f"{where}: expected a ZIP archive of PyTorch with data.pkl in it, "
            f"got members {some[:200]!a}"
        )
    root = min(found, key=len).removesuffix(_PICKLE)
    swap = _byte_order(archive, root, where) != sys.byteorder
    storages: dict[str, Storage] = {}

    def stored(key: Any) -> TypedStorage:
        word, kind, name, _, count, *_ = key
        if word != "storage" or not isinstance(kind, StorageType):
            raise Refused("expected a storage, got another id")
        return TypedStorage(storage(name, kind, count), kind.kind)

    def storage(name: Any, kind: StorageType, count: Any) -> Storage:
        if not isinstance(name, str) or type(count) is not int:
            raise Refused("expected a storage's name and size")
        if name not in storages:
            member = f"{root}data/{name}"
            if member not in archive:
                raise Refused(f"expected a member {member[-200:]!a} in the archive")
            storages[name] = Storage(
                lambda: archive.read(member),
                archive.size(member),
                f"{where}: storage {name[:40]!a}",
                budget,
                swap,
            )
        held, need = storages[name].nbytes, count * kind.kind.bits // 8
        if not 0 <= need <= held:
            raise Refused(
                f"storage {name[:40]!a}: expected {need} bytes, the archive has {held}"
            )
        return storages[name]

    pickle = memoryview(archive.read(root + _PICKLE, checked=True))
    # an opcode is a step: those that the file's own bytes hold are allowed anyway
    budget.step(max(0, len(pickle) - archive.members[root + _PICKLE].packed))
    machine = Machine(Stream(pickle, where), budget, find, stored)
    script = f"{root}constants.pkl" in archive
    kind = "TorchScript" if script else "PyTorch ZIP"
    return machine.load(), machine.unknown, kind


def _byte_order(archive: Archive, root: str, where: str) -> str:
    name = f"{root}byteorder"
    if name not in archive:
        return "little"  # files older than the record were written by such machines
    order = bytes(archive.read(name, checked=True)[:8])
    if order not in (b"little", b"big"):
        raise RecordError(f"{where}: expected byte order little or big, got {order!r}")
    return order.decode()
