"""Layer: a module whose constructor's arguments are its description."""

from __future__ import annotations

import functools
from typing import Any

from burnish.nn.module import Module
from burnish.nn.param import Stored


class Layer(Module):
    """A module that keeps its constructor's arguments as attributes of their names.

    It prints as it would be written, without what is default: `Conv2d(3, 8, 3)`.
    """

    def extra_repr(self) -> str:
        own = vars(self)
        kind: Any = type(self)
        parts = []
        for name, default, optional in _arguments(kind):
            if name not in own:
                continue
            value = own[name]
            if isinstance(default, bool) and not isinstance(value, bool):
                value = value is not None  # bias: a flag that became a parameter
            if isinstance(value, Stored | Module) or _same(value, default):
                continue
            parts.append(f"{name}={value!r}" if optional else repr(value))
        return ", ".join(parts)


@functools.cache
def _arguments(kind: type) -> list[tuple[str, Any, bool]]:
    """The constructor's arguments: name, default, whether there is a default."""
    import inspect

    signature = inspect.signature(kind)
    return [
        (name, p.default, p.default is not p.empty)
        for name, p in signature.parameters.items()
    ]


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and value == default
