"""Find the modules that a function uses, through closures, globals and attributes."""

from __future__ import annotations

import functools
from collections import deque
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from burnish.capture.containers import LONGEST
from burnish.nn.core.module import Module


def reached(function: Any) -> dict[str, Module]:
    """Every module that a function reaches, with its name there: see `Reach`."""
    return Reach(function).modules


class Reach:
    """The modules that a function reaches, and whether its names still mean them.

    containers: the lists, dicts and sets that it reaches besides theirs, with names,
    which closures of several functions may share.

    Itself (""), those of the object it belongs to, and those among its arguments, their
    defaults, its globals and what it closes over, in lists, tuples and dicts too;
    functions of its file that it uses, and those that it closes over, reach theirs.
    """

    def __init__(self, function: Any):
        self._seen: set[int] = set()
        self._held: list[tuple[Any, Any, Any]] = []  # (holder, key, what it held)
        self._sizes: list[tuple[Any, int]] = []
        self.containers: list[tuple[str, Any]] = []
        self.modules = self._reached(function)

    def is_same(self) -> bool:
        """Whether every name still means the same, and containers are as long."""
        for holder, key, item in self._held:
            if type(holder) is CellType:
                if _content(holder) is not item:
                    return False
                continue
            try:
                if holder[key] is not item:
                    return False
            except LookupError:
                return False
        sizes = self._sizes  # mostly none: a generator would take longer than the rest
        return not sizes or all(len(holder) == size for holder, size in sizes)

    def _reached(self, function: Any) -> dict[str, Module]:
        if id(function) in self._seen:
            return {}
        self._seen.add(id(function))
        if isinstance(function, Module):
            return {"": function}
        if hasattr(function, "watched"):  # a program
            return dict(function.watched)
        if isinstance(function, functools.partial):
            places = {f"argument {i}": i for i in range(len(function.args))}
            found = self._reached(function.func)
            found |= self._modules(function.args, places)
            return found | self._modules(function.keywords)
        if isinstance(function, MethodType):
            found = self._reached(function.__func__)
            if isinstance(owner := function.__self__, Module):
                found["self"] = owner
            return found | self._of_attributes(owner)
        if not isinstance(function, FunctionType):
            return self._of_attributes(function)
        code, file = function.__code__, function.__globals__
        own = [n for n in code.co_names if n in file and not _is_of_another(file, n)]
        found = self._modules(file, {name: name for name in own})
        defaults = function.__defaults__ or ()
        last = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
        found |= self._modules(defaults, {name: i for i, name in enumerate(last)})
        found |= self._modules(function.__kwdefaults__ or {})
        for name, cell in zip(
            code.co_freevars, function.__closure__ or (), strict=True
        ):
            found |= self._of_item(name, cell, None, _content(cell))
        return found

    def _of_attributes(self, owner: Any) -> dict[str, Module]:
        own = getattr(owner, "__dict__", {})
        return self._modules(own, {f"self.{name}": name for name in own})

    def _modules(
        self, holder: Any, names: dict[str, Any] | None = None
    ) -> dict[str, Module]:
        """The modules of a container, by a key for each name."""
        names = {name: name for name in holder} if names is None else names
        found: dict[str, Module] = {}
        for name, key in names.items():
            found |= self._of_item(name, holder, key, holder[key])
        return found

    def _of_item(
        self, name: str, holder: Any, key: Any, item: Any
    ) -> dict[str, Module]:
        """The modules of what a holder has: it, or those that it holds or reaches."""
        found: dict[str, Module] = {}
        if isinstance(item, Module):
            found[name] = item
        elif isinstance(item, ModuleType):  # a lazy one is slow to say what it lacks
            return {}
        elif isinstance(item, set | deque):
            self.containers.append((name, item))
        elif isinstance(item, list | tuple | dict):
            self.containers.append((name, item))
            if len(item) <= LONGEST and id(item) not in self._seen:
                self._seen.add(id(item))
                found = self._modules(item, _named(name, item))
                if found:
                    self._sizes.append((item, len(item)))
        elif isinstance(item, FunctionType | MethodType | functools.partial) or (
            hasattr(item, "watched") and not isinstance(item, type)
        ):
            inside = self._reached(item)
            found = {f"{name}.{path}".rstrip("."): m for path, m in inside.items()}
        if found:
            self._held.append((holder, key, item))
        return found


def _named(name: str, holder: Any) -> dict[str, Any]:
    """The keys of a container by names such as "models[0]"."""
    keys = holder if isinstance(holder, dict) else range(len(holder))
    return {f"{name}[{key!r}]": key for key in keys}


def _is_of_another(file: dict[str, Any], name: str) -> bool:
    """Whether a name is a function that another file defines: a library's."""
    item = file[name]
    return isinstance(item, FunctionType) and item.__globals__ is not file


def _content(cell: Any) -> Any:
    """The value in a closure cell; None for a name that is assigned later."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
