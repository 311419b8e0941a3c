"""One kernel for an optimizer's step over many parameters."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from burnish.backend.cuda.elementwise.skips import MOST
from burnish.backend.cuda.graphs import live
from burnish.backend.cuda.kernels import ELEMENTS, by_value, kernel, named, wide

_THREADS, _PIECE = 256, 2048
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_MOST = 40  # parameters of a launch: kernels take 4 KB of arguments


class Statements(NamedTuple):
    """A rule for one element in C; its constants are numbers of a launch."""

    lines: tuple[str, ...]
    constants: tuple[float, ...]


def stepped(
    rule: Callable[[Any, int, float], Statements | None],
    slots: Sequence[str],
    parts: Sequence[tuple[Any, Any, dict[str, Any]]],
    rate: float | live.Live,
    maximize: bool,
) -> list[Any] | None:
    """The new weights of (weight, gradient, state), whose slots are changed in place.

    rule(dtype, step, rate): the rule in float32 or float64. All weights have one dtype,
    all gradients one, all states one "step". None where no kernel does it.

    In a capture the rule's numbers are worked out anew for each launch: they follow the
    "step" of the first state, and the rate. Weights that a capture owns are changed in
    place.
    """
    from cupy import ndarray

    dtype = parts[0][0].dtype
    number = _DOUBLE if named(dtype) == "float64" else _SINGLE
    state = parts[0][2]

    def script_now(behind: int = 0) -> Statements | None:
        """The rule, if so many of the steps that were counted were skipped."""
        return rule(number, max(state["step"] - behind, 1), live.value_of(rate))

    script = script_now()
    if script is None or named(dtype) not in ELEMENTS:
        return None
    places, count = live.numbers(), len(script.constants)
    skips = None if places is None else places.skips
    if places is None:
        constants = by_value(np.array([*script.constants, 0.0]))
    else:
        constants = _numbers(places, script_now, script)
    made = kernel(
        "optimizer",
        element=ELEMENTS[named(dtype)],
        gradient=ELEMENTS[named(parts[0][1].dtype)],
        wide=wide(number),
        slots=len(slots),
        body=script.lines,
        constants=count,
        in_memory=places is not None,
        maximize=maximize,
        skips=skips is not None,
        most=_MOST,
        piece=_PIECE,
    )
    own = places.own if places is not None else frozenset()
    if own and any(grad.data.ptr in own for _, grad, _ in parts):
        own = frozenset()
    news = [
        weight if own and weight.data.ptr in own else ndarray(weight.shape, dtype)
        for weight, _, _ in parts
    ]
    beside = () if skips is None else (skips.overflow,)
    for begin in range(0, len(parts), _MOST):
        some = slice(begin, begin + _MOST)
        _launch(made, slots, parts[some], news[some], (constants,), beside)
    return news


def _numbers(
    places: live.Numbers,
    script_at: Callable[[int], Statements | None],
    script: Statements,
) -> Any:
    """Where a rule's numbers are, worked out for each launch.

    Where steps may be skipped, how many the host knows of, then the numbers of each
    count of steps that is possible: script_at(how many it does not know of).
    """
    skips = places.skips

    def rows() -> list[Statements | None]:
        return [script_at(i) for i in range(1 + (skips.possible if skips else 0))]

    def is_current() -> bool:
        made = rows()
        if len(made) > 1 and not all(map(fits, made)):
            skips.settle()  # the count decides which rule it is
            made = rows()
        return all(map(fits, made))

    def fits(made: Statements | None) -> bool:
        return made is not None and made.lines == script.lines

    def numbers() -> Any:
        found = [made.constants for made in rows() if made is not None]
        if skips is None:
            return np.array(found[0])
        found += [found[-1]] * (MOST + 1 - len(found))
        return np.array([skips.known, *(number for row in found for number in row)])

    places.checks.append(is_current)
    count = len(script.constants)
    return places.place(numbers, count if skips is None else 1 + (MOST + 1) * count)


def _launch(
    made: Any, slots: Any, parts: Any, news: Any, constants: Any, beside: Any
) -> None:
    blocks, sizes = _divided(tuple(weight.size for weight, _, _ in parts))
    if not blocks:
        return
    ends: list[int] = []
    for (weight, grad, state), new in zip(parts, news, strict=True):
        ends += (weight.data.ptr, grad.data.ptr, new.data.ptr)
        ends += [state[slot].data.ptr for slot in slots]
    table = np.zeros((5 + len(slots), _MOST), np.int64)
    table[:-2, : len(parts)] = np.array(ends, np.int64).reshape(len(parts), -1).T
    table[-2:] = sizes
    made((blocks,), (_THREADS,), (by_value(table), *constants, len(parts), *beside))


@functools.lru_cache(maxsize=1024)
def _divided(sizes: tuple[int, ...]) -> tuple[int, Any]:
    """The blocks for parameters of these sizes; the sizes, and where each begins."""
    ends = [0, *itertools.accumulate(-(-size // _PIECE) for size in sizes)]
    table = np.zeros((2, _MOST), np.int64)
    table[:, : len(sizes)] = sizes, ends[:-1]
    return ends[-1], table
