"""Rename axes of one input that share a name but need not be equal.

"N" or "dim" for both height and width means some size, and onnxruntime takes any.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from burnish.codegen.errors import Explain


def rename_axes(graph: Any, infos: Iterable[Any], explain: Explain) -> None:
    """Give axes of one input with one name a name each, in place.

    A name that another input has too is kept: a mask (length, length) goes with its
    ids (batch, length). What the file says of other values in this name is dropped.

    infos: of all values, those of bodies included.
    """
    held = {tensor.name for tensor in graph.initializer}
    inputs = [info for info in graph.input if info.name not in held]
    infos = list(infos)
    named = (dim.dim_param for info in (*inputs, *infos) for dim in _dims(info))
    taken = {word for name in named for word in words(name)}
    counted = [
        Counter(dim.dim_param for dim in _dims(info) if dim.dim_param)
        for info in inputs
    ]
    holders = Counter(name for counts in counted for name in counts)
    for info, counts in zip(inputs, counted, strict=True):
        for name, count in counts.items():
            if count == 1 or holders[name] > 1:
                continue
            _drop(name, [each for each in infos if each not in inputs])
            same = [dim for dim in _dims(info) if dim.dim_param == name]
            for dim in same[1:]:
                tries = (f"{name}_{number}" for number in itertools.count(2))
                dim.dim_param = next(other for other in tries if other not in taken)
                taken.add(dim.dim_param)
            explain(f"input {info.name!r}: {count} axes named {name!r} may differ")


def words(size: str) -> list[str]:
    """A size's name, or what it is computed from."""
    return [size, *re.findall(r"\w+", size)]


def _dims(info: Any) -> Any:
    return info.type.tensor_type.shape.dim


def _drop(name: str, infos: Iterable[Any]) -> None:
    """Forget dimensions that are computed from this name."""
    mentions = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    for info in infos:
        for dim in _dims(info):
            if mentions.search(dim.dim_param):
                dim.ClearField("dim_param")
