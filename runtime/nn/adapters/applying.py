"""Operations on a module's adapters: apply, merge, remove."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from burnish.autodiff import Variable
from burnish.errors import InputError
from burnish.nn.adapters.reparameterize import Reparameterized, Reparameterizer, plain
from burnish.nn.core.groups import ParamGroup
from burnish.nn.core.holding import pairs, rebuilt
from burnish.nn.core.param import Param

if TYPE_CHECKING:
    from burnish.nn.core.module import Module


def reparameterize(
    module: Module, method: Reparameterizer, group: ParamGroup | None
) -> None:
    """Let `method` compute every parameter (of `group`) that it fits."""
    params = (group or ParamGroup.all()).params(module)
    taken = {id(part) for item in computed(module) for _, part in item.parts()}
    if nested := [path for path, param in params.items() if id(param) in taken]:
        raise InputError(
            f"{type(method).__name__}: {nested[0]!r} is part of another "
            f"reparameterization; leave it out of the group or remove_adapters() first"
        )
    fitting = {path: p for path, p in params.items() if method.fits(path, p)}
    if not fitting:
        raise InputError(
            f"{type(method).__name__}: expected parameters that it fits, found none "
            f"among {len(params)} of {type(module).__name__}"
        )
    made = {id(param): Reparameterized(param, method) for param in fitting.values()}
    _replace(module, lambda item: made.get(id(item), item))


def computed(module: Module) -> Iterator[Reparameterized]:
    """Every parameter of the module that is computed from others, each once."""
    found: dict[int, Reparameterized] = {}

    def note(item: Any) -> Any:
        if isinstance(item, Reparameterized):
            found[id(item)] = item
        return item

    _replace(module, note)
    return iter(found.values())


def make_plain(module: Module, merged: bool) -> None:
    """Parameters again, with the adapters in them or without."""
    replace_computed(module, lambda item: plain(item, merged))


def replace_computed(
    module: Module, change: Callable[[Reparameterized], Param]
) -> None:
    """Put what `change` gives where computed parameters are."""
    made = {id(item): change(item) for item in computed(module)}
    _replace(module, lambda item: made.get(id(item), item))


def _replace(module: Module, change: Callable[[Any], Any]) -> None:
    for _, each in module.named_modules():
        for name, value in vars(each).items():
            vars(each)[name] = _replaced(value, change)


def _replaced(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with `change` applied to every tensor in lists, tuples and dicts."""
    if isinstance(value, list | tuple | dict):
        return rebuilt(value, {k: _replaced(v, change) for k, v in pairs(value)})
    return change(value) if isinstance(value, Variable) else value
