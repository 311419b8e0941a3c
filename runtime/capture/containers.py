"""Snapshots of lists, dicts and sets, to find those that a capture has changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from burnish._engine.pytree import leaves
from burnish.capture.traced import Traced

SETTINGS = (bool, int, float, str, type(None))
"""Values of which a program keeps those of its capture."""

LONGEST = 1 << 12
"""Items of a container beyond which it holds data: they are not looked into."""

_MISSING = object()


class Containers:
    """The items of containers, and of those within them, as they are now."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, Any, str]] = {}

    def keep(self, item: Any, name: str) -> None:
        """Remember the items of a container, and of those within it, by a name."""
        if isinstance(item, list | dict | set | deque):
            if id(item) in self._kept:
                return
            copied = dict(item) if isinstance(item, dict) else list(item)
            self._kept[id(item)] = item, copied, name
        if isinstance(item, list | tuple | dict) and len(item) <= LONGEST:
            for each in item.values() if isinstance(item, dict) else item:
                if isinstance(each, list | tuple | dict | set | deque):
                    self.keep(each, name)

    def changed(self) -> Iterator[str]:
        """The names of those that a run of a program would leave as they are.

        A dict that gains arrays or modules is a cache, and the same without a run.
        """
        for item, before, name in self._kept.values():
            if _has_changed(item, before):
                yield name

    def restore(self) -> None:
        """Undo these changes."""
        for item, before, _ in self._kept.values():
            if not _has_changed(item, before):
                continue
            item.clear()
            if isinstance(item, dict | set):
                item.update(before)
            else:
                item.extend(before)


def is_other(value: Any, before: Any) -> bool:
    """Whether what is kept is a capture's tensor, or other numbers and words."""
    if value is before:
        return False
    items = leaves(value)
    if any(isinstance(each, Traced) for each in items):
        return True
    settings = _settings(items)
    return bool(settings) and settings != _settings(leaves(before))


def _settings(items: list[Any]) -> list[Any]:
    return [each for each in items if isinstance(each, SETTINGS)]


def _has_changed(item: Any, before: Any) -> bool:
    if isinstance(item, dict):
        if any(key not in item for key in before):
            return True
        pairs = [(value, before.get(key, _MISSING)) for key, value in item.items()]
    elif len(item) != len(before):
        return True
    else:
        pairs = [*zip(item, before, strict=True)]
    return any(is_other(value, old) for value, old in pairs)
