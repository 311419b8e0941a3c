"""Texts with labels: a folder a class, and AG News."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from burnish.data.dataset import TableDataset, in_range
from burnish.data.sources.folders import labelled_files
from burnish.data.sources.table import read_csv
from burnish.errors import InputError, RecordError

Path = str | os.PathLike[str]


class TextFolderDataset:
    """A folder with one folder of `.txt` files a class: items are (text, label).

    Files are read when asked for. Raises RecordError for one that is not UTF-8.
    """

    def __init__(self, root: Path):
        self.items, self.classes = labelled_files(root, (".txt",))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int, /) -> tuple[str, np.int64]:
        path, label = self.items[in_range(index, self)]
        with open(path, "rb") as file:
            content = file.read()
        try:
            return content.decode("utf-8-sig"), np.int64(label)
        except UnicodeDecodeError as error:
            raise RecordError(
                f"{path}: expected UTF-8, got {content[error.start]:#04x} at byte "
                f"{error.start}"
            ) from None


class AgNewsDataset(TableDataset):
    """News in four classes: items are dicts of "title", "content" and "label", 0 to 3.

    folder: where `train.csv` and `test.csv` are, with rows of class (1 to 4), title and
    description.
    """

    classes = ("World", "Sports", "Business", "Sci/Tech")

    def __init__(self, folder: Path, split: Literal["train", "test"] = "train"):
        if split not in ("train", "test"):
            raise InputError(
                f"AgNewsDataset: expected 'train' or 'test', got {split!r}"
            )
        types: dict[str, Callable[[str], Any]] = {
            "label": class_from_1_to_4,
            "title": str,
            "content": str,
        }
        names = ["label", "title", "content"]
        path = os.path.join(folder, f"{split}.csv")
        table = read_csv(path, names=names, types=types)
        columns = table.columns
        super().__init__({name: columns[name] for name in [*names[1:], names[0]]})


def class_from_1_to_4(text: str) -> int:
    """The label of AG News's class, counted from 0."""
    if text not in {"1", "2", "3", "4"}:
        raise ValueError("not one of the four")
    return int(text) - 1
