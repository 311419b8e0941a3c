"""Records: a module's values by name, checked before anything is changed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import namespace
from burnish.errors import RecordError

if TYPE_CHECKING:
    from pathlib import Path

    from burnish.nn.param import Stored

_SHOWN = 5


def cast(state: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
    """`state` with its floating-point arrays in `dtype`; None leaves them.

    Raises RecordError where a finite value would become infinite.
    """
    if dtype is None:
        return dict(state)
    return {
        name: _narrow(name, array, dtype) if _kind(array.dtype) == _FLOAT else array
        for name, array in state.items()
    }


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

    paths: every path of every tensor; a shared one has several, and any will do.
    Raises RecordError with all that does not fit.
    """
    names: dict[int, list[str]] = {}
    stored: dict[int, Stored] = {}
    for path, item in paths:
        names.setdefault(id(item), []).append(path)
        stored[id(item)] = item
    every = {path for group in names.values() for path in group}
    missing = [g[0] for g in names.values() if not any(path in state for path in g)]
    unexpected = [name for name in state if name not in every]
    problems = []
    if strict and (missing or unexpected):
        problems.append(_misnamed(missing, unexpected))
    values = []
    for key, item in stored.items():
        present = [path for path in names[key] if path in state]
        arrays = [_array(state[path]) for path in present]
        if not present:
            continue
        if problem := _problem(present, arrays, item):
            problems.append(problem)
        else:
            values.append((item, arrays[0]))
    if problems:
        raise RecordError(f"weights do not fit {kind}: {'; '.join(problems)}")
    return [(item, array.astype(item.dtype, copy=False)) for item, array in values]


def _array(value: Any) -> Any:
    value = value.data if isinstance(value, Variable) else value
    return value if hasattr(value, "astype") else np.asarray(value)


def _problem(names: list[str], arrays: list[Any], item: Stored) -> str | None:
    for name, array in zip(names, arrays, strict=True):
        if array.shape != item.shape:
            return f"{name} has shape {item.shape}, got {array.shape}"
        if _kind(array.dtype) > _kind(item.dtype):
            return f"{name} has dtype {item.dtype}, got {array.dtype}"
    for name, array in zip(names[1:], arrays[1:], strict=True):
        if not _equal(array, arrays[0]):
            return f"{names[0]} and {name} are one parameter, got different values"
    return None


_FLOAT = 2


def _kind(dtype: Any) -> int:
    """0 boolean, 1 integer, 2 floating point, 3 complex; each holds those before it."""
    name = np.dtype(dtype).name
    return ("int" in name) + 2 * ("float" in name) + 3 * ("complex" in name)


def _equal(a: Any, b: Any) -> bool:
    return a.tobytes() == b.tobytes() or bool((a == b).all())


def _misnamed(missing: list[str], unexpected: list[str]) -> str:
    text = f"missing {_some(missing)}, unexpected {_some(unexpected)}"
    if not (missing and unexpected):
        return text
    for name in unexpected:
        prefix, dot, rest = name.partition(".")
        if rest in missing and all(n.startswith(prefix + dot) for n in unexpected):
            return f"{text} (without the prefix {prefix + dot!r} the names fit better)"
    import difflib

    meant = difflib.get_close_matches(unexpected[0], missing, 1, 0.6)
    return f"{text} (is {unexpected[0]!r} meant to be {meant[0]!r}?)" if meant else text


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return f"{names[:_SHOWN]}" + (f" and {more} more" if more > 0 else "")


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
