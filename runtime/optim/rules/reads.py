"""What the methods of a user's rule read outside of it: globals and closures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

Read = Callable[[], Any]

_OWN = __name__.partition(".")[0]


@lru_cache(64)
def reads_of(kind: type) -> tuple[Read, ...]:
    """Functions that give the present values of what a rule's class reads elsewhere.

    Those are the globals and closures of its methods, of functions in the files that
    they are in, and numbers of modules. Classes and functions of Burnish read nothing
    that changes, nor do other functions as such.
    """
    found: list[Read] = []
    functions = [
        function
        for each in kind.__mro__
        if each.__module__.partition(".")[0] not in (_OWN, "builtins")
        for value in vars(each).values()
        for function in _functions(value)
    ]
    seen = set(functions)
    while functions:
        function = functions.pop()
        names = set(_names(function.__code__))
        cells, held = function.__closure__ or (), function.__globals__
        places: list[Read] = [partial(getattr, c, "cell_contents", None) for c in cells]
        places += [partial(held.get, name) for name in names & held.keys()]
        for read in places:
            value = read()
            if isinstance(value, ModuleType):
                found += [
                    partial(getattr, value, name, None)
                    for name in names
                    if _is_state(getattr(value, name, len))
                ]
            elif _is_state(value):
                found.append(read)
            for other in _functions(value):
                if other.__globals__ is held and other not in seen:
                    seen.add(other)
                    functions.append(other)
    return tuple(found)


def _is_state(value: Any) -> bool:
    """Whether a value may be another one in a later step."""
    return not isinstance(value, ModuleType) and not callable(value)


def _functions(value: Any) -> Iterator[FunctionType]:
    """The functions in Python that an attribute or a global runs."""
    if isinstance(value, property):
        value = value.fget
    value = getattr(value, "__func__", value)
    if isinstance(value, FunctionType):
        yield value


def _names(code: CodeType) -> Iterator[str]:
    """The names that code reads, of functions within it too."""
    yield from code.co_names
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield from _names(item)
