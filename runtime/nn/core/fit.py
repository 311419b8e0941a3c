"""Whether values by name fit a module's tensors, and the report of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from burnish._files.shown import close
from burnish.autodiff import Variable
from burnish.errors import RecordError
from burnish.lowbit import Packed, QuantizedTensor
from burnish.lowbit.files import joined
from burnish.serialize import LazyTensor

if TYPE_CHECKING:
    from burnish.nn.core.param import Stored

_SHOWN = 5
_DEEPEST = 16  # modules that may be around a module in a file
_FLOAT = 2
_OPTIONAL = "num_batches_tracked"  # PyTorch's files from before 0.4.1 lack it


class Misfit(NamedTuple):
    """Values that cannot go where their name says."""

    what: str  #: "shape", "dtype", "quantized" or "tied"
    text: str


class Report:
    """The result of loading: everything by its path in the module.

    applied: paths that got values. missing: paths that the file has no values for.
    unexpected: names in the file without a place. skipped: names and paths that a
    filter left out. misfits: path -> why its values do not fit.
    """

    def __init__(self, kind: str):
        self.kind = kind
        self.applied: list[str] = []
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.skipped: list[str] = []
        self.misfits: dict[str, Misfit] = {}
        self.values: list[tuple[Stored, Any]] = []

    @property
    def complete(self) -> bool:
        """Whether all names and all values fitted."""
        return not (self.missing or self.unexpected or self.misfits)

    def check(self, strict: bool = True) -> None:
        """Raise RecordError with all that did not fit; without strict, names may."""
        problems = [misfit.text for misfit in self.misfits.values()]
        if strict and (self.missing or self.unexpected):
            names = f"missing {_some(self.missing)}, unexpected "
            names += f"{_some(self.unexpected)}{self._hint()}"
            problems.insert(0, names)
        if problems:
            message = f"weights do not fit {self.kind}: {'; '.join(problems)}"
            raise RecordError(f"{message}{self._rest(strict)}")

    def _rest(self, strict: bool) -> str:
        """How to load the values that fit, where only shapes (and names) do not."""
        if {misfit.what for misfit in self.misfits.values()} != {"shape"}:
            return ""
        names = strict and (self.missing or self.unexpected)
        partial = ", partial=True" if names or not strict else ""
        return (
            f"; to load the rest: burnish.store.load(model, path, "
            f"ignore_mismatched_sizes=True{partial})"
        )

    def meant(self) -> dict[str, str]:
        """Unexpected names that look like a missing one, and that one."""
        found = {}
        for name in self.unexpected[:100]:
            if meant := close(name, self.missing):
                found[name] = meant
        return found

    def _hint(self) -> str:
        """Advice on how to make the names match."""
        if not (self.missing and self.unexpected):
            return " (burnish.store.load(..., partial=True) allows either)"
        if prefix := self._prefix():
            key = prefix.removesuffix(".")
            return (
                f" (without the prefix {prefix!r} the names fit better: "
                f"burnish.store.load(..., top_level_key={key!r}))"
            )
        meant = "".join(
            f"is {name!r} meant to be {other!r}? "
            for name, other in list(self.meant().items())[:1]
        )
        return f" ({meant}burnish.store.load takes rename= and top_level_key=)"

    def _prefix(self) -> str | None:
        """The prefix that most missing names have in the file, if any."""
        missing = set(self.missing)
        counts: dict[str, int] = {}
        for name in self.unexpected:
            prefix = ""
            for part in name.split(".", _DEEPEST)[:-1]:
                prefix += f"{part}."
                if name.removeprefix(prefix) in missing:
                    counts[prefix] = counts.get(prefix, 0) + 1
        best = max(counts, key=lambda prefix: counts[prefix], default=None)
        return best if best and 2 * counts[best] > len(missing) else None

    def __str__(self) -> str:
        lists = {
            "applied": self.applied,
            "missing": self.missing,
            "unexpected": self.unexpected,
            "skipped": self.skipped,
            "misfits": list(self.misfits),
        }
        lines = [
            f"{self.kind}: "
            + ", ".join(f"{len(names)} {word}" for word, names in lists.items())
        ]
        meant = self.meant()
        for word in ("missing", "unexpected", "misfits"):
            for name in lists[word]:
                text = self.misfits[name].text if word == "misfits" else name
                hint = f"  (meant to be {meant[name]}?)" if name in meant else ""
                lines.append(f"  {word:<10}  {text}{hint}")
        return "\n".join(lines)


def fit(
    kind: str,
    paths: Iterable[tuple[str, Stored]],
    state: Mapping[str, Any],
    keep_dtype: bool = False,
) -> Report:
    """Match values by name with tensors; nothing is changed.

    kind: what the module is called. paths: every path of every tensor; a shared one has
    several, and any will do. One that is not persistent may be among the values where
    they are those it has. The report's values are in the tensors' own dtypes, with
    keep_dtype in those they came in.
    """
    report, state = Report(kind), joined(state)
    names: dict[int, list[str]] = {}
    stored: dict[int, Stored] = {}
    for path, item in paths:
        names.setdefault(id(item), []).append(path)
        stored[id(item)] = item
    every = {path for group in names.values() for path in group}
    report.unexpected = [name for name in state if name not in every]
    for key, item in stored.items():
        present = [path for path in names[key] if path in state]
        if not item.persistent and not (present and item.is_loaded):
            other = [path for path in present if not _repeats(state[path], item)]
            report.unexpected += other
            report.applied += [path for path in present if path not in other]
        elif not present:
            if names[key][0].rpartition(".")[2] != _OPTIONAL:
                report.missing.append(names[key][0])
        elif problem := _problem(present, state, item):
            report.misfits[present[0]] = problem
        else:
            array = _array(state[present[0]])
            if not keep_dtype:
                array = array.astype(item.dtype, copy=False)
            report.values.append((item, array))
            report.applied.extend(present)
    return report


def _repeats(value: Any, item: Stored) -> bool:
    """Whether a file's values are those that the class makes itself."""
    array = _array(value)
    return tuple(array.shape) == item.shape and _equal(array, item.data)


