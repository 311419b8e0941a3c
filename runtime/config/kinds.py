"""The meaning of annotations: the parts of a type, and its name in messages."""

from __future__ import annotations

import types
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from burnish.errors import InputError

TAG = "$type"
"""The key that says which one of several dataclasses a value is."""


def hints(cls: type) -> dict[str, Any]:
    """Each field's annotation, resolved. Raises InputError when one cannot be."""
    try:
        return get_type_hints(cls)
    except (NameError, TypeError) as error:
        raise InputError(
            f"{cls.__name__}: expected annotations that can be resolved where "
            f"the class is defined: {error}"
        ) from None


def own_fields(cls: type) -> dict[str, Field[Any]]:
    """The fields that a constructor takes, by name."""
    return {field.name: field for field in fields(cls) if field.init}


def options(kind: Any) -> tuple[Any, ...]:
    """The types that a union allows; any other type alone."""
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(one for each in get_args(kind) for one in options(each))
    return (kind,)


def dataclasses_in(kind: Any) -> list[type]:
    """The dataclasses that a type allows."""
    return [one for one in options(kind) if isinstance(one, type) and is_dataclass(one)]


def name_of(kind: Any) -> str:
    """The type's name in messages: "int", "list[float]", "'relu' or 'gelu'"."""
    if (names := options(kind)) != (kind,):
        return " or ".join(map(name_of, names))
    if kind is type(None):
        return "null"
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if get_origin(kind) is not None:
        inside = ", ".join(
            "..." if one is Ellipsis else name_of(one) for one in get_args(kind)
        )
        return f"{get_origin(kind).__name__}[{inside}]"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(repr(member.name) for member in kind)
    return getattr(kind, "__name__", str(kind))
