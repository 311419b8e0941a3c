"""Globals and closure variables that the formula of a user's update rule reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cached_property, lru_cache
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

_OWN = __name__.partition(".")[0]
_LIBRARIES = frozenset((_OWN, "numpy", "cupy", *sys.stdlib_module_names))
"""Packages whose functions and classes read nothing that changes."""


def reads_of(kind: type) -> tuple[Any, ...]:
    """What the formula of a rule's class reads elsewhere, as it is now.

    Those are the globals, closures and defaults of `write` and of the functions that it
    calls by name, their code, and attributes of modules and classes. An object that is
    called is itself among them.
    """
    own = _users(kind)
    functions = [f for each in own for f in _functions(vars(each).get("write"))]
    found: list[Any] = []
    seen = set()
    while functions:
        function = functions.pop()
        if function in seen:
            continue
        seen.add(function)
        found.append(function.__code__)
        names = _names(function.__code__)
        functions += [
            f for each in own for v in _named(each, names) for f in _functions(v)
        ]
        for value in _values(function, names):
            inner = [*_functions(value)]
            functions += [each for each in inner if not _is_of_library(each)]
            if not inner and not _is_library_function(value):
                found.append(value)
    return tuple(found)


@lru_cache(256)
def _users(kind: type) -> list[type]:
    """A class and those that it extends, as far as they are of no library."""
    return [each for each in kind.__mro__ if not _is_of_library(each)]


def _values(function: FunctionType, names: tuple[str, ...]) -> Iterator[Any]:
    """What it reads: of modules and users' classes the attributes with its names."""
    held = function.__globals__
    values = [
        *map(_contents, function.__closure__ or ()),
        *(function.__defaults__ or ()),
        *(function.__kwdefaults__ or {}).values(),
        *vars(function).values(),
        *(held[name] for name in names if name in held),
        *(sys.modules[name] for name in names if name in sys.modules),
    ]
    spaces = set()
    while values:
        value = values.pop()
        if not isinstance(value, ModuleType | type):
            yield value
        elif value not in spaces and not _is_of_library(value):
            spaces.add(value)
            kinds = value.__mro__ if isinstance(value, type) else (value,)
            values += [each for kind in kinds for each in _named(kind, names)]


def _named(space: Any, names: tuple[str, ...]) -> Iterator[Any]:
    held = vars(space)
    return (held[name] for name in names if name in held)


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # its variable has no value yet
        return None


def _functions(value: Any) -> Iterator[FunctionType]:
    """The function in Python that an attribute or a global runs."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, cached_property):
        value = value.func
    elif isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, FunctionType):
        yield value


def _is_of_library(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] in _LIBRARIES


def _is_library_function(value: Any) -> bool:
    """Whether it is a function in C, bound to no object that may change."""
    if isinstance(value, BuiltinFunctionType):
        return value.__self__ is None or isinstance(value.__self__, ModuleType)
    return callable(value) and type(value).__module__.partition(".")[0] == "numpy"


@lru_cache(256)
def _names(code: CodeType) -> tuple[str, ...]:
    """The names that code reads, also of functions within it, and by `getattr`."""
    inner = [item for item in code.co_consts if isinstance(item, CodeType)]
    words = [item for item in code.co_consts if isinstance(item, str)]
    found = (*code.co_names, *words, *(n for each in inner for n in _names(each)))
    return tuple(dict.fromkeys(found))
