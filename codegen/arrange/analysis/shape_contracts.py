"""The shape contract of a class: symbolic shapes of its inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from burnish.codegen.program import (
    Attribute,
    Expression,
    Literal,
    Shape,
    Subscript,
    Value,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_ +*/()-]*")
_LONGEST = 24  # characters of a name
_COUNTED = re.compile(r"\b(s|unk__|\w+_o\d+__d)\d+\b")
"""Names of PyTorch's exporter and of shape inference: "s0", "Reshape_470_o0__d2"."""


def shape_text(shape: Shape | None) -> str:
    """`(batch, 8, _)`; a size without a name is `_`, an unknown rank `(...)`."""
    if shape is None:
        return "(...)"
    sizes = [_size(size) for size in shape]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def _size(size: int | str | None) -> str:
    if isinstance(size, int):
        return str(size)
    named = size and _NAME.fullmatch(size) and not _COUNTED.search(size)
    return size if size and named and len(size) <= _LONGEST else "_"


def contract(inputs: Iterable[Value], outputs: Iterable[Value]) -> str:
    """`(batch, 8), (8,) -> (batch, 32)` for the tensors among the values."""
    before = [shape_text(v.shape) for v in inputs if not v.host]
    after = [shape_text(v.shape) for v in outputs if not v.host]
    return f"{', '.join(before)} -> {', '.join(after)}".lstrip()


def merged(one: str, other: str) -> str:
    """The common part of two contracts of one class; sizes that differ become `_`."""
    if one == other:
        return one
    left, right = re.split(r"([(), ]+)", one), re.split(r"([(), ]+)", other)
    if len(left) != len(right):
        return ""
    return "".join(a if a == b else "_" for a, b in zip(left, right, strict=True))


def symbol(expression: Expression) -> str | None:
    """The file's name for the size `x.shape[i]`, where it is a name."""
    match expression:
        case Subscript(
            target=Attribute(target=target, name="shape"), keys=(Literal() as i,)
        ):
            if target.shape is not None:
                size = target.shape[i.value]
                return size if isinstance(size, str) else None
    return None


def size_of(value: Value, size: str) -> Expression:
    """The expression that reads a named size from the value's shape."""
    assert value.shape is not None
    place = value.shape.index(size)
    return Subscript(Attribute(value, "shape"), (Literal(place),))


def sizes_of(
    tensors: Sequence[Value], sizes: Mapping[Value, str]
) -> dict[Value, Expression]:
    """Named sizes, each read from the shape of the first tensor that has it."""
    found = {}
    for tensor in tensors:
        for size in dict.fromkeys(tensor.shape or ()):
            for value, name in sizes.items():
                if size and size == name and value not in found:
                    found[value] = size_of(tensor, name)
    return found
