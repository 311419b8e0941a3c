"""Modules that hold others by their names, in order.

A plain list or dict in an attribute holds modules too, below the attribute's name; here
the parts are attributes of the container itself, so that their names are all there is.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any

from burnish.errors import InputError
from burnish.nn.core.holding import held
from burnish.nn.core.module import Module
from burnish.tensor import Tensor


class _Container(Module):
    """Parts by name, in the order in which they came."""

    @property
    def _parts(self) -> dict[str, Module]:
        return {
            name: item
            for name, item in vars(self).items()
            if isinstance(item, Module) and name != "on_input"
        }

    def __len__(self) -> int:
        return len(self._parts)


def _described(value: Any) -> str:
    return getattr(value, "__name__", None) or f"a {type(value).__name__}"


class Sequential(_Container):
    """Layers one after another; `Sequential(a, b)` or `Sequential({"name": a})`"""

    def __init__(self, *layers: Any):
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            named = layers[0]
        else:
            named = {str(i): layer for i, layer in enumerate(layers)}
        for name, layer in named.items():
            if next(held(layer), None) is None:
                raise InputError(
                    f"Sequential: expected modules, got {_described(layer)} as "
                    f"{name!r}; a function has a layer of its own, as nn.ReLU() for "
                    f"ops.relu"
                )
        vars(self).update(named)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self:
            x = layer(x)
        return x

    def __iter__(self) -> Iterator[Module]:
        return iter(self._parts.values())

    def __getitem__(self, place: Any) -> Any:
        """The layer at a place; of a slice, a Sequential with the same names."""
        parts = self._parts
        if isinstance(place, slice):
            return Sequential(dict(list(parts.items())[place]))
        return list(parts.values())[place]

    def __setitem__(self, place: int, layer: Module) -> None:
        setattr(self, list(self._parts)[place], layer)


class ModuleDict(_Container):
    """Modules by name, in order; a class that extends it says how they are used.

    `ModuleDict({"name": a})`; as a dict: `parts["name"]`, `for part in parts.values()`.
    Raises InputError for a value that is not a module, a name with dots or a method's.
    """

    def __init__(self, modules: Mapping[str, Any] | None = None):
        self.update(modules or {})

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __getitem__(self, name: str) -> Any:
        return self._parts[name]

    def __setitem__(self, name: str, module: Any) -> None:
        self.update({name: module})

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def keys(self) -> KeysView[str]:
        return self._parts.keys()

    def values(self) -> ValuesView[Any]:
        return self._parts.values()

    def items(self) -> ItemsView[str, Any]:
        return self._parts.items()

    def update(self, modules: Mapping[str, Any]) -> None:
        """Add modules, or put others in place of those of the same names."""
        for name, part in modules.items():
            if not isinstance(part, Module):
                raise self._unfit("a module", f"{type(part).__name__} as {name!r}")
            if not isinstance(name, str) or not name or "." in name:
                raise self._unfit("a text without dots as a name", repr(name))
            if hasattr(type(self), name):
                raise self._unfit("a name that is no method's", repr(name))
        vars(self).update(modules)

    def _unfit(self, expected: str, got: str) -> InputError:
        return InputError(f"{type(self).__name__}: expected {expected}, got {got}")

    def pop(self, name: str) -> Any:
        """Take a module out; the module."""
        part = self[name]
        del vars(self)[name]
        return part

    def clear(self) -> None:
        """Take every module out."""
        for name in self._parts:
            del vars(self)[name]
