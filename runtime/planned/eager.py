"""Operators between records: called on a run's arrays alone.

A capture has looked at devices and tapes; these calls do not look again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burnish.autodiff import Variable, wrapped
from burnish.backend import Device, bfloat16
from burnish.habits import Size
from burnish.operator import Operator
from burnish.tensor import Tensor

_CPU = Device("cpu")


def array_call(
    function: Any, args: Sequence[Any], options: dict[str, Any]
) -> Callable[[list[Any]], Any] | None:
    """What gives an operator's results for the values of its arguments.

    args: None for each that is an array of the run. The function returned is given all
    arguments, tensors where None was, and returns a tensor or a tuple of tensors. None
    for what is no operator, or where it needs more than arrays.
    """
    if not isinstance(function, Operator) or not args or args[0] is not None:
        return None
    if any(type(arg) is Size for arg in args):
        return None
    kernel = function.bind and function.bind(*args, **options)
    places = [place for place, arg in enumerate(args) if arg is None]

    def call(given: list[Any]) -> Any:
        arrays = tuple([a.data if isinstance(a, Variable) else a for a in given])
        if kernel is None or (bfloat16.possible() and bfloat16.is_among(arrays)):
            return _tensors(function.compute(arrays, options))
        return _tensors(kernel(*[arrays[place] for place in places]))

    return call


def _tensors(made: Any) -> Any:
    if type(made) is np.ndarray:
        return wrapped(Tensor, made, _CPU)
    if isinstance(made, tuple):
        return tuple(map(_tensors, made))
    return wrapped(Tensor, np.asarray(made), _CPU)
