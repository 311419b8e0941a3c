"""A program as text: one line a call, with its results' shapes and dtypes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from burnish._engine.pytree import mapped
from burnish.autodiff import Variable
from burnish.capture.line import Line, refs
from burnish.capture.ref import Ref
from burnish.capture.signature import Kind

if TYPE_CHECKING:
    from burnish.capture.program import Program

_WIDEST = 60  # of a call's own text, before its results


def listing(program: Program) -> str:
    """A program's arguments, calls and results."""
    names = dict(enumerate(_tensors(program)))
    names.update(program.stored)
    given = [f"{name}: {each}" for name, each in program.arguments.items()]
    if len(given) > 1:
        given = ["", *(f"    {each}," for each in given), ""]
    rows, numbers = [], itertools.count()
    for line in program.lines:
        left = _call(line, names)
        made = refs(line.call.results)
        names.update((ref.place, f"%{next(numbers)}") for ref in made)
        target = ", ".join(names[ref.place] for ref in made)
        kinds = ", ".join(f"{ref.dtype} {ref.shape}" for ref in made)
        rows.append((f"{target} = " if made else "", left, kinds))
    wide = min(max((len(a) + len(b) for a, b, _ in rows), default=0), _WIDEST)
    text = [f"{program.name}(" + "\n".join(given) + "):"]
    for target, left, kinds in rows:
        text.append(f"    {target}{left:{wide - len(target)}}  {kinds}".rstrip())
    text.append(f"    return {_shown(program.results, names)}")
    return "\n".join(text)


def _tensors(program: Program) -> list[str]:
    return [name for name, each in program.arguments.items() if isinstance(each, Kind)]


def _call(line: Line, names: dict[int, str]) -> str:
    parts = [_shown(arg, names) for arg in line.call.args]
    parts += [f"{k}={_shown(v, names)}" for k, v in line.call.options.items()]
    return f"{line.function.__name__.lstrip('_')}({', '.join(parts)})"


class _Text(str):
    """Words that are shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _shown(value: Any, names: dict[int, str]) -> str:
    def text(item: Any) -> Any:
        if isinstance(item, Ref):
            return _Text(names.get(item.place, f"constant {item.dtype} {item.shape}"))
        if isinstance(item, Variable):
            return _Text(f"constant {item.dtype} {item.shape}")
        if isinstance(item, np.ndarray) and (item.size > 1 or item.ndim):
            return _Text(f"array {item.dtype} {item.shape}")
        if isinstance(item, np.generic | np.ndarray | np.dtype):
            return _Text(str(item))
        if isinstance(item, type):
            return _Text(item.__name__)
        return item

    return repr(mapped(value, text))
