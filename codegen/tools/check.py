"""Are generated files up to date with the model files that their docstrings name?"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from burnish.codegen.errors import UsageError
from burnish.codegen.identifier import plain

_HEADER = re.compile(
    r"Imported from (?P<model>.+?) \((?:opset \d+|[\w-]+)\), sha256 "
    r"(?P<sha256>[0-9a-f]{64});(?:.*?; options: (?P<options>[^.]*)\.)?"
)
_NOT_SOURCE = frozenset({"__pycache__", "node_modules", "site-packages"})


@dataclass(frozen=True)
class Header:
    """What the docstring of a generated file says about its origin."""

    model: str  #: the model file's name, without its folder, as a docstring has it
    sha256: str
    options: str  #: as the command line has them


@dataclass(frozen=True)
class Result:
    """One generated file and its state."""

    path: Path
    model: str
    state: Literal["current", "stale", "missing", "unreadable"]
    reason: str = ""


def check(paths: Sequence[Path], source: Path) -> Iterator[Result]:
    """The state of every generated file among and below `paths`, in their order.

    source: the folder below which model files are looked for when they do not lie
    beside the generated file. Raises UsageError for a path that does not exist.
    """
    for path in (*paths, source):
        if not path.exists():
            raise UsageError(f"{path}: expected a file or folder, there is none")
    found = list(_generated(paths))
    models = _locate({h.model for _, h in found if h}, source)
    for path, header in found:
        yield _state(path, header, models)


def header_of(path: Path) -> Header | None:
    """What a generated file says of itself; None when Burnish did not write it.

    Raises SyntaxError when the file looks generated but is not Python any more.
    """
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return None
    if "Imported from" not in text or "sha256" not in text:
        return None
    docstring = ast.get_docstring(ast.parse(text)) or ""
    match = _HEADER.search(" ".join(docstring.split()))
    if match is None:
        return None
    return Header(match["model"], match["sha256"], match["options"] or "")


def is_generated(path: Path) -> bool:
    """Whether Burnish wrote this file, as far as its text tells."""
    try:
        return header_of(path) is not None
    except (SyntaxError, ValueError):
        return False


def _generated(paths: Iterable[Path]) -> Iterator[tuple[Path, Header | None]]:
    seen = set()
    for path in _sources(paths):
        if (resolved := path.resolve()) in seen:
            continue
        seen.add(resolved)
        try:
            header = header_of(path)
        except (SyntaxError, ValueError, OSError):
            yield path, None
            continue
        if header is not None:
            yield path, header


def _sources(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (p for p in _walk(path) if p.suffix == ".py")
        else:
            yield path


def _walk(top: Path) -> Iterator[Path]:
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


def _locate(names: set[str], source: Path) -> dict[str, list[Path]]:
    """Where files with these names lie below `source`."""
    places: dict[str, list[Path]] = {}
    if names:
        for path in _walk(source):
            if (key := shown_name(path)) in names:
                places.setdefault(key, []).append(path)
    return places


def shown_name(path: Path) -> str:
    """A file's name as the docstrings of generated files have it."""
    return " ".join(plain(path.name).split())


def _state(path: Path, header: Header | None, models: dict[str, list[Path]]) -> Result:
    if header is None:
        return Result(path, "", "unreadable", "no longer valid Python")
    places = list(models.get(header.model, ()))
    beside = (p for p in path.parent.iterdir() if shown_name(p) == header.model)
    places[:0] = [p for p in beside if p.is_file()]
    own = path.with_suffix(".safetensors")
    places = [p for p in places if p != own] or places  # its weights, of that name too
    if not places:
        return Result(path, header.model, "missing", f"{header.model} was not found")
    for place in places:
        with place.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == header.sha256:
                return Result(path, header.model, "current")
    return Result(path, header.model, "stale", f"{places[0]} has changed")
