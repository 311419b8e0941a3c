"""Configurations out of plain values, every mistake named with the field's path."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import MISSING, is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, Literal, TypeVar, get_args, get_origin

from burnish._files.shown import close, shown
from burnish.config.kinds import (
    TAG,
    dataclasses_in,
    hints,
    name_of,
    options,
    own_fields,
)
from burnish.errors import RecordError

_C = TypeVar("_C")
_BAD: Any = object()
_NOT_FINITE = ("nan", "inf", "-inf")
_TOO_LARGE = 1 << 1023  # for a whole number to become a float
_SHOWN = 10


def from_plain(cls: type[_C], values: Any, where: str | None = None) -> _C:
    """A dataclass out of plain values, those within it too.

    Fields that are not there get their defaults. Whole numbers pass as floating-point
    ones; nothing else is converted. where: what the values came from.

    Raises RecordError with all that does not fit: path, what was expected, what came.
    """
    reader = _Reader()
    made = reader.read(cls, values, "")
    if problems := reader.problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        text = "; ".join(problems[:_SHOWN]) + more
        raise RecordError(f"{where or cls.__name__}: {text}")
    return made


class _Reader:
    """Reads values by annotations and collects their errors."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def read(self, kind: Any, value: Any, path: str) -> Any:
        """The value as the annotation wants it; `_BAD` after a problem was noted."""
        choices = options(kind)
        if len(choices) > 1:
            return self._union(kind, choices, value, path)
        if kind is Any or isinstance(kind, TypeVar):
            return value
        if isinstance(kind, type) and is_dataclass(kind):
            return self._dataclass(kind, value, path)
        origin = get_origin(kind) or kind
        if origin is Literal:
            found = [one for one in get_args(kind) if _same(one, value)]
            return found[0] if found else self._wrong(kind, value, path, get_args(kind))
        if not isinstance(origin, type):
            return self._unknown(kind, path)
        return self._plain(kind, origin, value, path)

    def _plain(self, kind: Any, origin: type, value: Any, path: str) -> Any:
        if issubclass(origin, Enum):
            found = origin.__members__.get(value) if isinstance(value, str) else None
            names = list(origin.__members__)
            return self._wrong(kind, value, path, names) if found is None else found
        if origin is float:
            if isinstance(value, str) and value in _NOT_FINITE:
                return float(value)
            if type(value) is int and abs(value) < _TOO_LARGE:
                return float(value)
            return self._is(float, kind, value, path)
        if origin in (bool, int, str, type(None)):
            return self._is(origin, kind, value, path)
        if origin is os.PathLike or issubclass(origin, PurePath):
            text = self._is(str, kind, value, path)
            make: Any = Path if origin is os.PathLike else origin
            return text if text is _BAD else make(text)
        if issubclass(origin, Mapping):
            return self._mapping(kind, value, path)
        if issubclass(origin, tuple) and Ellipsis not in get_args(kind):
            return self._tuple(kind, value, path)
        if issubclass(origin, Sequence | Set):
            return self._sequence(kind, origin, value, path)
        return self._unknown(kind, path)

    def _dataclass(self, cls: Any, value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            return self._wrong(cls, value, path)
        before, known, kinds = len(self.problems), own_fields(cls), hints(cls)
        given = {name: each for name, each in value.items() if name != TAG}
        if value.get(TAG, cls.__name__) != cls.__name__:
            self._note(path, f"expected {cls.__name__}, got {shown(value[TAG], 60)}")
        for name in given.keys() - known.keys():
            hint = meant(name, known.keys() - given.keys())
            self._note(_join(path, name), f"{cls.__name__} has no such field{hint}")
        for name, field in known.items():
            if name not in given and field.default is field.default_factory is MISSING:
                kind = name_of(kinds[name])
                self._note(_join(path, name), f"expected {kind}, it is not there")
        made = {
            name: self.read(kinds[name], given[name], _join(path, name))
            for name in known.keys() & given.keys()
        }
        if len(self.problems) > before:
            return _BAD
        try:
            return cls(**made)
        except (ValueError, TypeError) as error:  # its own check of its values
            return self._note(path, str(error))

    def _union(self, kind: Any, choices: tuple[Any, ...], value: Any, path: str) -> Any:
        """The value read as the first type that fits; an exact match goes first."""
        classes = dataclasses_in(kind)
        if isinstance(value, Mapping) and len(classes) > 1 and TAG in value:
            for cls in classes:
                if cls.__name__ == value[TAG]:
                    return self.read(cls, value, path)
            names = [cls.__name__ for cls in classes]
            at = _join(path, TAG)
            hint = meant(value[TAG], names)
            came = f"got {shown(value[TAG], 60)}{hint}"
            return self._note(at, f"expected {' or '.join(names)}, {came}")
        if isinstance(value, Mapping) and len(classes) == 1:
            choices = (*classes, *(one for one in choices if one is not classes[0]))
        exact = [one for one in choices if one is type(value)]
        for one in (*exact, *choices):
            attempt = _Reader()
            made = attempt.read(one, value, path)
            if not attempt.problems:
                return made
            if one in classes and len(classes) == 1 and isinstance(value, Mapping):
                self.problems += attempt.problems
                return _BAD
        return self._wrong(kind, value, path)

    def _mapping(self, kind: Any, value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            return self._wrong(kind, value, path)
        key_kind, inside = get_args(kind) or (str, Any)
        return {
            self._key(key_kind, key, path): self.read(
                inside, each, f"{path}[{shown(key)}]"
            )
            for key, each in value.items()
        }

    def _key(self, kind: Any, key: Any, path: str) -> Any:
        if kind is int and isinstance(key, str) and key.lstrip("-").isdigit():
            return int(key)
        return self.read(kind, key, f"{path}, key {shown(key)}")

    def _sequence(self, kind: Any, origin: type, value: Any, path: str) -> Any:
        if not isinstance(value, list | tuple):
            return self._wrong(kind, value, path)
        inside = (get_args(kind) or (Any,))[0]
        made = [self.read(inside, each, f"{path}[{i}]") for i, each in enumerate(value)]
        finish: Callable[[list[Any]], Any] = list
        if issubclass(origin, tuple | frozenset):
            finish = origin
        elif issubclass(origin, Set):
            finish = set
        return _BAD if any(each is _BAD for each in made) else finish(made)

    def _tuple(self, kind: Any, value: Any, path: str) -> Any:
        inside = get_args(kind)
        if not isinstance(value, list | tuple):
            return self._wrong(kind, value, path)
        if not inside and kind is not tuple[()]:
            return tuple(value)
        if len(value) != len(inside):
            size = f"expected {len(inside)} values ({name_of(kind)})"
            return self._note(path, f"{size}, got {len(value)}")
        pairs = enumerate(zip(inside, value, strict=True))
        return tuple(self.read(one, each, f"{path}[{i}]") for i, (one, each) in pairs)

    def _is(self, expected: type, kind: Any, value: Any, path: str) -> Any:
        return value if type(value) is expected else self._wrong(kind, value, path)

    def _wrong(
        self, kind: Any, value: Any, path: str, names: Collection[Any] = ()
    ) -> Any:
        came = "null" if value is None else shown(value, 60)
        hint = meant(value, names)
        return self._note(path, f"expected {name_of(kind)}, got {came}{hint}")

    def _unknown(self, kind: Any, path: str) -> Any:
        return self._note(path, f"no configuration can hold {name_of(kind)}")

    def _note(self, path: str, text: str) -> Any:
        self.problems.append(f"{path}: {text}" if path else text)
        return _BAD


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)


def _same(one: Any, value: Any) -> bool:
    return type(one) is type(value) and one == value


def meant(name: Any, names: Collection[Any]) -> str:
    """Words for a message: which of the names was probably meant."""
    found = close(name, names)
    return f" (is {found!r} meant?)" if found else ""
