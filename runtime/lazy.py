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
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple


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

    def __init__(self, package: dict[str, Any]):
        self._package = package
        self._places: dict[str, _Place] = {}

    def __enter__(self) -> Names:
        self._import = builtins.__import__
        builtins.__import__ = self._noted  # type: ignore[assignment]
        return self

    def __exit__(self, *error: Any) -> None:
        builtins.__import__ = self._import
        for name, place in list(self._package.items()):
            if isinstance(place, _Place):
                self._places[name] = place
                del self._package[name]

    def _noted(self, name: str, package: Any = None, *rest: Any) -> Any:
        """What an `import` statement calls; rest: locals, `from`'s names, level."""
        own = f"{self._package['__name__']}."
        if package is not self._package or name.removeprefix(own) in rest[1]:
            return self._import(name, package, *rest)
        return _Unread(name)

    def __getitem__(self, name: str) -> Any:
        module, attribute = self._places[name]
        value = self._package[name] = getattr(import_module(module), attribute)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
