"""Records: a module's values by name, checked before anything is changed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from burnish import serialize
from burnish.backend import namespace
from burnish.errors import RecordError
from burnish.lowbit.files import quantized
from burnish.nn.core.fit import fit, is_float

if TYPE_CHECKING:
    from pathlib import Path

    from burnish.nn.core.param import Stored


def cast(state: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
    """`state` with its floating-point arrays in `dtype`; None leaves them.

    The scales of quantized tensors stay as they are. Raises RecordError where a finite
    value would become infinite.
    """
    if dtype is None:
        return dict(state)
    made: dict[int, Any] = {}  # one array under two names stays one
    kept = {name for names in quantized(state).values() for name in names}
    for name, array in state.items():
        if id(array) not in made:
            wanted = is_float(array.dtype) and name not in kept
            made[id(array)] = _narrow(name, array, dtype) if wanted else array
    return {name: made[id(array)] for name, array in state.items()}


def _narrow(name: str, array: Any, dtype: Any) -> Any:
    xp = namespace(array)
    with np.errstate(over="ignore"):
        made = array.astype(dtype, copy=False)
    lost = xp.isinf(made) & ~xp.isinf(array)
    if lost.any():
        raise RecordError(
            f"record in {np.dtype(dtype)}: {name} holds {array[lost][0]}, too large"
        )
    return made


def fitted(
    kind: str,
    paths: Iterable[tuple[str, Stored]],
    state: Mapping[str, Any],
    strict: bool,
) -> list[tuple[Stored, Any]]:
    """Each tensor with its new values, in its own dtype.

    paths: every path of every tensor. Raises RecordError with all that does not fit.
    """
    report = fit(kind, paths, state)
    report.check(strict)
    return report.values


def refuse_changed(source: Path | bytes, where: str) -> None:
    """Raise RecordError for weights that changed after they were generated."""
    if serialize.is_broken(source):
        raise RecordError(
            f"{where}: expected the weights that were generated, got others: their "
            f"sha256 has changed; generate them again, or load them with from_file"
        )


def beside(cls: type) -> Path | Any:
    """The weights file next to the source of `cls`, or of the class it extends.

    A path, or an `importlib.resources` entry when the source is not in a plain folder.
    """
    first = None
    for kind in cls.__mro__:
        source = sys.modules.get(kind.__module__)
        file = getattr(source, "__file__", None)
        if kind.__module__.startswith("burnish.nn") or not file:
            continue
        entry = _entry(kind.__module__, file)
        if entry.is_file():
            return entry
        first = first or entry
    if first is None:
        raise RecordError(
            f"{cls.__name__}.from_file: the class was not imported from a file; "
            f"give the path of its weights"
        )
    raise RecordError(
        f"{cls.__name__}.from_file: expected weights beside the source, "
        f"found no file {first}"
    )


def _entry(module: str, file: str) -> Path | Any:
    from pathlib import Path

    path = Path(file).with_suffix(".safetensors")
    package = getattr(sys.modules[module], "__package__", None)
    if path.parent.is_dir() or not package:
        return path
    from importlib import resources

    return resources.files(package).joinpath(path.name)
