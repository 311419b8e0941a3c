"""Late results: Python objects that a program makes of its tensors, after its calls."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

from burnish.capture.ref import Ref


class Late(NamedTuple):
    """`function(*args, **options)`, called when all tensors of a run are there."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]

    def __repr__(self) -> str:
        given = [*map(repr, self.args)]
        given += [f"{name}={value!r}" for name, value in self.options.items()]
        return f"{self.function.__name__}({', '.join(given)})"


def reader(results: Any) -> Callable[[Any], Any]:
    """A function of values by place: the results, containers and all."""
    if isinstance(results, Ref):
        return itemgetter(results.place)
    if isinstance(results, Late):
        function, args = results.function, reader(results.args)
        if not results.options:
            return lambda values: function(*args(values))
        options = reader(results.options)
        return lambda values: function(*args(values), **options(values))
    if isinstance(results, dict):
        named = {key: reader(item) for key, item in results.items()}
        return lambda values: {key: read(values) for key, read in named.items()}
    if isinstance(results, list | tuple) and not _is_fixed(results):
        reads = [reader(item) for item in results]
        kind: Any = type(results)
        made = getattr(kind, "_make", kind)
        return lambda values: made([read(values) for read in reads])
    return lambda values: results


def _is_fixed(results: Any) -> bool:
    """Whether these are the same objects in each run, which nobody can change."""
    if type(results) is tuple:
        return all(map(_is_fixed, results))
    return isinstance(results, str | bytes | int | float | None)


class Unmade:
    """What a captured function has of a late result: it can only return it."""

    def __init__(self, tape: Any, late: Late):
        self._tape, self._late = tape, late

    def _look(self, *_: Any) -> Any:
        tape, late = vars(self)["_tape"], vars(self)["_late"]
        return tape.refuse(
            f"expected the result of {late.function.__name__} to be returned alone, "
            f"got a look at it",
            "; do what needs it behind the captured function",
        )

    __getattr__ = __getitem__ = __iter__ = __len__ = __contains__ = _look
    __bool__ = __eq__ = __hash__ = __add__ = __str__ = __repr__ = _look

    def settled(self) -> Late:
        """What a program keeps of it."""
        return self._late
