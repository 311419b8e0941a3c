"""Find generated files, and the model files that their headers name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from burnish.codegen.identifier import plain
from burnish.errors import RecordError
from burnish.serialize import open_weights

_NOT_SOURCE = frozenset({"__pycache__", "node_modules", "site-packages"})


_SAMPLE = 16  # values at a tensor's beginning and end: training changes them


def walk(top: Path) -> Iterator[Path]:
    """Files below `top`; hidden folders and virtual environments are left out."""
    for folder, subfolders, files in os.walk(top):
        if "pyvenv.cfg" in files and Path(folder) != top:
            subfolders.clear()
            continue
        subfolders[:] = sorted(
            name
            for name in subfolders
            if not name.startswith(".") and name not in _NOT_SOURCE
        )
        yield from (Path(folder, name) for name in sorted(files))


def shown_name(path: Path) -> str:
    """A file's name as the docstrings of generated files have it."""
    return " ".join(plain(path.name).split())


def digest(path: Path) -> str:
    """The file's sha256, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def identity(path: Path) -> str:
    """The sha256 that tells a model from others: that of its file.

    For a folder's config.json that of the file and of each tensor beside it: name,
    dtype, shape and a few values, so that weights of any size are told apart at once.
    """
    if path.name != "config.json":
        return digest(path)
    try:
        weights = open_weights(path.parent)
        held = hashlib.sha256(path.read_bytes())
        for name in sorted(weights):
            tensor = weights[name]
            held.update(f"{name} {tensor.dtype} {tensor.shape}\n".encode())
            if not tensor.is_quantized:
                values = tensor.read().flat
                held.update(values[:_SAMPLE].tobytes() + values[-_SAMPLE:].tobytes())
    except (OSError, RecordError):  # no weights, or none that can be read
        return digest(path)
    return held.hexdigest()


def find(
    name: str, sha256: str, tops: Iterable[Path], at_most: int = 20_000
) -> Iterator[Path]:
    """Files of this name and content below folders; stops after a number of files."""
    seen: set[Path] = set()
    for top in tops:
        for path in islice(walk(top), at_most):
            if shown_name(path) == name and path.resolve() not in seen:
                seen.add(path.resolve())
                if path.is_file() and identity(path) == sha256:
                    yield path
