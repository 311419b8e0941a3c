"""Find generated files, and the model files that their headers name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from burnish.codegen.identifier import plain

_NOT_SOURCE = frozenset({"__pycache__", "node_modules", "site-packages"})


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


def find(
    name: str, sha256: str, tops: Iterable[Path], at_most: int = 20_000
) -> Iterator[Path]:
    """Files of this name and content below folders; stops after a number of files."""
    seen: set[Path] = set()
    for top in tops:
        for path in islice(walk(top), at_most):
            if shown_name(path) == name and path.resolve() not in seen:
                seen.add(path.resolve())
                if path.is_file() and digest(path) == sha256:
                    yield path
