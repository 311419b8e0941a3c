"""Operators: functions of arrays that take and give tensors too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.codegen.standalone.core.arrays import Variable
from burnish.errors import BurnishError, InputError, PlaceError

MISUSES = (ValueError, TypeError, IndexError, AttributeError, ArithmeticError)
"""What arrays raise of arguments that they cannot take."""


class Operator:
    """A function of arrays; tensors in, tensors out. Options may be given in order."""

    def __init__(self, value: Callable[..., Any]):
        functools.update_wrapper(self, value)
        self.value = self.kernel = value
        self.name = value.__name__
        code = value.__code__
        count = code.co_posonlyargcount or code.co_argcount
        named = code.co_argcount + code.co_kwonlyargcount
        self.arguments = code.co_varnames[:count]
        self.options = code.co_varnames[count:named]
        self.variadic = bool(code.co_flags & 0x04)  # of code that takes *arrays

    def on(self, backend: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register NumPy's kernel, which computes instead of the plain value."""

        def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
            self.kernel = kernel
            return kernel

        return register

    def __call__(self, *args: Any, **options: Any) -> Any:
        if len(args) > len(self.arguments) and not self.variadic:
            count = len(self.arguments)
            options.update(zip(self.options, args[count:], strict=False))
            args = args[:count]
        for name in self.arguments[len(args) :]:  # arrays that were passed by name
            if name not in options:
                break
            args = (*args, options.pop(name))
        kind = next((type(arg) for arg in args if isinstance(arg, Variable)), None)
        if kind is None:
            return self._compute(args, options)
        raw = tuple(arg.data if isinstance(arg, Variable) else arg for arg in args)
        made = self._compute(raw, options)
        if isinstance(made, tuple):
            return tuple(kind.wrap(_array(part)) for part in made)
        return kind.wrap(_array(made))

    def _compute(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        try:
            return self.kernel(*args, **options)
        except BurnishError:
            raise
        except MISUSES as error:
            raise misuse(self.name, args, error) from error


def operator(value: Callable[..., Any]) -> Operator:
    """Declare an operator by its value."""
    return Operator(value)


def misuse(where: str, args: tuple[Any, ...], error: Exception) -> InputError:
    """An error of an array function, with the operator's name and arguments."""
    kind = PlaceError if isinstance(error, IndexError) else InputError
    shapes = (str(getattr(arg, "shape", type(arg).__name__)) for arg in args)
    return kind(f"{where}: got {', '.join(shapes)}: {error}")


def _array(value: Any) -> Any:
    """NumPy returns scalars where an array has no axes; tensors hold arrays."""
    return np.asarray(value) if isinstance(value, np.generic) else value
