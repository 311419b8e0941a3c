"""The stored tensors of a module and their paths, and the arrays that files keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from burnish.lowbit.files import arrays
from burnish.nn.core.holding import named_held
from burnish.nn.core.param import Stored

if TYPE_CHECKING:
    from burnish.nn.core.module import Module


def stored(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Stored]]:
    """Every stored tensor among attributes, one that is made of others as these."""
    for name, item in named_held(attributes):
        if isinstance(item, Stored):
            for part, tensor in item.parts():
                yield f"{name}.{part}" if part else name, tensor


def saved(held: Iterable[tuple[str, Stored]]) -> dict[str, Any]:
    """The arrays that a file keeps of these tensors, by name."""
    kept = (each for each in held if each[1].persistent)
    return {name: array for path, item in kept for name, array in arrays(path, item)}


def each_once(module: Module) -> list[tuple[str, Stored]]:
    """Every tensor with its first path: a module's own before those of its parts."""
    found: list[tuple[str, Stored]] = []
    seen: set[int] = set()

    def walk(module: Module, prefix: str) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        children = []
        for name, item in named_held(vars(module)):
            if not isinstance(item, Stored):
                children.append((f"{prefix}{name}.", item))
                continue
            for part, tensor in item.parts():
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    path = f"{prefix}{name}"
                    found.append((f"{path}.{part}" if part else path, tensor))
        for path, child in children:
            walk(child, path)

    walk(module, "")
    return found


def every_path(module: Module) -> Iterator[tuple[str, Stored]]:
    """Every path of every tensor: a shared one comes once for each."""

    def walk(module: Module, prefix: str, above: tuple[Module, ...]) -> Any:
        for name, item in stored(vars(module)):
            yield prefix + name, item
        for name, child in module.named_children():
            if not any(child is module for module in above):
                yield from walk(child, f"{prefix}{name}.", (*above, child))

    yield from walk(module, "", (module,))
