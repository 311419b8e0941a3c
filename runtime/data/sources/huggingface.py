"""Datasets of the Hugging Face hub: folders of their Parquet files, or ids."""

from __future__ import annotations

import os
from typing import Any

from burnish.data.dataset import Dataset
from burnish.data.sources.audio import read_wav
from burnish.data.sources.frame import read_parquet
from burnish.data.sources.picture import read_picture
from burnish.data.transforms import MappedDataset
from burnish.errors import InputError, RecordError

Path = str | os.PathLike[str]

_SOUNDS = (b"fLaC", b"OggS", b"ID3")  # FLAC, Ogg, MP3


def huggingface_dataset(
    source: Path, split: str = "train", name: str | None = None, **options: Any
) -> Dataset[dict[str, Any]]:
    """The rows of a split as dicts.

    source: a folder of Parquet files (`hf download --repo-type dataset` makes one), for
    which polars is enough, or an id of the hub, which needs the package `datasets`;
    name: the configuration, a folder inside the first or a name of the second; options:
    `datasets.load_dataset`'s, such as `token` and `cache_dir`. Pictures come as uint8
    (height, width, channels), WAV sounds as float32 (channels, n).
    """
    path = os.fspath(source)
    if os.path.isdir(path):
        if options:
            raise InputError(
                "huggingface_dataset: expected no options for a folder, got "
                f"{', '.join(options)}"
            )
        rows = read_parquet(os.path.join(path, name or ""), split)
        return MappedDataset(rows, _decoded) if _has_media(rows.frame) else rows
    if os.path.isabs(path) or path.startswith("."):
        raise FileNotFoundError(
            f"{path}: expected a folder of Parquet files, got nothing"
        )
    try:
        import datasets
    except ImportError:
        raise InputError(
            f"huggingface_dataset: expected a folder, or for {path!r} the package "
            "datasets; pip install datasets"
        ) from None
    found: Any = datasets.load_dataset(path, name, split=split, **options)
    hub: Dataset[dict[str, Any]] = found.with_format("numpy")
    return hub


def _has_media(frame: Any) -> bool:
    return any(_media_fields(kind) for kind in frame.schema.values())


def _media_fields(kind: Any) -> bool:
    """Whether a column has files, which the hub keeps as {"bytes", "path"}."""
    fields = getattr(kind, "fields", ())
    return {field.name for field in fields} == {"bytes", "path"}


def _decoded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _media(name, value) for name, value in row.items()}


def _media(name: str, value: Any) -> Any:
    if not isinstance(value, dict) or value.keys() != {"bytes", "path"}:
        return value
    content, path = value["bytes"], value["path"]
    if content is None:
        return None
    where = f"column {name!r}, {path or 'without a path'}"
    if content[:4] == b"RIFF" and content[8:12] == b"WAVE":
        return read_wav(content, where=where)[0]
    if content.startswith(_SOUNDS):
        raise RecordError(
            f"{where}: expected a picture or a WAV file, got sound in another format; "
            "store it as WAV"
        )
    return read_picture(content, where=where)
