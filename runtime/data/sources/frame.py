"""Data frames of polars as datasets, and folders of Parquet files as data frames."""

from __future__ import annotations

import glob
import os
from typing import Any

import numpy as np

from burnish.data.dataset import in_range
from burnish.errors import InputError, RecordError

Path = str | os.PathLike[str]


class DataframeDataset:
    """The rows of a polars DataFrame as dicts. Columns of arrays give arrays."""

    def __init__(self, frame: Any):
        polars = import_polars("DataframeDataset")
        if not isinstance(frame, polars.DataFrame):
            raise InputError(
                "DataframeDataset: expected a polars.DataFrame, got "
                f"{type(frame).__module__}.{type(frame).__name__} (polars.from_pandas "
                "and LazyFrame.collect make one)"
            )
        self.frame = frame
        self._arrays = {
            name
            for name, kind in frame.schema.items()
            if isinstance(kind, polars.Array)
        }
        self._plain = self._arrays | {
            name
            for name, kind in frame.schema.items()
            if kind.is_numeric() or kind == polars.Boolean
        }

    def __len__(self) -> int:
        return int(self.frame.height)

    def __getitem__(self, index: int, /) -> dict[str, Any]:
        row = self.frame.row(in_range(index, self), named=True)
        return {
            name: np.asarray(value) if name in self._arrays else value
            for name, value in row.items()
        }

    def get_batch(self, indices: np.ndarray) -> dict[str, Any]:
        """The rows of a batch: an array for a column of numbers or arrays, else a list.

        Missing values among numbers are NaN.
        """
        rows = self.frame[indices]
        return {
            name: rows[name].to_numpy() if name in self._plain else rows[name].to_list()
            for name in rows.columns
        }


def read_parquet(path: Path, split: str | None = None) -> DataframeDataset:
    """A Parquet file, or those of a folder that belong to `split`, in order of name.

    A folder is laid out as Hugging Face's are: `train-00000-of-00002.parquet`,
    `data/train.parquet` or `train/0000.parquet`, at any depth.
    """
    polars = import_polars("read_parquet")
    files = _files(os.fspath(path), split)
    frames = []
    for file in files:
        try:
            frames.append(polars.read_parquet(file))
        except (polars.exceptions.PolarsError, OSError) as error:
            raise RecordError(
                f"{file}: expected a Parquet file, got damage: {error}"
            ) from None
        if frames[-1].schema != frames[0].schema:
            raise RecordError(
                f"{file}: expected columns {dict(frames[0].schema)}, as in {files[0]}, "
                f"got {dict(frames[-1].schema)}"
            )
    return DataframeDataset(polars.concat(frames))


def _files(path: str, split: str | None) -> list[str]:
    if not os.path.isdir(path):
        if not os.path.exists(path):
            raise FileNotFoundError(f"{path}: expected Parquet files, got nothing")
        return [path]
    pattern = os.path.join(glob.escape(path), "**", "*.parquet")
    found = sorted(glob.glob(pattern, recursive=True))
    chosen = [file for file in found if split is None or split == _split(file, path)]
    if not chosen:
        splits = sorted({_split(file, path) for file in found})
        raise FileNotFoundError(
            f"{path}: expected Parquet files of {split or 'any split'!r}, got those of "
            f"{splits}"
        )
    return chosen


def _split(file: str, root: str) -> str:
    """The split a file belongs to: its name up to "-", or its folder for a number."""
    folder, name = os.path.split(os.path.relpath(file, root))
    stem = name.removesuffix(".parquet").split("-")[0]
    if stem.isdigit() or stem == "part":
        return os.path.basename(folder)
    return stem


def import_polars(who: str) -> Any:
    """polars, or an error that says how to get it."""
    try:
        import polars
    except ImportError:
        raise InputError(
            f"{who}: expected the package polars; pip install 'burnish[data]'"
        ) from None
    return polars
