"""Find generated files, and the model files that their headers name."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np

from burnish.codegen.names.identifier import plain
from burnish.errors import RecordError
from burnish.serialize import LazyTensor, open_weights

_NOT_SOURCE = frozenset({"__pycache__", "node_modules", "site-packages"})


_LOCATION = re.compile(rb"\n\x08location\x12[\x01-\x7f]")
"""How a protobuf file begins the name of an external file: its length comes last."""

_PIECE, _REACH = 1 << 20, 256
"""Bytes that are looked at together, and more than a name and what begins it take."""

_TOGETHER = 1000
"""Tensors that are hashed at a time."""


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


def identity(path: Path, weights: Mapping[str, LazyTensor] | None = None) -> str:
    """The sha256 that tells a model from others: that of its file.

    Weights in other files count too: external data of an ONNX
    file, the shards of an index, and for a folder's config.json every tensor beside it:
    `weights`, where they are open already.
    """
    sharded = path.name.endswith(".index.json")
    if path.name != "config.json" and not sharded:
        own, external = _own_and_external(path)
        return _joined([own, *map(digest, external)]) if external else own
    try:
        weights = weights or open_weights(path if sharded else path.parent)
        return _joined([digest(path), *_of_tensors(weights)])
    except (OSError, RecordError):  # no weights, or none that can be read
        return digest(path)


def _of_tensors(weights: Mapping[str, LazyTensor]) -> Iterator[str]:
    """Of each tensor, by name; some at a time, as a pool keeps a kilobyte of each."""
    names = iter(sorted(weights))
    with ThreadPoolExecutor() as pool:  # hashing leaves Python's lock
        while some := [(name, weights[name]) for name in islice(names, _TOGETHER)]:
            yield from pool.map(_of_tensor, some)


def _of_tensor(named: tuple[str, LazyTensor]) -> str:
    name, tensor = named
    held = hashlib.sha256(f"{name} {tensor.dtype} {tensor.shape}\n".encode())
    if not tensor.is_quantized:
        held.update(np.ascontiguousarray(tensor.read()).reshape(-1).view(np.uint8).data)
    return held.hexdigest()


def _joined(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _own_and_external(path: Path) -> tuple[str, list[Path]]:
    """A file's sha256, and the files beside it that it says its weights are in.

    Only files in its folder are opened. Nothing is parsed: `check` is quick.
    """
    own, found, rest = hashlib.sha256(), set(), b""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            own.update(piece)
            data = rest + piece
            for match in _LOCATION.finditer(data):
                start = match.end()
                if (end := start + data[start - 1]) <= len(data):
                    found.add(data[start:end])
            rest = data[-_REACH:]
    folder = path.parent.resolve()
    files = [folder / os.fsdecode(name) for name in sorted(found) if b"\0" not in name]
    return own.hexdigest(), [
        file
        for file in files
        if file.is_file() and file.resolve().is_relative_to(folder)
    ]


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
