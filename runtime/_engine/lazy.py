"""A package's names that are imported when they are first asked for.

    with Names(globals()) as names:
        from burnish.nn.linear import Linear as Linear

The statements are written once and as always: type checkers, linters and tools that
freeze programs read them where they stand. Within the block they only note where a name
comes from; the package's `__getattr__` imports it, as a module of Scientific Python's
SPEC 1 does.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple


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


class Names(Mapping[str, Any]):
    """The public names of a package, whose `globals()` these are; values as imported.

    A name that a module of the package has too is imported in the block: the module
    would stand in its place once anyone imports it.
    """

    _import: ClassVar[Any] = builtins.__import__

    def __init__(self, package: dict[str, Any]):
        self._package = package
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
        for name, place in list(self._package.items()):
            if isinstance(place, _Place):
                self._places[name] = place
                del self._package[name]

    def notes(self, name: str, attributes: Any) -> bool:
        """Whether `from name import attributes` is noted, else it is done at once."""
        return name.removeprefix(f"{self._package['__name__']}.") not in attributes

    def __getitem__(self, name: str) -> Any:
        module, attribute = self._places[name]
        value = self._package[name] = getattr(import_module(module), attribute)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


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
