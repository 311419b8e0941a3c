"""A pytest plugin: keeps every model that a test generates from, in $BURNISH_CORPUS.

A file is kept once, by its content; beside it the files that it refers to.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx

from burnish.codegen import pipeline
from tests.corpus.digests import INDEX

_LARGE = 256 * 1024 * 1024
"""Bytes of a file that is left out: a corpus is copied and read often."""


def add(
    folder: Path, path: Path, options: pipeline.Options, name: str | None = None
) -> None:
    """Copy a model into the corpus; name: by default its content's digest."""
    files = list(_parts(path))
    if sum(file.stat().st_size for file in files) > _LARGE:
        return
    content = hashlib.sha256()
    for file in files:
        content.update(file.name.encode() + b"\0" + file.read_bytes())
    key = content.hexdigest()[:16]
    place = folder / key
    top = path if path.is_dir() else path.parent
    for file in files:
        copy = place / path.name / file.relative_to(top)
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
    end = Path(key, path.name) if path.is_dir() else Path(key, path.name, path.name)
    given = {k: v for k, v in asdict(options).items() if v != _DEFAULTS[k]}
    words = "".join(f" {k}={v}" for k, v in given.items())
    line = json.dumps([(name or f"{path.name} {key}") + words, str(end), given])
    with (folder / INDEX).open("a") as index:
        index.write(line + "\n")


_DEFAULTS = asdict(pipeline.Options())


def _parts(path: Path) -> Iterable[Path]:
    """The files of a model: a folder's, or the file and those that it refers to."""
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file())
    if path.name.endswith(".index.json"):
        held = set(json.loads(path.read_text())["weight_map"].values())
        return [path, *(path.parent / name for name in sorted(held))]
    if path.suffix == ".onnx":
        model = onnx.load(path, load_external_data=False)
        tensors = onnx.external_data_helper._get_all_tensors(model)
        held = {
            entry.value
            for tensor in tensors
            for entry in tensor.external_data
            if entry.key == "location"
        }
        return [path, *(path.parent / name for name in sorted(held))]
    return [path]


def _recording(generate: Any, folder: Path) -> Any:
    @functools.wraps(generate)
    def recorded(path: Any, options: Any = None, **named: Any) -> Any:
        made = generate(path, options, **named)  # a file that is refused is not kept
        if not named.get("template_dir"):
            add(folder, Path(path), options or pipeline.Options())
        return made

    return recorded


def pytest_configure() -> None:
    """Wrap `generate` before tests import it."""
    if place := os.environ.get("BURNISH_CORPUS"):
        folder = Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        pipeline.generate = _recording(pipeline.generate, folder)
