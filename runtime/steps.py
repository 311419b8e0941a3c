"""Steps of a program besides operators: reading values, drawing random numbers.

A captured program (`burnish.capture`) calls again what was called on tensors. What
Python computes from their plain arrays in between would be a constant of it, so that
reading them is refused, unless the function that does it is a step:

    @step
    def kept(targets, *, ignore_index: int):
        return targets != ignore_index

It is called with tensors or arrays, is given plain arrays and gives plain arrays, one
or a tuple of them, or nothing where it checks. Within a capture it is a line of the
program, and what follows has to use what it gives as it would use a tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from burnish.autodiff import Variable, recording

P = ParamSpec("P")
R = TypeVar("R")


def call(function: Callable[P, R], *, always: bool = False) -> Callable[P, R]:
    """Declare a function of tensors that is one line of a program, as it is.

    always: it is called in every run, also where nobody uses what it gives.
    """

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if recording.tape is not None:
            return recording.tape.call(called, args, options, always)
        return function(*args, **options)

    return called


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare a function of arrays that reads values; see the module's docstring."""

    @functools.wraps(function)
    def read(*args: Any, **options: Any) -> Any:
        if recording.tape is not None:
            return recording.tape.call(read, args, options)
        plain = [arg.data if isinstance(arg, Variable) else arg for arg in args]
        return function(*plain, **options)

    return read


def draw(function: Callable[P, R]) -> Callable[P, R]:
    """Declare a function that draws random numbers: anew in every run."""
    drawn = call(function, always=True)
    DRAWS.add(drawn)
    return drawn


DRAWS: set[Callable[..., Any]] = set()
"""Every function that `draw` declared."""
