"""Operators as methods."""

from __future__ import annotations

import functools
from operator import index
from typing import Any

from burnish import ops
from burnish.errors import BurnishError, InputError
from burnish.operator import MISUSES, misuse


def method(operator: Any) -> Any:
    """An operator as a method: the tensor is its first argument.

    What an operator takes by keyword alone a method takes in order too: `x.sort(1)`.
    """
    code = getattr(operator, "value", operator).__code__
    arrays = code.co_argcount - 1
    words = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]

    @functools.wraps(operator)
    def bound(self: Any, *args: Any, **options: Any) -> Any:
        more: dict[str, Any] = {}
        if len(args) > arrays:
            more = dict(zip(words, args[arrays:], strict=False))
            if len(args) > arrays + len(words) or more.keys() & options.keys():
                raise TypeError(
                    f"{operator.__name__}: expected {arrays} tensors beside its own, "
                    f"then {', '.join(words)}, got {len(args)} and {[*options]}"
                )
        try:
            return operator(self, *args[:arrays], **more, **options)
        except MISUSES as error:
            trace = error.__traceback__
            if isinstance(error, BurnishError) or not (trace and trace.tb_next):
                raise  # ours, or Python's word for a missing argument
            raise misuse(operator.__name__, (self, *args), error) from error

    return bound


def reflected(operator: Any) -> Any:
    """A binary operator as the method that Python tries on its right argument."""

    @functools.wraps(operator)
    def bound(self: Any, other: Any) -> Any:
        return operator(other, self)

    return bound


def reduction(operator: Any) -> Any:
    """A reduction as a method that says `axis`, as NumPy does."""

    @functools.wraps(operator)
    def bound(
        self: Any, axis: Any = None, keepdims: bool = False, **options: Any
    ) -> Any:
        return operator(self, axes=axis, keepdims=keepdims, **options)

    return bound


def along(bound: Any) -> Any:
    """A method along an axis that takes a scalar as PyTorch does: a vector of one."""

    @functools.wraps(bound)
    def either(self: Any, *args: Any, **options: Any) -> Any:
        if self.shape:
            return bound(self, *args, **options)
        found = bound(ops.reshape(self, shape=(1,)), *args, **options)
        if isinstance(found, tuple):
            return tuple(ops.reshape(part, shape=part.shape[1:]) for part in found)
        return ops.reshape(found, shape=found.shape[1:])

    return either


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
