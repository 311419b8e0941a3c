"""Layer: a module whose constructor's arguments are its description."""

from __future__ import annotations

import functools
from typing import Any

from burnish._engine.arguments import checked, unfit
from burnish._engine.misuse import misnamed, misuse
from burnish.errors import BurnishError, InputError
from burnish.nn.core import calling
from burnish.nn.core.module import Module
from burnish.nn.core.param import Stored


class Layer(Module):
    """A module that keeps its constructor's arguments as attributes of their names.

    It prints as it would be written, without default arguments: `Conv2d(3, 8, 3)`. What
    its operators say of arguments that do not fit comes with the layer's name, and its
    constructor's arguments have to be what `burnish._engine.arguments` reads off them.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__)  # type: ignore[method-assign]

    def __init__(self) -> None:
        """Keep nothing, as ReLU does."""

    def _explain(self, error: Exception, args: Any, options: Any) -> None:
        name = type(self).__name__
        is_call = _is_call(error)
        if is_call and (message := unfit(self.forward, args, options)):
            known = _words(type(self).forward)
            raise misnamed(name, message, options, known) from None
        if is_call:
            return
        if args and not hasattr(args[0], "shape"):
            raise InputError(
                f"{name}: {_words(type(self).forward)[1]}: expected a tensor "
                f"or an array, got a {type(args[0]).__name__}"
            ) from error
        if not isinstance(error, BurnishError):
            raise misuse(name, args, error) from error
        error.args = (_named(name, str(error)),)

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


Layer.__init__ = checked(Layer.__init__)  # type: ignore[method-assign]


def _is_call(error: Exception) -> bool:
    """Whether forward itself may have been called wrongly."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    callers = (Module.__module__, calling.__name__)
    return last is None or last.tb_frame.f_globals["__name__"] in callers


@functools.cache
def _words(forward: Any) -> list[str]:
    import inspect

    return list(inspect.signature(forward).parameters)


def _named(name: str, message: str) -> str:
    """An operator's message, with a layer's name before it or instead of its own."""
    if message.startswith(name):
        return message
    who, _, what = message.partition(": ")
    alike = who.replace("_", "").lower() in name.lower()
    return f"{name}: {what if alike else message}"


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
