"""A folder as transformers' `save_pretrained` writes it: config.json and weights."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burnish import serialize
from burnish._files import jsontext
from burnish._files.atomic import atomic_write
from burnish.errors import RecordError
from burnish.nn.core import tables
from burnish.nn.core.module import Module
from burnish.store.names import Renaming
from burnish.store.places import places
from burnish.store.save import collect

_WHOLE = "model.safetensors"
_INDEX = f"{_WHOLE}.index.json"
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_GENERATION = "generation_config.json"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_FORMAT = {"format": "pt"}  # transformers asks for it

Config = Mapping[str, Any] | str | os.PathLike[str] | None


def save_pretrained(
    module: Module,
    folder: str | os.PathLike[str],
    config: Config = None,
    *,
    max_shard_size: int | str = "50GB",
    rename: Renaming = (),
    precision: Any = None,
) -> None:
    """Write config.json and model.safetensors, for transformers' from_pretrained.

    config: the folder whose config.json (and generation_config.json) goes along, that
    file, or its values; None keeps the one that is in `folder`. max_shard_size: bytes,
    or "200MB"; more are written as shards with an index. rename, precision: as for
    `save`; the configuration's dtype says what is written.

    Every file appears whole or not at all, and weights that were in the folder before
    are replaced. Raises RecordError, before anything is written, for a configuration
    that is none and for quantized parameters, which transformers has no names for.
    """
    target = Path(folder)
    values, beside = _configuration(target if config is None else config)
    quantized = [p.path for p in places(module) if p.item.scheme is not None]
    if quantized:
        raise RecordError(
            f"{target}: expected plain numbers, {quantized[0]} is quantized; load the "
            f"weights from before, or use save_file"
        )
    state = collect(module, rename=rename, precision=precision)
    shards = _shards(state, _bytes(max_shard_size))
    floats = {a.dtype.name for a in state.values() if a.dtype.kind in "fV"}
    if len(floats) == 1:
        values["torch_dtype" if "torch_dtype" in values else "dtype"] = floats.pop()
    target.mkdir(parents=True, exist_ok=True)
    kept = tables.metadata(module)
    for number, (file, part) in enumerate(shards.items()):
        metadata = _FORMAT if number else {**kept, **_FORMAT}
        serialize.save_file(part, target / file, metadata)
    if len(shards) > 1:
        _write(target / _INDEX, _index(shards))
    _write(target / "config.json", values)
    if beside is not None:
        _write(target / _GENERATION, beside)
    for old in target.iterdir():  # what would be read in their place
        stale = _SHARD.fullmatch(old.name) or old.name in (_WHOLE, _INDEX)
        if stale and old.name not in shards and (old.name != _INDEX or len(shards) < 2):
            old.unlink()


def _configuration(config: Any) -> tuple[dict[str, Any], Any]:
    """The values of config.json, and those of generation_config.json beside it."""
    if isinstance(config, Mapping):
        return dict(config), None
    path, beside = Path(config), None
    if not path.is_file():
        other = path / _GENERATION
        beside = jsontext.read(other) if other.is_file() else None
        path /= "config.json"
    if not path.is_file():
        raise RecordError(
            f"{path}: expected the model's configuration, there is no such file; pass "
            f"config=, the folder that the model was generated from"
        )
    values = jsontext.read(path)
    if not isinstance(values, dict):
        raise RecordError(
            f"{path}: expected a JSON object, got {type(values).__name__}"
        )
    return values, beside


def _bytes(size: int | str) -> int:
    """A number of bytes, or a text such as "5GB" or "300MiB"."""
    if isinstance(size, int) and size > 0:
        return size
    found = _SIZE.fullmatch(str(size).strip())
    if found is None:
        raise RecordError(
            f"max_shard_size: expected a number of bytes or '5GB', got {size!r}"
        )
    power = _POWERS[found[2].upper()]
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


def _shards(state: Mapping[str, Any], most: int) -> dict[str, dict[str, Any]]:
    """The arrays by file, in their order; one that is larger has its own."""
    parts: list[dict[str, Any]] = [{}]
    held = 0
    for name, array in state.items():
        if parts[-1] and held + array.nbytes > most:
            parts.append({})
            held = 0
        parts[-1][name] = array
        held += array.nbytes
    if len(parts) == 1:
        return {_WHOLE: parts[0]}
    count = len(parts)
    return {
        f"model-{i:05}-of-{count:05}.safetensors": part
        for i, part in enumerate(parts, 1)
    }


def _index(shards: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    arrays = [array for part in shards.values() for array in part.values()]
    sizes = {
        "total_parameters": sum(array.size for array in arrays),
        "total_size": sum(array.nbytes for array in arrays),
    }
    files = {name: file for file, part in shards.items() for name in part}
    return {"metadata": sizes, "weight_map": dict(sorted(files.items()))}


def _write(path: Path, values: Any) -> None:
    with atomic_write(path) as file:
        text = json.dumps(values, indent=2, ensure_ascii=False)
        file.write(f"{text}\n".encode())
