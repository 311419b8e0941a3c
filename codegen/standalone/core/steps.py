"""Functions of plain arrays that are called with tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from burnish.codegen.standalone.core.arrays import Variable


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays, called with tensors or arrays."""

    @functools.wraps(function)
    def read(*args: Any, **options: Any) -> Any:
        plain = [arg.data if isinstance(arg, Variable) else arg for arg in args]
        return function(*plain, **options)

    return read


def call(function: Any) -> Any:
    """A function of tensors as it is."""
    return function


draw = call
