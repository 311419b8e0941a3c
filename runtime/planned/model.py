"""The plans beside a model's weights: when they run, and why they do not."""

from __future__ import annotations

import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from burnish.backend import Device
from burnish.errors import KernelError
from burnish.kernels import Library
from burnish.kernels.library import built_before, opened_once
from burnish.nn.core import tables
from burnish.nn.core.module import Module
from burnish.planned.file import Manifest, Parts, opened
from burnish.planned.ready import Ready
from burnish.planned.space import Fault
from burnish.planned.unchanged import Unchanged
from burnish.serialize import open_weights
from burnish.tensor import Tensor

PLAN, LIBRARY = ".plan.safetensors", ".kernels.so"
"""The suffixes of the two files, in place of the weights file's."""

_CPU = Device("cpu")
_MOST = 32
"""Reasons that are counted one by one."""
_NUMBERS: dict[type, str] = {bool: "b", int: "if", float: "f"}
"""The kinds of dtypes that Python's numbers become."""
_refused: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()


class Ahead:
    """A model's plans by the kind of their arguments.

    Called with the model's arguments it gives the results, or NotImplemented where the
    model has to run eagerly.
    """

    def __init__(self, model: Module, manifest: Manifest, library: Library):
        self.manifest, self.library = manifest, library
        self._owner: Callable[[], Any] = weakref.ref(model)
        held = dict(model.named_tensors())
        self._ready: dict[Any, Ready] = {}
        for parts in manifest.plans:
            kind = tuple((*each[:2], each[2]) for each in parts.kinds)
            self._ready[kind] = Ready(parts, library, manifest.constants, held)
        self._by_value = any(
            each[2] is not None for kind in self._ready for each in kind
        )
        self._forward: Any = type(model).forward
        self._takes: Any = getattr(self._forward, "inputs", {})
        self._why_not: Counter[str] = Counter()
        self._over = ""
        self._unchanged: Any = None

    def watch(self, model: Module, lent: dict[int, Any]) -> None:
        """Take the model as it is now; a change ends what plans compute for it."""
        self._unchanged = Unchanged(model, lent)

    def __call__(self, model: Any, args: Any, options: Any) -> Any:
        """The results of a call; NotImplemented where the model runs eagerly."""
        if self._owner() is not model or self._over:
            return NotImplemented
        found = self._found(args, options)
        if isinstance(found, str):
            known = found in self._why_not or len(self._why_not) < _MOST
            self._why_not[found if known else "other arguments"] += 1
            return NotImplemented
        kind: Any = type(model)
        if kind.forward is not self._forward:
            why = "forward is another one"
        else:
            why = self._unchanged()
        if why:
            self._over = f"since it was loaded, {why}"
            self._ready.clear()
            return NotImplemented
        ready, given = found
        try:
            return ready(given)
        except Fault:
            self._why_not["values that kernels do not compute"] += 1
            return NotImplemented

    def _found(self, args: Any, options: Any) -> Any:
        """The plan for these arguments and its tensors; why there is none."""
        if options:
            args = self._in_order(args, options)
        given: list[Tensor] = []
        key: list[Any] = []
        by_value: list[Any] = []
        for place, arg in enumerate(args):
            if type(arg) is not Tensor:
                arg = self._tensor(place, arg)
                if arg is None:
                    return "arguments that are no tensors"
            if arg.device is not _CPU or arg.node is not None:
                return f"tensors on '{arg.device}'"
            data = arg.data
            given.append(arg)
            key.append((data.dtype, data.shape, None))
            if self._by_value:
                number = not data.shape and data.dtype.kind in "biu"
                value = data.item() if number else None
                by_value.append((data.dtype, data.shape, value))
        ready = self._ready.get(tuple(by_value)) if by_value else None
        ready = ready or self._ready.get(tuple(key))
        if ready is None:
            kinds = ", ".join(_kind(each) for each in by_value or key)
            return f"no plan for {kinds}"
        return ready, [given[place] for place in ready.parts.takes]

    def _in_order(self, args: Any, options: Any) -> Any:
        """All arguments by place; one that is no tensor where they do not fit."""
        names = self.manifest.names[len(args) :]
        if set(names) != set(options):
            return (*args, None)
        return (*args, *(options[name] for name in names))

    def _tensor(self, place: int, arg: Any) -> Tensor | None:
        """An array or a number as the tensor that `nn.accepts` makes of it."""
        names = self.manifest.names
        wanted = self._takes.get(names[place]) if place < len(names) else None
        if wanted is None:
            return None
        if type(arg) is np.ndarray:
            return Tensor.wrap(arg, _CPU)
        kinds = _NUMBERS.get(type(arg), "")
        if wanted.dtype is None or wanted.dtype.kind not in kinds:
            return None
        try:
            return Tensor.wrap(np.asarray(arg, wanted.dtype), _CPU)
        except OverflowError:
            return None

    def __reduce__(self) -> Any:
        """A copy of the model has no plans: they are bound to this one."""
        return type(None), ()

    @property
    def refusals(self) -> list[str]:
        """Why calls so far ran eagerly, each reason once."""
        return [*filter(None, [self._over]), *self._why_not]

    def report(self) -> str:
        """The plans, and what ran eagerly."""
        lines = [f"{self.manifest.path}, by {self.library.file}:"]
        for parts in self.manifest.plans:
            kinds = ", ".join(map(_kind, parts.kinds))
            lines.append(f"    ({kinds}): {len(parts.records)} records")
        if self._over:
            lines.append(f"    runs eagerly: {self._over}")
        lines += [f"    {n} x eagerly: {why}" for why, n in self._why_not.items()]
        return "\n".join(lines)


