"""A program's lines between the records of a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish.capture.line import Line
from burnish.capture.ref import Ref
from burnish.planned.eager import array_call


def eager_call(line: Line) -> Callable[[list[Any]], None]:
    """What makes a line's call in a run of a plan on the CPU.

    An operator of arrays is called without what finds gradients. Where it fails, the
    line is made as it is: that says what was wrong with which argument.
    """
    call = line.call
    known = [None if isinstance(arg, Ref) else arg for arg in call.args]
    places, place, shape = line.args, line.place, line.shape
    compute = array_call(call.function, known, call.options) if line.plain else None
    if compute is None:
        return line.make

    def make(values: list[Any]) -> None:
        try:
            made = compute([values[each] for each in places])
        except Exception:
            line.make(values)
            return
        if place >= 0 and made.shape == shape:
            values[place] = made
        else:
            line.keep(values, made)

    return make
