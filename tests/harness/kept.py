"""Files that are slow to make, kept for this session and the next in pytest's cache."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import pickle
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, GetSetDescriptorType, ModuleType
from typing import Any

#: Set by conftest; without it nothing is kept.
FOLDER: Path | None = None
WEEK = 7 * 24 * 3600
TESTS = Path(__file__).resolve().parents[1]
#: Where networks are defined; none of them is made of the library that is tested.
NETWORKS = TESTS, TESTS.parent / "models"
_IMPORT = re.compile(rb"^(?:from|import) ([\w.]+)", re.MULTILINE)


def kept(of: object, path: Path, make: Callable[[], bool]) -> Path:
    """The file at `path` and those beside it with its name as prefix, made or copied.

    of: all that the files depend on, to be `fingerprint`ed. make: writes the files; its
    result says whether they may be kept.
    """
    key = fingerprint((of, path.name)) if FOLDER else None
    if FOLDER is None or key is None:
        make()
        return path
    entry = FOLDER / key
    if entry.is_dir():
        os.utime(entry)
        shutil.copytree(entry, path.parent, dirs_exist_ok=True)
    elif make():
        unfinished = Path(tempfile.mkdtemp(dir=FOLDER))
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, unfinished)
        try:
            unfinished.rename(entry)
        except OSError:  # another process was faster
            shutil.rmtree(unfinished)
    return path


def discard_old() -> None:
    """Remove what no session has used for a week."""
    for entry in FOLDER.iterdir() if FOLDER else ():
        if entry.stat().st_mtime < time.time() - WEEK:
            shutil.rmtree(entry, ignore_errors=True)


def fingerprint(value: object) -> str | None:
    """A digest of a value and of the code behind it; None if it cannot be pickled.

    Code of tests and of the gallery counts by its source, any other by its package's
    version.
    """
    file = io.BytesIO()
    try:
        _Digest(file).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RuntimeError):
        return None
    return hashlib.sha256(file.getvalue()).hexdigest()


class _Digest(pickle.Pickler):
    """Pickles code as its source with closures, tensors as digests of their numbers."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.seen: dict[object, int] = {}
        self.alive: list[object] = []  # an address names one object only

    def persistent_id(self, value: Any) -> object:
        if isinstance(value, ModuleType):
            return _source(value.__name__)
        if isinstance(value, type | FunctionType):
            return self._once(value, id(value), _code)
        if isinstance(value, staticmethod | classmethod):
            return type(value).__name__, value.__func__
        if isinstance(value, property):
            return "property", value.fget, value.fset, value.fdel
        if isinstance(value, set | frozenset):  # their order differs in each process
            return "set", sorted(map(repr, value))
        if type(value).__name__ == "GenerationConfig":  # it holds a hash of its text
            return value.to_json_string()
        if isinstance(value, _tensors()):
            kind = type(value), str(value.dtype), value.requires_grad
            view = value.data_ptr(), value.shape, value.stride()
            return kind, self._once(value, view, _numbers)
        return None

    def _once(
        self, value: Any, identity: object, describe: Callable[[Any], object]
    ) -> object:
        """A description, or where there was one: tied weights are not equal weights."""
        if identity in self.seen:
            return self.seen[identity]
        self.seen[identity] = len(self.seen)
        self.alive.append(value)
        return describe(value)


def _code(value: Any) -> object:
    """A function's or a class's name, source, place, and the values that it holds."""
    name = value.__module__, value.__qualname__, _source(value.__module__)
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        place = [*value.__code__.co_positions()]  # a line may have several lambdas
        return name, place, cells, value.__defaults__, value.__kwdefaults__
    if getattr(sys.modules[value.__module__], value.__qualname__, None) is value:
        return name
    held = {
        key: each
        for key, each in vars(value).items()
        if not isinstance(each, GetSetDescriptorType)
    }
    return name, value.__bases__, held


def _numbers(tensor: Any) -> object:
    held = tensor.detach().cpu().contiguous().flatten()
    numbers = held.view(sys.modules["torch"].uint8).numpy()
    digest = hashlib.sha256(numbers).hexdigest()
    return tuple(tensor.shape), tensor.stride(), digest


def _tensors() -> tuple[type, ...]:
    torch = sys.modules.get("torch")
    return (torch.Tensor,) if torch else ()


@functools.cache
def _source(name: str) -> str:
    """A digest of a module's text and of the modules that it uses, or a version."""
    if name not in sys.modules:
        raise pickle.PicklingError(f"{name} has no source")
    if not _ours(name):
        package = sys.modules[name.partition(".")[0]]
        return str(getattr(package, "__version__", sys.version))
    found: dict[str, bytes] = {}
    todo = [name]
    while todo:
        module = sys.modules[todo.pop()]
        if module.__name__ not in found:
            text = found[module.__name__] = Path(str(module.__file__)).read_bytes()
            used = {_module_of(each) for each in vars(module).values()}
            used |= {each.decode() for each in _IMPORT.findall(text)}  # for constants
            todo.extend(filter(_ours, used))
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


def _module_of(value: object) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    return str(getattr(value, "__module__", None))


def _ours(name: str) -> bool:
    file = getattr(sys.modules.get(name), "__file__", None)
    path = Path(file or "/").resolve()
    return any(map(path.is_relative_to, NETWORKS))
