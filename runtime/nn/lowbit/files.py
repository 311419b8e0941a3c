"""The file format of quantized parameters: named parts, and how to read them.

A parameter "fc.weight" is there as "fc.weight.codes", "fc.weight.scales", perhaps
"fc.weight.zero_points", and "fc.weight.scheme", the bytes of a JSON text. They are
plain tensors to everybody else, in every kind of file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from burnish.errors import InputError, RecordError
from burnish.lowbit import QuantScheme

if TYPE_CHECKING:
    from burnish.nn.core.module import Module
    from burnish.nn.core.param import Stored

_SCHEME = "scheme"
_PARTS = ("codes", "scales", "zero_points", _SCHEME)


def arrays(path: str, item: Stored) -> Iterator[tuple[str, Any]]:
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
            whole[path] = QuantScheme.packed(
                {part: _read(value) for part, value in parts.items()}
            )
        except (InputError, KeyError) as error:
            raise RecordError(f"{path}: {error}") from None
    return whole


def _read(value: Any) -> Any:
    return value if hasattr(value, "astype") else np.asarray(value)


@contextlib.contextmanager
def inputs_installed(module: Module, state: Mapping[str, Any]) -> Iterator[None]:
    """Give layers the input quantizers that a file has for them.

    They are taken away again when the block raises. A layer "fc" has one where there is
    a name "fc.on_input.scheme".
    """
    from burnish.nn.lowbit.input_quantizer import InputQuantizer

    end = "on_input.scheme"
    wanted = {
        name.removesuffix(end).rstrip("."): name for name in state if name.endswith(end)
    }
    layers = dict(module.named_modules()) if wanted else {}
    before = {}
    for path in wanted:
        if path in layers:
            prefix = wanted[path].removesuffix("scheme")
            parts = {
                name.removeprefix(prefix): _read(state[name])
                for name in state
                if name.startswith(prefix)
            }
            before[path] = layers[path].on_input
            layers[path].on_input = InputQuantizer.from_arrays(parts).to(
                layers[path].device
            )
    try:
        yield
    except BaseException:
        for path, item in before.items():
            layers[path].on_input = item
        raise
