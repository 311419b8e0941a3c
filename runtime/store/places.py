"""Where a module's tensors are: path, layer, attribute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from burnish.nn.core.module import Module
from burnish.nn.core.param import Stored


class Place(NamedTuple):
    """One path of one tensor; a shared tensor has several."""

    path: str
    item: Stored
    layer: Module
    attribute: str  #: the rest of the path, from the layer on


def places(module: Module) -> Iterator[Place]:
    """Every path of every tensor, with the innermost layer around it."""
    for path, item in module.named_tensors(remove_duplicate=False):
        layer, attribute = module, path
        while (child := _towards(layer, attribute)) is not None:
            name, layer = child
            attribute = attribute[len(name) + 1 :]
        yield Place(path, item, layer, attribute)


def _towards(layer: Module, path: str) -> tuple[str, Module] | None:
    for name, child in layer.named_children():
        if path.startswith(f"{name}."):
            return name, child
    return None