def _array(value: Any) -> Any:
    if isinstance(value, QuantizedTensor):
        return value.packed
    value = value.data if isinstance(value, Variable) else value
    return value if hasattr(value, "astype") else np.asarray(value)


def _problem(names: list[str], state: Mapping[str, Any], item: Stored) -> Misfit | None:
    for name in names:
        value = state[name]
        if isinstance(value, LazyTensor) and value.is_quantized:
            return Misfit(
                "quantized",
                f"{name} is quantized ({value.dtype}); load it with "
                f"burnish.store.load(..., dequantize=True)",
            )
        shape = value.shape if isinstance(value, LazyTensor) else _array(value).shape
        if shape != item.shape:
            text = f"{name} has shape {item.shape}, got {tuple(shape)}"
            return Misfit("shape", text)
    arrays = [_array(state[name]) for name in names]
    for name, array in zip(names, arrays, strict=True):
        if number_kind(array.dtype) > number_kind(item.dtype):
            text = f"{name} has dtype {item.dtype}, got {array.dtype}"
            return Misfit("dtype", text)
    for name, array in zip(names[1:], arrays[1:], strict=True):
        if not _equal(array, arrays[0]):
            text = f"{names[0]} and {name} are one parameter, got different values"
            return Misfit("tied", text)
    return None


def number_kind(dtype: Any) -> int:
    """0 boolean, 1 integer, 2 floating point, 3 complex; each holds those before it."""
    name = np.dtype(dtype).name
    return ("int" in name) + 2 * ("float" in name) + 3 * ("complex" in name)


def is_float(dtype: Any) -> bool:
    """Whether these are real floating-point numbers, bfloat16 and float8 too."""
    return number_kind(dtype) == _FLOAT


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and _same_place(a, b):
        return True
    if isinstance(a, Packed) or isinstance(b, Packed):
        return a.tobytes() == b.tobytes()
    return a.tobytes() == b.tobytes() or bool((a == b).all())


def _same_place(a: np.ndarray, b: np.ndarray) -> bool:
    mine, other = a.__array_interface__, b.__array_interface__
    keys = ("data", "strides", "shape", "typestr")
    return all(mine[key] == other[key] for key in keys)


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return f"{names[:_SHOWN]}" + (f" and {more} more" if more > 0 else "")
