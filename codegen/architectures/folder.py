"""The weights of a folder as transformers saves them, one file or several."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from burnish import serialize
from burnish.codegen.errors import ReadError

_SINGLE = ("model.safetensors", "pytorch_model.bin")


@dataclass(frozen=True)
class Stored:
    """A tensor of the folder; its values are read when they are written."""

    dtype: str
    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]


def is_model_folder(path: Path) -> bool:
    """Whether a path is a folder with a configuration, as transformers saves it."""
    return (path / "config.json").is_file()


def tensors(folder: Path) -> dict[str, Stored]:
    """Every tensor of the folder by name; safetensors go before PyTorch's files."""
    found: dict[str, Stored] = {}
    for file in _files(folder):
        for name, array in serialize.load_file(file).items():
            found[name] = Stored(array.dtype.name, array.shape, partial(_same, array))
    return found


def _same(array: np.ndarray) -> np.ndarray:
    return array


def _files(folder: Path) -> list[Path]:
    for name in _SINGLE:
        if (folder / name).is_file():
            return [folder / name]
        index = folder / f"{name}.index.json"
        if index.is_file():
            return _shards(index)
    raise ReadError(
        f"{folder}: expected weights beside config.json, in {' or '.join(_SINGLE)} "
        f"or their shards, there are none"
    )


def _shards(index: Path) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
        files = [index.parent / name for name in names]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReadError(
            f"{index}: expected a JSON object with a weight_map, got {error!r}"
        ) from None
    for file in files:
        if file.parent != index.parent:
            raise ReadError(f"{index}: expected files of the same folder, got {file}")
        if not file.is_file():
            raise ReadError(f"{index}: expected the shard {file.name}, there is none")
    return files
