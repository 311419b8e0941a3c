"""NumPy's and Python's constructors that a pickle calls: arrays, containers.

Each function takes the machine and the arguments from the file.
"""

from __future__ import annotations

from typing import Any

from burnish.serialize.pytorch.arrays import PickledArray, PickledType
from burnish.serialize.pytorch.records import Refused
from burnish.serialize.pytorch.storage import sizes


def array(machine: Any, *_: Any) -> PickledArray:
    return PickledArray()


def array_of_bytes(
    machine: Any, data: Any, kind: Any, shape: Any, order: Any = "C", axes: Any = None
) -> PickledArray:
    made = PickledArray()
    shape = sizes((shape,) if isinstance(shape, int) else shape, "a shape")
    made.fill(machine.budget, shape, kind, data, order == "F")
    return made


def numpy_type(machine: Any, kind: Any, *_: Any) -> PickledType:
    return PickledType(kind)


def scalar(machine: Any, kind: Any, data: Any = b"") -> Any:
    made = PickledArray()
    made.fill(machine.budget, (), kind, data)
    return made.read()[()]


def encode(machine: Any, text: Any, encoding: Any = "utf-8") -> bytes:
    """_codecs.encode: how protocol 2 writes bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8"):
        raise Refused("something else than text in Latin-1")
    machine.budget.take(4 * len(text))
    return text.encode(encoding)


def counted(machine: Any, value: Any) -> Any:
    if not isinstance(value, list | tuple | set | frozenset | dict | bytes | bytearray):
        raise Refused("items that are no list")
    machine.budget.take(64 + 100 * len(value))
    return value


def dict_(machine: Any, items: Any = ()) -> dict[Any, Any]:
    items = counted(machine, items)
    if isinstance(items, dict):
        return dict(items)
    made: dict[Any, Any] = {}
    for key, value in items:
        made[machine.key(key, made)] = value
    return made


def default_dict(machine: Any, factory: Any = None, items: Any = ()) -> dict[Any, Any]:
    return dict_(machine, items)


def set_(machine: Any, items: Any = ()) -> set[Any]:
    made: set[Any] = set()
    for item in counted(machine, items):
        made.add(machine.key(item, made))
    return made


def frozen(machine: Any, items: Any = ()) -> frozenset[Any]:
    return frozenset(set_(machine, items))


def list_(machine: Any, items: Any = ()) -> list[Any]:
    return list(counted(machine, items))


def tuple_(machine: Any, items: Any = ()) -> tuple[Any, ...]:
    return tuple(counted(machine, items))


def complex_(machine: Any, real: Any = 0, imag: Any = 0) -> complex:
    if not isinstance(real, int | float) or not isinstance(imag, int | float):
        raise Refused("parts that are not numbers")
    return complex(real, imag)


def bytearray_(machine: Any, data: Any = b"", encoding: Any = "latin-1") -> bytearray:
    if isinstance(data, str):
        data = encode(machine, data, encoding)
    if not isinstance(data, bytes | bytearray):
        raise Refused("something else than bytes")
    machine.budget.take(2 * len(data))  # twice: `bytes_` copies what comes
    return bytearray(data)


def bytes_(machine: Any, data: Any = b"") -> bytes:
    return bytes(bytearray_(machine, data))


def slice_(machine: Any, *ends: Any) -> slice:
    # a slice of slices has no bottom for Python, neither to print nor to drop
    if not all(end is None or type(end) is int for end in ends):
        raise Refused("ends that are no whole numbers")
    return slice(*ends)


def range_(machine: Any, *ends: Any) -> range:
    return range(*ends)
