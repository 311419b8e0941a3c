"""The error for a missing attribute, with Burnish's name for another library's."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from burnish.habits.modules import MODULES, OPTIMIZERS
from burnish.habits.packages import DATA, FUNCTIONS, LAYERS, PACKAGE, RULES, STARTS
from burnish.habits.tensors import METHODS

MEANT = {
    "Tensor": METHODS,
    "burnish.ops": FUNCTIONS,
    "Module": MODULES,
    "Optimizer": OPTIMIZERS,
    "burnish.nn": LAYERS,
    "burnish.nn.init": STARTS,
    "burnish.optim": RULES,
    "burnish.data": DATA,
    "burnish": {**FUNCTIONS, **PACKAGE},
}

_ELSEWHERE = {
    "Tensor": ("ops",),
    "burnish": ("ops", "nn", "optim", "data"),
    "burnish.ops": ("nn",),
    "burnish.nn": ("ops", "optim", "data"),
    "burnish.optim": ("nn",),
}
"""The packages whose public names are looked for in another place, best first."""


def meant(owner: str, name: str, known: Any, kind: str = "") -> AttributeError:
    """The error that `missing` describes."""
    table = MEANT.get(owner, {})
    message = f"{kind or owner} has no {name!r}"
    if name.startswith("__"):
        return AttributeError(message)
    plain = name.rstrip("_")
    if owner == "Tensor" and plain != name:
        same = f"x = x.{plain}(...)" if plain in known else "x = another tensor"
        instead = table.get(name) or table.get(plain) or same
        return AttributeError(
            f"{message}: tensors never change in place; write {instead}"
        )
    if meant := table.get(name):
        return AttributeError(f"{message}: write {meant}")
    for package in _ELSEWHERE.get(owner, ()):
        if name in import_module(f"burnish.{package}").__all__:
            call = f"{package}.{name}(x)" if owner == "Tensor" else f"{package}.{name}"
            return AttributeError(f"{message}: write {call}")
    if close := _close(name, known):
        return AttributeError(f"{message}; did you mean {close!r}?")
    return AttributeError(message)


def _close(name: str, known: Any) -> str | None:
    """The known name that `name` looks like, if there is one."""
    import difflib

    squeezed = {each.replace("_", "").lower(): each for each in known}
    alike = squeezed.get(name.replace("_", "").lower())
    found = [alike] if alike else difflib.get_close_matches(name, known, 1, 0.8)
    return next(iter(found), None)
