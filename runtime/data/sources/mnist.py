"""MNIST: 28 x 28 images of digits, from the four IDX files it comes in."""

from __future__ import annotations

import os
from typing import Literal

import numpy as np

from burnish.data.dataset import ArrayDataset
from burnish.data.sources.idx import read_idx
from burnish.errors import InputError, RecordError

_FILES = {"train": "train", "test": "t10k"}


class MnistDataset(ArrayDataset):
    """Items are (image, label): uint8 (28, 28) and int64.

    folder: where `train-images-idx3-ubyte` and its like are, also with `.gz`.
    """

    def __init__(
        self, folder: str | os.PathLike[str], split: Literal["train", "test"] = "train"
    ):
        if split not in _FILES:
            raise InputError(f"MnistDataset: expected 'train' or 'test', got {split!r}")
        self.images = _load(folder, f"{_FILES[split]}-images-idx3-ubyte", 3)
        labels = _load(folder, f"{_FILES[split]}-labels-idx1-ubyte", 1)
        self.labels = labels.astype(np.int64)
        if len(self.images) != len(self.labels):
            raise RecordError(
                f"{os.fspath(folder)}: expected as many labels as images, got "
                f"{len(self.labels)} and {len(self.images)}"
            )
        super().__init__(self.images, self.labels)


def _load(folder: str | os.PathLike[str], name: str, axes: int) -> np.ndarray:
    plain = os.path.join(folder, name)
    path = plain if os.path.exists(plain) else f"{plain}.gz"
    array = read_idx(path)
    if array.dtype != np.uint8 or array.ndim != axes:
        raise RecordError(
            f"{path}: expected bytes with {axes} axes, got {array.dtype} {array.shape}"
        )
    return array


def normalized(images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A batcher: images to float32 of mean 0 and deviation 1 over MNIST."""
    return (images.astype(np.float32) / 255 - 0.1307) / 0.3081, labels
