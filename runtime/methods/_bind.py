"""Operators as methods."""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import index
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from burnish._engine.lazy import LateMethod
from burnish._engine.misuse import MISUSES, misuse
from burnish.errors import ArgumentError, BurnishError, InputError
from burnish.operator import Function

if TYPE_CHECKING:
    from typing import Concatenate

P = ParamSpec("P")
A = TypeVar("A")
T = TypeVar("T")


def method(
    operator: Callable[[], Function[Concatenate[Any, P], A, T]], scalars: bool = False
) -> Callable[Concatenate[Any, P], T]:
    """An operator as a method: the tensor is its first argument.

    scalars: whether a tensor without axes is taken as a vector of one element.
    """

    def make() -> Any:
        function: Any = operator()

        @functools.wraps(function)
        def bound(self: Any, *args: Any, **options: Any) -> Any:
            try:
                return function(self, *args, **options)
            except MISUSES as error:
                trace = error.__traceback__
                if isinstance(error, BurnishError) or not (trace and trace.tb_next):
                    raise  # ours, or Python's word for a missing argument
                raise misuse(function.__name__, (self, *args), error) from error

        if not scalars:
            return bound
        from burnish.ops.arrays._scalars import along

        return along(bound)

    made: Any = LateMethod(make)
    return made


def reflected(
    operator: Callable[[], Function[[Any, Any], A, T]],
) -> Callable[[Any, Any], T]:
    """A binary operator as the method that Python tries on its right argument."""

    def make() -> Any:
        function: Any = operator()

        @functools.wraps(function)
        def bound(self: Any, other: Any) -> T:
            return function(other, self)

        return bound

    made: Any = LateMethod(make)
    return made


def axes_from(where: str, given: tuple[Any, ...], axis: Any) -> Any:
    """Axes that were given one by one, as one tuple, or by name; None for none."""
    if given and axis is not None:
        raise ArgumentError(f"{where}: got axes twice, {given} and axis={axis}")
    return shape_from(given) if given else axis


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
