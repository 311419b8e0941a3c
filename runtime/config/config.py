"""The base of configurations."""

from __future__ import annotations

import json
import os
from dataclasses import is_dataclass, replace
from typing import Any, Self, cast

from burnish._files import jsontext
from burnish._files.atomic import atomic_write
from burnish._files.budget import Budget
from burnish.config.kinds import own_fields
from burnish.config.reading import from_plain, meant
from burnish.config.writing import to_plain
from burnish.errors import InputError


class Config:
    """The base of a dataclass that is saved as JSON and read again.

    Fields may be numbers, truth, text, paths, None, enumerations, literals, lists,
    tuples, sets, dicts, other dataclasses, and unions of these. Every field is written,
    those with default values too, so that another version's defaults change nothing.
    By convention `init(device)` makes what the configuration is of.
    """

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain values; InputError for what has no such form."""
        _check(type(self))
        return to_plain(self)

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """A configuration out of plain values.

        Raises RecordError with every field that does not fit: its path, what was
        expected, what came.
        """
        return _read(cls, values, None)

    def to_bytes(self) -> bytes:
        """The JSON text that `save` writes, in UTF-8."""
        return (
            json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """A configuration out of JSON text; see `from_dict`."""
        return _parsed(cls, bytes(data), cls.__name__)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the configuration to a JSON file, atomically."""
        data = self.to_bytes()
        with atomic_write(path) as file:
            file.write(data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The configuration in a JSON file; see `from_dict`."""
        with open(path, "rb") as file:
            return _parsed(cls, file.read(), os.fspath(path))

    def replace(self, **changes: Any) -> Self:
        """A copy with other values: `config.replace(dropout=0.2)`.

        Raises InputError for names that are not fields.
        """
        _check(type(self))
        known = own_fields(type(self))
        for name in changes.keys() - known.keys():
            raise InputError(
                f"{type(self).__name__} has no field {name!r}{meant(name, known)}"
            )
        return cast(Self, replace(cast(Any, self), **changes))


def _check(cls: type) -> None:
    # in its own body: what it inherits says nothing of its own fields
    if not is_dataclass(cls) or "__dataclass_fields__" not in vars(cls):
        raise InputError(f"{cls.__name__}: expected a dataclass; put @dataclass on it")


def _read(cls: Any, values: Any, where: str | None) -> Any:
    _check(cls)
    return from_plain(cls, values, where)


def _parsed(cls: Any, data: bytes, where: str) -> Any:
    return _read(cls, jsontext.parse(data, Budget(len(data), where)), where)
