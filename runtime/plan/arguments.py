"""A training step's inputs other than tensors: numbers and closures."""

from __future__ import annotations

from typing import Any

from burnish._engine.pytree import leaves
from burnish.backend.cuda.graphs.live import Live
from burnish.capture import CaptureError


def numbers_in(given: Any) -> tuple[float, ...]:
    """The numbers among a call's arguments that may be others in each call."""
    return tuple(float(item) for item in leaves(given) if is_number(item))


def is_number(item: Any) -> bool:
    """Whether an argument is such a number; CaptureError where groups have others."""
    if isinstance(item, float) and getattr(item, "groups", None):
        raise CaptureError("groups of parameters have rates of their own")
    return isinstance(item, float)


def as_live(item: Any) -> Any:
    return Live(float(item)) if is_number(item) else item


def are_read(given: Any) -> bool:
    return any(type(item) is Live and item.is_read for item in leaves(given))


def paired(given: Any, own: Any) -> list[tuple[Any, Any]]:
    """Arguments, and everything in them, each with its copy in `own`."""
    found = [(given, own)]
    if isinstance(given, dict):
        for key, item in given.items():
            found += paired(item, own[key])
    elif isinstance(given, list | tuple):
        for item, copy in zip(given, own, strict=True):
            found += paired(item, copy)
    return found


def give_back(pairs: list[tuple[Any, Any]]) -> None:
    """Let lists and dicts of a call have the items that their copies have now."""
    originals = {id(copy): item for item, copy in pairs}
    for item, copy in pairs:
        if isinstance(item, dict):
            now = {key: originals.get(id(v), v) for key, v in copy.items()}
            item.clear()
            item.update(now)
        elif isinstance(item, list):
            item[:] = [originals.get(id(v), v) for v in copy]


def cells(function: Any) -> list[Any]:
    """The numbers and words that a function closes over, as they are now."""
    function = getattr(function, "__func__", function)
    found = []
    for cell in getattr(function, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # it has no value yet
            continue
        if isinstance(value, bool | int | float | str):
            found.append(value)
    return found
