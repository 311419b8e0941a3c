"""Weights in 8 or 4 bits, as `quantize_weights` holds and `save_file` keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from burnish.codegen.errors import ConversionError
from burnish.codegen.program import Weight
from burnish.codegen.weights.entries import Entry
from burnish.errors import InputError
from burnish.lowbit import Level, QuantScheme

SCHEMES = {
    "q8": QuantScheme("q8s", level=Level.channel(0)),
    "q4": QuantScheme("q4s", level=Level.block(32)),
}
"""Values of `--quantize`: 8 bits with a scale an output, or 4 bits, one for 32."""


def quantized(every: Iterable[Entry], word: str | None) -> tuple[Entry, ...]:
    """Entries with small numbers for matrices and kernels that are trained.

    Biases, norms and buffers stay; so does everything where `word` is None.
    """
    if word is None:
        return tuple(every)
    return tuple(part for entry in every for part in _parts(entry, word))


def _parts(entry: Entry, word: str) -> Iterator[Entry]:
    weight, scheme = entry.weight, SCHEMES[word]
    floating = "float" in weight.dtype and "float8" not in weight.dtype
    if not (weight.trained and floating and len(weight.shape) >= 2 and entry.count):
        yield entry
        return
    if word == "q8" and weight.source is not None and weight.source.transposed:
        scheme = QuantScheme(scheme.value, level=Level.channel(1))  # (in, out)
    try:
        packed = scheme.pack(weight.read())
    except InputError as error:
        raise ConversionError(f"--quantize: {entry.path}: {error}") from None
    for name, array in packed.arrays().items():
        yield _entry(f"{entry.path}.{name}", array)


def _entry(path: str, array: np.ndarray[Any, Any]) -> Entry:
    dtype = str(array.dtype)
    read = partial(np.ascontiguousarray, array)
    return Entry(path, dtype, Weight(path, dtype, array.shape, read, trained=False))
