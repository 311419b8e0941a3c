"""A file's tensors as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def listing(weights: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    """Name, shape and dtype of every tensor, one a line, none of them read.

    names: file's name -> module's name, shown behind it where they differ.
    """
    names = names or {}
    rows = [
        (
            name if names.get(name, name) == name else f"{name} -> {names[name]}",
            str(list(tensor.shape)),
            str(tensor.dtype),
        )
        for name, tensor in weights.items()
    ]
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(2)]
    return "\n".join(
        f"{name:<{widths[0]}}  {shape:<{widths[1]}}  {dtype}"
        for name, shape, dtype in rows
    )
