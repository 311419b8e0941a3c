"""Capture a function of tensors as a program, to run it again and to read it.

    program = capture(model, Tensor(images))
    y = program(Tensor(others))
    print(program)

Operators called on tensors are recorded and called again; what Python reads of their
values is refused, so that a run never gives a number of the capture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish import rng
from burnish._engine.pytree import mapped
from burnish.autodiff import Variable, recording
from burnish.capture.late import Unmade
from burnish.capture.program import Program
from burnish.capture.reach import Reach, Reads
from burnish.capture.signature import FIXED, argument_names, form_of
from burnish.capture.tape import Tape
from burnish.capture.traced import Traced
from burnish.capture.watch import Before, Watch, called
from burnish.errors import CaptureError
from burnish.nn.core.module import Module

__all__ = ["CaptureError", "Program", "capture", "record", "written"]


def capture(function: Callable[..., Any], *args: Any, **options: Any) -> Program:
    """Run `function(*args, **options)` once and record its calls on tensors.

    Every tensor among the arguments, also in lists, tuples and dicts, becomes an
    argument of the program; numbers and words stay what they are. Parameters and
    buffers are read in every run, assigned where the function assigns them, and random
    numbers are drawn anew from `burnish.seed`'s source. The capture itself leaves both
    as they were. Whatever else the function reads, in Python, stays as it is now.

    Raises CaptureError, with the place, where the function reads the values of a
    tensor (`float(x)`, `x.numpy()`, `if x > 0`), since they would be those of this run
    for ever.
    """
    return written(Tape(), function, args, options)


def written(
    tape: Tape, function: Callable[..., Any], args: Any, options: Any
) -> Program:
    """The program that `capture` returns, recorded by a tape."""
    form, modules, results = record(tape, function, args, options)
    kind = type(function).__name__
    name = getattr(function, "__name__", kind)
    watch = Watch(tape, modules)
    return Program(name, form, argument_names(function), tape, results, watch)


def record(
    tape: Tape,
    function: Callable[..., Any],
    args: Any,
    options: Any,
    *,
    run: Callable[..., Any] = called,
) -> tuple[Any, dict[str, Module], Any]:
    """Run a function for a tape to write down its calls.

    run: calls it with arguments whose containers are the capture's own; unless given,
    it raises CaptureError where the function changes them.

    Returns its form of arguments, the modules that it reaches and the places of its
    results. Raises CaptureError as `capture` does.
    """
    if recording.tape is not None:
        recording.tape.refuse("a capture begins within a capture")
    given: list[Variable] = []
    form = form_of((args, options), given)
    traced = iter([tape.argument(each) for each in given])
    own_args, own_options = mapped(
        (args, options),
        lambda item: next(traced) if isinstance(item, Variable) else tape.plain(item),
    )
    reach = Reach(function)
    modules = reach.modules
    before = Before(modules, reach.containers)
    tape.reads = Reads(function, modules)
    try:
        with rng.observed(tape.drawing), tape.running():
            made = run(function, own_args, own_options)
        if tape.refused:
            raise CaptureError(tape.refused)
        before.check()
    except Exception as error:
        why = tape.refused
        if tape.has_late and not why:
            why = f"capture: {error}, behind a late result"
        if why or isinstance(error, CaptureError):
            before.restore()
            tape.reads.restore()
        if why and not isinstance(error, CaptureError):
            raise CaptureError(why) from error
        raise
    return form, modules, mapped(made, lambda item: _result(tape, item))


def _result(tape: Tape, item: Any) -> Any:
    if isinstance(item, Traced):
        return tape.ref(item)
    if isinstance(item, Unmade):
        return item.settled()
    if isinstance(item, (Variable, np.ndarray, np.generic, *FIXED)):
        return item
    raise CaptureError(
        f"capture: expected results that are tensors, in lists, tuples and dicts, "
        f"got a {type(item).__name__}"
    )
