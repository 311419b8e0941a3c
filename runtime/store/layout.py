"""Layouts: names and axis orders of a layer's tensors in other frameworks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from burnish.nn.core.module import Module

Move = Callable[[Any, Any], Any]
"""(array, layer) -> array: the same values in another order of axes; a view."""


def as_it_is(array: Any, layer: Any) -> Any:
    """The array, unchanged."""
    return array


class Rule(NamedTuple):
    """One attribute of some layers: our name and theirs, our layout and theirs."""

    layers: tuple[type, ...]
    ours: str
    theirs: str
    read: Move = as_it_is
    write: Move = as_it_is


class Layout:
    """How names and axes in a file differ from PyTorch's, which Burnish has.

    rules: the first that fits a layer and its attribute counts; what none fits is as in
    PyTorch. spelled: brings a name of the file into dotted form. `a | b` applies a and
    then b to tensors that are read, and in reverse to those written.
    """

    def __init__(self, *rules: Rule, spelled: Callable[[str], str] = str):
        self.rules = rules
        self.spelled = spelled

    def name(self, layer: Module, attribute: str) -> str:
        """The file's name of an attribute of the layer."""
        rule = self._rule(layer, attribute)
        return rule.theirs if rule else attribute

    def read(self, array: Any, layer: Module, attribute: str) -> Any:
        """The file's array in our layout."""
        rule = self._rule(layer, attribute)
        return rule.read(array, layer) if rule else array

    def write(self, array: Any, layer: Module, attribute: str) -> Any:
        """Our array in the file's layout."""
        rule = self._rule(layer, attribute)
        return rule.write(array, layer) if rule else array

    def _rule(self, layer: Module, attribute: str) -> Rule | None:
        for rule in self.rules:
            if rule.ours == attribute and isinstance(layer, rule.layers):
                return rule
        return None

    def __or__(self, other: Layout) -> Layout:
        return _Chain(self, other)


class _Chain(Layout):
    """Two layouts, one after the other."""

    def __init__(self, first: Layout, second: Layout):
        super().__init__(spelled=lambda name: second.spelled(first.spelled(name)))
        self.first = first
        self.second = second

    def name(self, layer: Module, attribute: str) -> str:
        name = self.second.name(layer, attribute)
        return self.first.name(layer, attribute) if name == attribute else name

    def read(self, array: Any, layer: Module, attribute: str) -> Any:
        array = self.first.read(array, layer, attribute)
        return self.second.read(array, layer, attribute)

    def write(self, array: Any, layer: Module, attribute: str) -> Any:
        array = self.second.write(array, layer, attribute)
        return self.first.write(array, layer, attribute)
