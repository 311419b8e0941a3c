"""Operators as methods."""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import index
from typing import Any, Concatenate, ParamSpec, TypeVar

from burnish import ops
from burnish.errors import BurnishError, InputError
from burnish.operator import MISUSES, Function, misuse

Rest = ParamSpec("Rest")
P = ParamSpec("P")
A = TypeVar("A")
T = TypeVar("T")


def method(
    operator: Function[Concatenate[Any, Rest], A, T],
) -> Callable[Concatenate[Any, Rest], T]:
    """An operator as a method: the tensor is its first argument.

    What an operator takes by keyword alone a method takes in order too: `x.sort(1)`.
    """
    function: Any = operator
    code = getattr(function, "value", function).__code__
    arrays = code.co_argcount - 1
    words = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]

    @functools.wraps(function)
    def bound(self: Any, *args: Any, **options: Any) -> Any:
        more: dict[str, Any] = {}
        if len(args) > arrays:
            more = dict(zip(words, args[arrays:], strict=False))
            if len(args) > arrays + len(words) or more.keys() & options.keys():
                raise TypeError(
                    f"{function.__name__}: expected {arrays} tensors beside its own, "
                    f"then {', '.join(words)}, got {len(args)} and {[*options]}"
                )
        try:
            return function(self, *args[:arrays], **more, **options)
        except MISUSES as error:
            trace = error.__traceback__
            if isinstance(error, BurnishError) or not (trace and trace.tb_next):
                raise  # ours, or Python's word for a missing argument
            raise misuse(function.__name__, (self, *args), error) from error

    made: Any = bound
    return made


def reflected(
    operator: Function[[Any, Any], A, T],
) -> Callable[[Any, Any], T]:
    """A binary operator as the method that Python tries on its right argument."""
    function: Any = operator

    @functools.wraps(function)
    def bound(self: Any, other: Any) -> T:
        return operator(other, self)

    return bound


def reduction(operator: Function[P, A, T]) -> Callable[..., T]:
    """A reduction as a method that says `axis`, as NumPy does."""
    function: Any = operator

    @functools.wraps(function)
    def bound(
        self: Any, axis: Any = None, keepdims: bool = False, **options: Any
    ) -> Any:
        return function(self, axes=axis, keepdims=keepdims, **options)

    return bound


def along(function: Callable[P, T]) -> Callable[P, T]:
    """A method along an axis that takes a scalar as PyTorch does: a vector of one."""

    bound: Any = function

    @functools.wraps(function)
    def either(self: Any, *args: Any, **options: Any) -> Any:
        if self.shape:
            return bound(self, *args, **options)
        found = bound(ops.reshape(self, shape=(1,)), *args, **options)
        if isinstance(found, tuple):
            return tuple(ops.reshape(part, shape=part.shape[1:]) for part in found)
        return ops.reshape(found, shape=found.shape[1:])

    made: Any = either
    return made


def whole(where: str, name: str, value: Any) -> int:
    """`value` as an int; raises InputError unless it is a whole number."""
    try:
        return index(value)
    except TypeError:
        raise InputError(
            f"{where}: expected an integer as {name}, got {value!r}"
        ) from None


def shape_from(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes that were given one by one or as one tuple, list or array."""
    try:
        if len(sizes) == 1 and not hasattr(sizes[0], "__index__"):
            sizes = tuple(sizes[0])
        return tuple(map(index, sizes))
    except TypeError:
        raise InputError(
            f"shape: expected integers, one by one or as one tuple, got {sizes}"
        ) from None
