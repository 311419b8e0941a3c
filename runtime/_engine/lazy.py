"""Names and methods that are imported when they are first asked for.

    with Names(globals()):
        from burnish.nn.linear import Linear as Linear

The statements are written once and as always: type checkers, linters and tools that
freeze programs read them where they stand. Within the block they only note where a name
comes from; the package is given `__all__`, `__dir__`, and a `__getattr__` that imports
names, as a module of Scientific Python's SPEC 1 is.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

from burnish.habits import missing


class _Place(NamedTuple):
    """Where a name comes from."""

    module: str
    attribute: str


class _Unread:
    """What `from module import attribute` takes its attributes from, within a block."""

    def __init__(self, module: str):
        self._module = module

    def __getattr__(self, attribute: str) -> _Place:
        if attribute[:2] == "__":
            raise AttributeError(attribute)
        return _Place(self._module, attribute)


class Names:
    """The public names of a package, whose `globals()` these are.

    present: public names that the package has already. A name that a module of the
    package has too is imported in the block: the module would stand in its place once
    anyone imports it.
    """

    _import: ClassVar[Any] = builtins.__import__

    def __init__(self, package: dict[str, Any], *present: str):
        self._package, self._present = package, present
        self._places: dict[str, _Place] = {}

    def __enter__(self) -> Names:
        with _lock:
            if not _open:
                Names._import = builtins.__import__
                builtins.__import__ = _noted
            _open[id(self._package)] = self
        return self

    def __exit__(self, *error: Any) -> None:
        with _lock:
            del _open[id(self._package)]
            if not _open:
                builtins.__import__ = Names._import
        package = self._package
        for name, place in list(package.items()):
            if isinstance(place, _Place):
                self._places[name] = place
                del package[name]
        package["__all__"] = sorted((*self._present, *self._places))
        package["__getattr__"] = self._imported
        package["__dir__"] = lambda: sorted({*package, *self._places})

    def _imported(self, name: str) -> Any:
        """The value of a name of the package, as imported."""
        package = self._package
        if name not in self._places:
            raise missing(package["__name__"], name, package["__all__"])
        module, attribute = self._places[name]
        value = package[name] = getattr(import_module(module), attribute)
        return value

    def notes(self, name: str, attributes: Any) -> bool:
        """Whether `from name import attributes` is noted, else it is done at once."""
        return name.removeprefix(f"{self._package['__name__']}.") not in attributes


_open: dict[int, Names] = {}
"""By the identity of a package's `globals()`: blocks that threads are within."""
_lock = threading.Lock()


def _noted(*given: Any, **named: Any) -> Any:
    """What stands for `__import__` while any block is open, in every thread.

    A statement gives five: a name, `globals()`, `locals()`, `from`'s names, a level.
    """
    names = _open.get(id(given[1])) if len(given) == 5 else None
    if names is not None and names.notes(given[0], given[3]):
        return _Unread(given[0])
    return Names._import(*given, **named)


class LateMethod:
    """A method that is made when it is first looked up, and then stands in the class.

    Its operator's module is imported then, not with the class.
    """

    def __init__(self, make: Callable[[], Any]):
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        made = self._make()
        setattr(self._owner, self._name, made)
        return made.__get__(instance, owner)
