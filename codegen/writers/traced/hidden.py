"""Detect Python state that loop iterations carry: a counter, a list.

Only the calls of the first iterations are compared. A later iteration may differ where
Python objects outlive an iteration: attributes, globals, closures. They are read at
every operator call, in all frames from the loop inwards; an object that differs at the
same call of the next iteration is loop-carried state.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.codegen.errors import ExportError
from burnish.codegen.writers.traced.questions import Asking, decides
from burnish.nn.core.module import Module

Seen = dict[str, Any]
"""The contents of names and attributes: numbers, texts, lengths."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_DEEP = 4  # objects in objects
_STATEFUL = {"__main__", "builtins", "collections", "itertools", "random", "types"}
_LIBRARY = sys.stdlib_module_names - _STATEFUL
_MOST = 2000  # values of one look


class Watch:
    """Snapshots of Python state at each call inside a loop of one run."""

    def __init__(self) -> None:
        self._looks: dict[Any, list[Seen]] = {}

    def look(self, asking: Asking, at: Any, frame: types.FrameType | None) -> None:
        """Snapshot the variables visible to the functions from the loop inwards.

        at: which call it is; frame: what makes it.
        """
        found: Seen = {}
        known: set[int] = set()
        while frame is not None:
            if not _is_ours(frame.f_globals.get("__name__")):
                _look_around(found, frame, known, frame is asking.frame)
            if frame is asking.frame:
                break
            frame = frame.f_back
        self._looks.setdefault((id(asking.frame), asking.node, at), []).append(found)

    def check(self, node: ast.AST, rounds: int, line: str) -> None:
        """ExportError where something is another in the next round of this loop."""
        for (_, loop, _), looks in self._looks.items():
            step, left = divmod(len(looks), rounds)
            if loop is not node or left:
                continue
            for one, other in zip(looks, looks[step:], strict=False):
                changed = [
                    n for n, value in one.items() if other.get(n, value) != value
                ]
                if changed:
                    raise ExportError(
                        f"export: {line}: expected a loop of equal iterations, got "
                        f"one that leaves {changed[0]} changed to the next, from "
                        f"{one[changed[0]]!r:.40} to {other[changed[0]]!r:.40}; use a "
                        f"tensor, or keep it out of the loop"
                    )


def _look_around(
    found: Seen, frame: types.FrameType, known: set[int], is_loops: bool
) -> None:
    """The variables of one function, without the loop's own names."""
    code, held = frame.f_code, dict(frame.f_locals)
    outer = {name: held.pop(name) for name in code.co_freevars if name in held}
    outer |= {n: frame.f_globals[n] for n in code.co_names if n in frame.f_globals}
    for name, value in outer.items():
        _into(found, name, value, known, _DEEP)
    for name, value in held.items():
        own = isinstance(value, (*_PLAIN, tuple, list))
        if not own or (not is_loops and decides(code, name)):
            _into(found, name, value, known, _DEEP)


def _into(found: Seen, name: str, value: Any, known: set[int], room: int) -> None:
    if isinstance(value, _PLAIN):
        found[name] = value
        return
    if id(value) in known or not room or len(found) > _MOST or _is_still(value):
        return
    known.add(id(value))
    for inner, part in _parts(value):
        _into(found, f"{name}{inner}", part, known, room - 1)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of an object, with the expression that reaches each."""
    if isinstance(value, np.ndarray):
        yield ".tobytes()", value.tobytes() if value.nbytes <= _MOST else None
    elif isinstance(value, dict):
        yield " (its length)", len(value)
        yield from ((f"[{key!r}]", part) for key, part in [*value.items()][:_MOST])
    elif isinstance(value, list | tuple | set | frozenset):
        yield " (its length)", len(value)
        yield from ((f"[{i}]", part) for i, part in enumerate([*value][:_MOST]))
    elif isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        yield from ((f".{name}", _held(cell)) for name, cell in cells)
        names = value.__code__.co_names
        space = value.__globals__
        yield from ((f".{name}", space[name]) for name in names if name in space)
    elif isinstance(value, types.MethodType):
        yield "", value.__func__
        yield "", value.__self__
    elif hasattr(value, "__next__"):
        yield " (its position)", _place(value)
    else:
        yield from ((f".{key}", part) for key, part in _attributes(value).items())


def _attributes(value: Any) -> dict[str, Any]:
    found = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                found[name] = getattr(value, name)
    if not _is_ours(type(value).__module__):
        found |= {
            name: part for name, part in vars(type(value)).items()
            if isinstance(part, (*_PLAIN, list, dict, set)) and name[:2] != "__"
        }  # fmt: skip
    return found


def _held(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not given a value yet
        return None


def _place(iterator: Any) -> Any:
    if isinstance(iterator, types.GeneratorType):
        frame = iterator.gi_frame
        return None if frame is None else (frame.f_lasti, repr(frame.f_locals)[:_MOST])
    hint = getattr(iterator, "__length_hint__", None)
    return hint() if hint is not None else repr(iterator)


def _is_still(value: Any) -> bool:
    """Whether it is no state: tensors, whose values are followed; classes, modules."""
    if isinstance(
        value, Variable | types.ModuleType | type | types.BuiltinFunctionType
    ):
        return True
    if isinstance(value, types.FunctionType):
        return _is_ours(value.__module__)
    return not isinstance(value, Module) and _is_ours(type(value).__module__)


def _is_ours(module: str | None) -> bool:
    module = module or ""
    name = module.partition(".")[0]
    if name == "burnish":
        return not module.startswith("burnish.models.")
    return name == "numpy" or name in _LIBRARY