def _kind(kind: tuple[Any, tuple[int, ...], Any]) -> str:
    dtype, shape, value = kind
    return f"{dtype} {shape}" + (f" of value {value}" if value is not None else "")


class _Lender:
    """Reads a parameter's values from the weights file on first access."""

    def __init__(self, weights: _Weights, path: str):
        self._weights, self._path = weights, path
        self.made: Any = None

    def __call__(self, shape: tuple[int, ...], dtype: Any, device: Device) -> Any:
        array = np.asarray(self._weights.read(self._path), dtype)
        if device.kind == "cpu":
            self.made = array
        return array


class _Weights:
    """A weights file that is opened when its first tensor is read."""

    def __init__(self, path: Path):
        self._path = path
        self._held: Any = None

    def read(self, name: str) -> Any:
        if self._held is None:
            self._held = open_weights(self._path)
        return self._held[name].read()


def attach(model: Module, weights: Path) -> bool:
    """Bind the plans beside a weights file to a model; whether its values are there.

    Where a plan file does not fit, a line on stderr says why, and nothing is changed:
    the model is to be loaded as usual, and runs eagerly. Raises RecordError for a plan
    file that is damaged.
    """
    manifest = opened(weights.with_suffix(PLAN))
    library = None if os.environ.get("BURNISH_KERNELS") == "off" else _library(manifest)
    why = _unfit(type(model), manifest, weights)
    if not why and not isinstance(library, Library):
        why = library or "BURNISH_KERNELS is off"
    if why:
        _refused[model] = f"{manifest.path}: calls run eagerly: {why}"
        print(f"burnish: {_refused[model]}", file=sys.stderr)
        return False
    assert isinstance(library, Library)
    lent: dict[int, _Lender] = {}
    if manifest.lends:
        lent = _lend(model, weights)
    else:
        model.load_file(weights)
    vars(model)["_ahead"] = ahead = Ahead(model, manifest, library)
    ahead.watch(model, lent)
    return True


def explain(model: Module) -> str:
    """Which plans a model was loaded with, and what runs eagerly, and why."""
    ahead = model._ahead
    if ahead is not None:
        return str(ahead.report())
    why = _refused.get(model)
    return why or f"{type(model).__name__} has no plans made ahead of time"


def _lend(model: Module, weights: Path) -> dict[int, _Lender]:
    """Let parameters and buffers take their values from a file when they are asked."""
    source, lent = _Weights(weights), dict[int, _Lender]()
    tabled = False
    for path, item in model.named_tensors():
        if item.persistent:
            lent[id(item)] = _Lender(source, path)
            item.lend(lent[id(item)])
        elif item.is_loaded:
            tabled = True
        else:
            item.held  # noqa: B018 (made now, so that it does not change later)
    if tabled:
        tables.restore(model, open_weights(weights))
    return lent


def _unfit(kind: type, manifest: Manifest, weights: Path) -> str:
    """Why a plan file is not of this class and these weights; "" where it is."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    if kind.__qualname__ != manifest.kind or Path(file).stem != weights.stem:
        return (
            f"it is of {manifest.kind} in {weights.stem}.py, not of {kind.__qualname__}"
        )
    try:
        source = Path(file).read_bytes()
    except OSError as error:
        return f"{file} cannot be read: {error.strerror}"
    if _lines(source) != _lines(manifest.source):
        return f"{file} has changed since it was planned"
    with weights.open("rb") as stream:
        header = stream.read(len(manifest.header))
        size = os.fstat(stream.fileno()).st_size
    if (header, size) != (manifest.header, manifest.size):
        return f"{weights} has changed since it was planned"
    return ""


def _lines(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n")


def _library(manifest: Manifest) -> Library | str:
    """The library that a plan file is for; why there is none.

    The environment's BURNISH_KERNELS before the one beside, and that before the one in
    the user's cache.
    """
    named = os.environ.get("BURNISH_KERNELS")
    beside = manifest.path.with_name(manifest.path.name.removesuffix(PLAN) + LIBRARY)
    file = Path(named) if named else beside
    if not named and not beside.is_file():
        found = built_before()
        if found is None:
            return f"there is no library of kernels {beside}"
        return _misfit(found, manifest) or found
    try:
        found = opened_once(file, manifest.library)
    except (KernelError, ImportError) as error:
        return str(error)
    return _misfit(found, manifest) or found


def _misfit(library: Library, manifest: Manifest) -> str:
    if (library.identity, library.width) != (manifest.library, manifest.width):
        return f"{library.file} is not the library that it was planned for"
    if not library.fits:
        return f"{library.file} was compiled for another processor"
    return ""


__all__ = ["LIBRARY", "PLAN", "Ahead", "Parts", "attach", "explain"]
