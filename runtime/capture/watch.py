"""What a captured function reads besides its arguments: is it what it was?

A program reads parameters and buffers as they are. Everything else was read once: which
modules and parameters there are, their settings and devices, tensors from outside.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from burnish.capture.tape import Tape
from burnish.errors import CaptureError
from burnish.nn.module import Module
from burnish.nn.param import Stored

_SETTINGS = (bool, int, float, str, type(None))


def reached(function: Any) -> dict[str, Module]:
    """The modules that a function works with, each by the name it has there.

    Itself (""), a method's own, those that it closes over or finds among globals.
    """
    if isinstance(function, Module):
        return {"": function}
    if isinstance(function, functools.partial):
        given = {f"argument {i}": item for i, item in enumerate(function.args)}
        given.update(function.keywords)
        return {**reached(function.func), **_modules(given)}
    if hasattr(function, "__func__"):
        return {**reached(function.__func__), **_modules({"self": function.__self__})}
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    found = {name: function.__globals__.get(name) for name in code.co_names}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        found[name] = cell.cell_contents
    return _modules(found)


def _modules(found: dict[str, Any]) -> dict[str, Module]:
    return {name: item for name, item in found.items() if isinstance(item, Module)}


def named(modules: dict[str, Module]) -> dict[int, str]:
    """The path of every parameter and buffer, by its `id`."""
    return {
        id(item): f"{name}.{path}" if name else path
        for name, module in modules.items()
        for path, item in module.named_tensors()
    }


class Watch:
    """Remembers how everything was; `check` tells what differs."""

    def __init__(self, tape: Tape, modules: dict[str, Module]):
        self._parts: list[tuple[Any, Any, Any, str]] = []
        self._settings: list[tuple[str, dict[str, Any], Any, Any]] = []
        self._devices: list[tuple[Any, Any, str]] = []
        self._paths = named(modules)
        for stored in tape.stored.values():
            self._devices.append((stored, stored.device, self.path(stored)))
        for name, module in modules.items():
            for path, each in module.named_modules():
                self._watch(".".join(filter(None, (name, path))), each)
        self._dtypes = [(item, item.dtype) for item in tape.stored.values()]
        self._outside = [
            (tensor, array)
            for tensor, array in tape.seen.values()
            if tensor() is not None
        ]

    def _watch(self, path: str, module: Module) -> None:
        own = vars(module)
        kind = type(module).__name__
        where = f"{kind} {path}" if path else kind
        self._devices.append((module, module.device, where))
        names = [name for name, value in own.items() if isinstance(value, _SETTINGS)]
        if names:
            read = itemgetter(*names)
            self._settings.append((where, own, read, read(own)))
        self._parts.extend((*part, where) for part in _parts(own))

    def path(self, stored: Stored) -> str:
        """The name of a parameter or buffer."""
        return self._paths.get(id(stored), f"a {type(stored).__name__}")

    def check(self) -> None:
        """Raises CaptureError for the first thing that is not what it was."""
        for item, device, where in self._devices:
            if item.device is not device:
                _changed(where, f"was on '{device}' and is on '{item.device}'")
        for stored, dtype in self._dtypes:
            if stored.dtype != dtype:
                _changed("a parameter", f"was {dtype} and is {stored.dtype}")
        for holder, key, item, where in self._parts:
            if holder[key] is not item:
                _changed(where, f"its {key!r} is another one")
        for where, own, read, values in self._settings:
            if read(own) != values:
                _changed(where, "a setting is another one")
        for tensor, array in self._outside:
            now = tensor()
            if now is not None and now.data is not array:
                _changed("a tensor from outside", "inplace() has changed it")


def _parts(holder: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Modules, parameters and buffers in a container: (container, key, item)."""
    pairs = holder.items() if isinstance(holder, dict) else enumerate(holder)
    for key, item in pairs:
        if isinstance(item, Stored | Module):
            yield holder, key, item
        elif isinstance(item, list | tuple | dict):
            yield from _parts(item)


def _changed(where: str, how: str) -> None:
    raise CaptureError(
        f"program: since its capture {where} has changed: {how}; capture again"
    )
