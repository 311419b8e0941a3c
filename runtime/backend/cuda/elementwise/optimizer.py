"""One kernel for an optimizer's step over many parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burnish.backend.cuda.graphs import live
from burnish.backend.cuda.kernels import ELEMENTS, by_value, kernel, wide
from burnish.backend.symbols import Script, Unwritten

_THREADS, _PIECE = 256, 2048
_MOST = 40  # parameters of a launch: kernels take 4 KB of arguments


def stepped(
    write: Callable[..., None],
    slots: Sequence[str],
    parts: Sequence[tuple[Any, Any, dict[str, Any]]],
    rate: float | live.Live,
    maximize: bool,
) -> list[Any] | None:
    """The new weights of (weight, gradient, state), whose slots are changed in place.

    write(new, weight, grad, state, rate) is the rule, an element-wise formula. All
    weights have one dtype, all states one "step". None where no kernel does it.

    In a capture the rule's numbers are worked out anew for each launch: they follow the
    "step" of the first state, and the rate. Weights that a capture owns are changed in
    place.
    """
    import cupy

    dtype = parts[0][0].dtype
    number = "f8" if dtype.name == "float64" else "f4"
    state = parts[0][2]

    def script_now() -> Script | None:
        now = live.value_of(rate)
        return _written(write, slots, state["step"], now, np.dtype(number))

    script = script_now()
    if script is None or dtype.name not in ELEMENTS:
        return None
    places, count = live.numbers(), len(script.constants)
    if places is None:
        constants = by_value(np.array([*script.constants, 0.0]))
    else:
        now = script

        def is_current() -> bool:
            nonlocal now
            made = script_now()
            same = made is not None and made.lines == script.lines
            now = made if same and made is not None else now
            return same

        places.checks.append(is_current)
        constants = places.place(lambda: np.array(now.constants), count)
    made = kernel(
        "optimizer",
        element=ELEMENTS[dtype.name],
        wide=wide(np.dtype(number)),
        slots=len(slots),
        body=tuple(script.lines),
        constants=count,
        in_memory=places is not None,
        maximize=maximize,
        skips=places is not None and places.overflow is not None,
        most=_MOST,
        piece=_PIECE,
    )
    own = places.own if places is not None else frozenset()
    if any(grad.data.ptr in own for _, grad, _ in parts):
        own = frozenset()
    news = [
        weight if weight.data.ptr in own else cupy.empty(weight.shape, dtype)
        for weight, _, _ in parts
    ]
    beside = () if places is None or places.overflow is None else (places.overflow,)
    for begin in range(0, len(parts), _MOST):
        some = slice(begin, begin + _MOST)
        _launch(made, slots, parts[some], news[some], (constants,), beside)
    return news


def _launch(
    made: Any, slots: Any, parts: Any, news: Any, constants: Any, beside: Any
) -> None:
    table = np.zeros((5 + len(slots), _MOST), np.int64)
    held, blocks = [], 0
    for i, ((weight, grad, state), new) in enumerate(zip(parts, news, strict=True)):
        arrays = [weight, grad, new, *(state[slot] for slot in slots)]
        for row, array in enumerate(arrays):
            table[row, i] = array.data.ptr
        held.append(arrays)
        table[-2, i], table[-1, i] = weight.size, blocks
        blocks += -(-weight.size // _PIECE)
    if blocks:
        given = by_value(table), *constants, len(parts), *beside
        made((blocks,), (_THREADS,), given)


def _written(
    write: Any, slots: Any, step: int, rate: float, dtype: Any
) -> Script | None:
    """The rule for one element, its numbers as constants of a launch."""
    script = Script(dtype, named=True)
    new, weight, grad = (script.variable(name) for name in ("y", "x0", "x1"))
    state: dict[str, Any] = {s: script.variable(f"s{i}") for i, s in enumerate(slots)}
    try:
        write(new, weight, grad, state | {"step": step}, rate)
    except Unwritten:
        return None
    return script
