"""0-d tensors for functions along an axis: treated as vectors of one element."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from burnish.ops.arrays.shape import reshape

P = ParamSpec("P")
T = TypeVar("T")


def along(function: Callable[P, T]) -> Callable[P, T]:
    """A function along an axis that takes a scalar as PyTorch does: a vector of one."""

    bound: Any = function

    @functools.wraps(function)
    def either(x: Any, *args: Any, **options: Any) -> Any:
        if getattr(x, "shape", None) != ():
            return bound(x, *args, **options)
        found = bound(reshape(x, shape=(1,)), *args, **options)
        if isinstance(found, tuple):
            return tuple(reshape(part, shape=part.shape[1:]) for part in found)
        return reshape(found, shape=found.shape[1:])

    made: Any = either
    return made
