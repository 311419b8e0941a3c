"""The file format of quantized parameters: named parts, and how to read them.

A parameter "fc.weight" is there as "fc.weight.codes", "fc.weight.scales", perhaps
"fc.weight.zero_points", and "fc.weight.scheme", the bytes of a JSON text. They are
plain tensors to everybody else, in every kind of file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from burnish import lowbit
from burnish.errors import InputError, RecordError

_SCHEME = "scheme"
_PARTS = ("codes", "scales", "zero_points", _SCHEME)


class HasArrays(Protocol):
    """A tensor that is kept as several arrays, by their parts' names."""

    def arrays(self) -> Mapping[str, Any]: ...


def arrays(path: str, item: HasArrays) -> Iterator[tuple[str, Any]]:
    """The arrays that are kept of a tensor at `path`, by their names."""
    for part, array in item.arrays().items():
        yield f"{path}.{part}" if part else path, array


def quantized(names: Mapping[str, Any]) -> dict[str, list[str]]:
    """The quantized tensors among names of a file, each with the names of its parts."""
    found: dict[str, list[str]] = {}
    for name in names:
        path, _, part = name.rpartition(".")
        if part == _SCHEME and f"{path}.codes" in names:
            every = (f"{path}.{part}" for part in _PARTS)
            found[path] = [each for each in every if each in names]
    return found


def joined(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values by name, with the parts of a quantized tensor as one value.

    Raises RecordError when they do not belong together.
    """
    found = quantized(state)
    if not found:
        return state
    whole = dict(state)
    for path, names in found.items():
        parts = {name.rpartition(".")[2]: whole.pop(name) for name in names}
        try:
            whole[path] = lowbit.QuantScheme.packed(
                {part: as_array(value) for part, value in parts.items()}
            )
        except (InputError, KeyError) as error:
            raise RecordError(f"{path}: {error}") from None
    return whole


def as_array(value: Any) -> Any:
    """A value of a file that is read when it is asked for, as an array."""
    return value if hasattr(value, "astype") else np.asarray(value)
