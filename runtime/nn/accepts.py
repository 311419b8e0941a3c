"""`accepts`: what a model's forward takes, written once and checked at every call.

    class Model(nn.Module):
        @nn.accepts(images="float32[batch, 28, 28]", mask="bool[batch, time]")
        def forward(self, images, mask=None): ...

A spec is a dtype ("any" for every one) and, in brackets, one entry for each axis: a
size, a name (the same size for every use of the name in one call), `?` or `_` for any
size, `...` for any number of axes. Without brackets every shape will do; `int64[]` is a
scalar. Arrays, lists and numbers become tensors on the module's device; lists and
numbers take the spec's dtype. None passes where it is the argument's default.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from burnish.autodiff import Variable
from burnish.errors import InputError
from burnish.tensor import Tensor

R = TypeVar("R")
_SPELLING = re.compile(r"\s*([A-Za-z]\w*)\s*(?:\[(.*)\])?\s*")


class Spec(NamedTuple):
    """One argument's dtype and axes; None for a dtype or a size that is free.

    head and tail: the axes before and behind `...`; tail is None without one.
    """

    text: str
    dtype: np.dtype[Any] | None
    head: tuple[int | str | None, ...]
    tail: tuple[int | str | None, ...] | None

    def __str__(self) -> str:
        return self.text

    @property
    def shape(self) -> tuple[Any, ...]:
        """The axes, with `...` where any number of them may be."""
        return self.head if self.tail is None else (*self.head, ..., *self.tail)


def spec(text: str) -> Spec:
    """`"float32[batch, 28, ?]"` read; ValueError says what cannot be."""
    match = _SPELLING.fullmatch(text)
    if match is None:
        raise ValueError(f"accepts: expected 'dtype[size, name, ...]', got {text!r}")
    dtype = None if match[1] == "any" else np.dtype(match[1])
    if match[2] is None:
        return Spec(text, dtype, (), ())
    words = [word.strip() for word in match[2].split(",")] if match[2].strip() else []
    cut = words.index("...") if "..." in words else len(words)
    head = tuple(_axis(word, text) for word in words[:cut])
    tail = tuple(_axis(word, text) for word in words[cut + 1 :])
    return Spec(text, dtype, head, tail if cut < len(words) else None)


def _axis(word: str, text: str) -> int | str | None:
    if word in ("?", "_"):
        return None
    if word.isdecimal():
        return int(word)
    if word.isidentifier():
        return word
    raise ValueError(f"accepts: {word!r} in {text!r} is no size, name, '?' or '...'")


def accepts(**specs: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Check and convert these arguments before `forward`; see the module's docstring.

    The parsed specs stay readable as `forward.inputs`. Raises InputError at the call.
    """
    inputs = {name: spec(text) for name, text in specs.items()}

    def decorate(forward: Callable[..., R]) -> Callable[..., R]:
        parameters = inspect.signature(forward).parameters
        names = list(parameters)
        for name in inputs:
            if name not in names[1:]:
                raise TypeError(f"accepts: {forward.__qualname__} has no {name!r}")
        checks = [(names.index(name) - 1, name, s) for name, s in inputs.items()]
        optional = {name for name in inputs if parameters[name].default is None}

        @functools.wraps(forward)
        def checked(self: Any, /, *args: Any, **options: Any) -> Any:
            places = list(args)
            bound: dict[str, tuple[int, str]] = {}
            for place, name, wanted in checks:
                is_placed = place < len(places)
                if not is_placed and name not in options:
                    continue
                value = places[place] if is_placed else options[name]
                if value is None and name in optional:
                    continue
                value = _take(self, name, value, wanted, bound)
                if is_placed:
                    places[place] = value
                else:
                    options[name] = value
            return forward(self, *places, **options)

        made: Any = checked
        made.inputs = inputs
        return checked

    return decorate


def _take(
    module: Any, name: str, value: Any, wanted: Spec, bound: dict[str, tuple[int, str]]
) -> Any:
    """`value` as a tensor that fits."""
    if value is None:
        raise InputError(f"{_where(module)}: {name} is None, expected {wanted.text}")
    if not isinstance(value, Variable):
        value = _tensor(module, name, value, wanted)
    if wanted.dtype is not None and value.dtype != wanted.dtype:
        raise InputError(
            f"{_where(module)}: {name} has dtype {value.dtype}, expected {wanted.text}"
        )
    shape = value.shape
    if wanted.tail is None:
        if len(shape) != len(wanted.head):
            raise _misfit(module, name, shape, wanted)
    elif len(shape) < len(wanted.head) + len(wanted.tail):
        raise _misfit(module, name, shape, wanted)
    elif wanted.tail:
        _match(
            module, name, shape, shape[-len(wanted.tail) :], wanted.tail, wanted, bound
        )
    _match(module, name, shape, shape, wanted.head, wanted, bound)
    return value


def _match(
    module: Any,
    name: str,
    shape: tuple[int, ...],
    sizes: tuple[int, ...],
    axes: tuple[int | str | None, ...],
    wanted: Spec,
    bound: dict[str, tuple[int, str]],
) -> None:
    for size, axis in zip(sizes, axes, strict=False):
        if axis is None or axis == size:
            continue
        if isinstance(axis, int):
            raise _misfit(module, name, shape, wanted)
        known, owner = bound.setdefault(axis, (size, name))
        if known != size:
            raise _misfit(
                module, name, shape, wanted, f" with {axis}={known} as {owner}"
            )


def _tensor(module: Any, name: str, value: Any, wanted: Spec) -> Tensor:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return Tensor(value, device=module.device)
    try:
        return Tensor(np.asarray(value, wanted.dtype), device=module.device)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{_where(module)}: {name} is a {type(value).__name__} that makes no array "
            f"({error}), expected {wanted.text}"
        ) from None


def _misfit(
    module: Any, name: str, shape: tuple[int, ...], wanted: Spec, because: str = ""
) -> InputError:
    return InputError(
        f"{_where(module)}: {name} has shape {shape}, expected {wanted.text}{because}"
    )


def _where(module: Any) -> str:
    return f"{type(module).__name__}.forward"
