"""Find the modules that a function uses, through closures, globals and attributes."""

from __future__ import annotations

import functools
from types import FunctionType, MethodType, ModuleType
from typing import Any

from burnish.nn.module import Module


def reached(function: Any) -> dict[str, Module]:
    """Every module that a function reaches, with its name there.

    Itself (""), those of the object it belongs to, and those among its arguments, their
    defaults, its globals and what it closes over, in lists, tuples and dicts too;
    functions of its file that it uses, and those that it closes over, reach theirs.
    """
    return _reached(function, set())


def _reached(function: Any, seen: set[int]) -> dict[str, Module]:
    if id(function) in seen:
        return {}
    seen.add(id(function))
    if isinstance(function, Module):
        return {"": function}
    if hasattr(function, "watched"):  # a program
        return dict(function.watched)
    if isinstance(function, functools.partial):
        names = {f"argument {i}": item for i, item in enumerate(function.args)}
        names.update(function.keywords)
        return {**_reached(function.func, seen), **_modules(names, seen)}
    if isinstance(function, MethodType):
        owner = {"self": function.__self__, **_attributes(function.__self__)}
        return {**_reached(function.__func__, seen), **_modules(owner, seen)}
    if not isinstance(function, FunctionType):
        return _modules(_attributes(function), seen)
    code, file = function.__code__, function.__globals__
    names = {name: file[name] for name in code.co_names if name in file}
    given = code.co_varnames[: code.co_argcount]
    names.update(zip(given[::-1], (function.__defaults__ or ())[::-1], strict=False))
    names.update(function.__kwdefaults__ or {})
    elsewhere = [name for name, item in names.items() if _is_of_another(item, file)]
    for name in elsewhere:
        del names[name]
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        names[name] = _content(cell)
    return _modules(names, seen)


def _modules(names: dict[str, Any], seen: set[int]) -> dict[str, Module]:
    found: dict[str, Module] = {}
    for name, item in names.items():
        if isinstance(item, Module):
            found[name] = item
        elif isinstance(item, ModuleType):  # a lazy one is slow to say what it lacks
            continue
        elif isinstance(item, list | tuple | dict):
            if id(item) not in seen:
                seen.add(id(item))
                found |= _modules(_named(name, item), seen)
        elif isinstance(item, FunctionType | MethodType | functools.partial) or (
            hasattr(item, "watched") and not isinstance(item, type)
        ):
            inside = _reached(item, seen)
            found |= {f"{name}.{path}".rstrip("."): m for path, m in inside.items()}
    return found


def _named(name: str, holder: Any) -> dict[str, Any]:
    """What a container holds, by names such as "models[0]"."""
    pairs = holder.items() if isinstance(holder, dict) else enumerate(holder)
    return {f"{name}[{key!r}]": item for key, item in pairs}


def _is_of_another(item: Any, file: dict[str, Any]) -> bool:
    """Whether it is a function that another file defines: a library's."""
    return isinstance(item, FunctionType) and item.__globals__ is not file


def _attributes(owner: Any) -> dict[str, Any]:
    own = getattr(owner, "__dict__", {})
    return {f"self.{name}": item for name, item in own.items()}


def _content(cell: Any) -> Any:
    """The value in a closure cell; None for a name that is assigned later."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
