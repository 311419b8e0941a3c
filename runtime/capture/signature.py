"""The signature of a captured program: tensors by dtype and shape, fixed constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from burnish._engine.pytree import LISTS, mapped
from burnish.autodiff import Variable
from burnish.backend import Device
from burnish.errors import CaptureError

FIXED = (bool, int, float, complex, str, bytes, type(None), type, np.dtype, Device)


class Kind(NamedTuple):
    """A tensor's properties without its values."""

    shape: tuple[int, ...]
    dtype: Any
    device: Device
    requires_grad: bool

    def __str__(self) -> str:
        place = "" if str(self.device) == "cpu" else f" on {self.device}"
        learned = " with requires_grad" if self.requires_grad else ""
        return f"{self.dtype} {self.shape}{place}{learned}"


class Fixed(NamedTuple):
    """A number, a word, anything that is the same in every run."""

    type: type
    value: Any

    def __str__(self) -> str:
        return repr(self.value)


def fits(args: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    """Whether arguments are tensors of these kinds, without a closer look."""
    if len(args) != len(wanted):
        return False
    for arg, kind in zip(args, wanted, strict=True):
        if not (
            isinstance(kind, Kind)
            and isinstance(arg, Variable)
            and arg.device is kind.device
            and arg.shape == kind.shape
            and arg.dtype == kind.dtype
            and (arg.node is not None) is kind.requires_grad
        ):
            return False
    return True


def form_of(given: Any, tensors: list[Variable]) -> Any:
    """Arguments with a Kind instead of every tensor, which `tensors` is given.

    Raises CaptureError for a value that is neither a tensor nor plain.
    """
    return mapped(given, lambda item: kind_of(item, tensors))


def kind_of(item: Any, tensors: list[Variable]) -> Kind | Fixed:
    """One argument's part of a form, as in `form_of`."""
    if isinstance(item, Variable):
        tensors.append(item)
        is_learned = item.node is not None
        return Kind(tuple(item.shape), item.dtype, item.device, is_learned)
    if isinstance(item, FIXED):
        return Fixed(type(item), item)
    hint = "; put it into a Tensor" if hasattr(item, "__array__") else ""
    raise CaptureError(
        f"program: expected tensors, numbers and words as arguments, in lists, "
        f"tuples and dicts, got a {type(item).__name__}{hint}"
    )


def key_of(given: Any, kind: Callable[[Any], Any]) -> Any:
    """Arguments as something that can be a key; kind: what stands for each of them.

    It is made in one walk: each call of a plan begins with it.
    """
    if isinstance(given, dict):
        return tuple([(name, key_of(item, kind)) for name, item in given.items()])
    if isinstance(given, LISTS):
        return (type(given), *[key_of(item, kind) for item in given])
    return kind(given)


def named(form: Any, names: list[str]) -> dict[str, Any]:
    """Every Kind and Fixed of a form (args, options) by its path: "x", "state[0]"."""
    args, options = form
    found: dict[str, Any] = {}
    for i, item in enumerate(args):
        found.update(_listed(item, names[i] if i < len(names) else f"argument {i}"))
    for name, item in options.items():
        found.update(_listed(item, name))
    return found


def _listed(item: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(item, Kind | Fixed):
        yield path, item
    elif isinstance(item, dict):
        for key, each in item.items():
            yield from _listed(each, f"{path}[{key!r}]")
    else:
        for i, each in enumerate(item):
            yield from _listed(each, f"{path}[{i}]")


def difference(wanted: dict[str, Any], got: dict[str, Any]) -> str:
    """The first thing in which two named forms differ, in words."""
    for path, item in wanted.items():
        if path not in got:
            return f"expected {path}: {item}, got none"
        if got[path] != item:
            return f"expected {path}: {item}, got {got[path]}"
    more = next((path for path in got if path not in wanted), "other containers")
    return f"expected nothing else, got {more}"


def argument_names(function: Any) -> list[str]:
    """The names of a function's, or of a module's forward's, positional arguments."""
    import inspect

    try:
        signature = inspect.signature(getattr(function, "forward", function))
    except (TypeError, ValueError):
        return []
    return [
        name
        for name, each in signature.parameters.items()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
