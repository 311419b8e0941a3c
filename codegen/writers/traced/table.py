"""Registry of export rules: operators and layers of Burnish to ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from burnish import ops
from burnish.nn.core.module import Module
from burnish.operator import Operator

Writer = Callable[..., Any]

writers: dict[str, Writer] = {}
"""By the name of an operator or of a function of `burnish.ops`.

Layers are "nn.Layer", what is neither "step name".
"""

_NAMES: dict[int, str] = {}


def writes(*names: str, **operators: str) -> Callable[[Writer], Writer]:
    """Declare how calls of operators, functions or layers ("nn.LSTM") are written.

    The function is given an Emitter and the call's arguments: tensors as `Ref`s or
    arrays, options as they are with sizes that depend on dynamic axes as `Size`.
    operators: names for which it is given ONNX's operator too, as `op`.
    """

    def declare(writer: Writer) -> Writer:
        writers.update(dict.fromkeys(names, writer))
        writers.update((name, partial(writer, op=op)) for name, op in operators.items())
        return writer

    return declare


def same_as(op: str, **words: str) -> Writer:
    """A writer of one node: options are its attributes, some by other names."""

    def write(emit: Any, *inputs: Any, **options: Any) -> Any:
        return emit(op, *inputs, **{words.get(k, k): v for k, v in options.items()})

    return write


def find(function: Any) -> Writer | None:
    """How a call of an operator, a function of `burnish.ops` or a layer is written."""
    if isinstance(function, Module):
        return writers.get(f"nn.{type(function).__name__}")
    if isinstance(function, Operator):
        return writers.get(function.name)
    name = name_of(function) or f"step {getattr(function, '__name__', '')}"
    return writers.get(name)


def name_of(function: Any) -> str:
    """The name in `burnish.ops` of a function that is made of operators, or ""."""
    if not _NAMES:
        _NAMES.update(
            (id(each), name)
            for name in vars(ops)["__all__"]
            if not isinstance(each := getattr(ops, name), Operator)
        )
    return _NAMES.get(id(function), "")
