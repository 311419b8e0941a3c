"""Placeholders for classes and objects of a pickle, which are never imported."""

from __future__ import annotations

from typing import Any


class Name:
    """A class or function that the file names and that is not looked up."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}, not imported>"


class Inert(Name):
    """An object of a class that is not imported: only the file's description of it.

    name: the class, or the function that would have made it; args, options: what it
    would have been called with; state: its attributes, as a rule a dict; items: what
    was appended or set by key.
    """

    __slots__ = ("args", "items", "options", "state")

    def __init__(self, name: str, args: tuple[Any, ...], options: Any = None):
        super().__init__(name)
        self.args = args
        self.options = options
        self.state: Any = None
        self.items: Any = None

    def extend(self, items: list[Any]) -> None:
        if not isinstance(self.items, list):
            self.items = []
        self.items.extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(self.items, dict):
            self.items = {}
        self.items[key] = value

    def __repr__(self) -> str:
        return f"<inert {self.name}>"
