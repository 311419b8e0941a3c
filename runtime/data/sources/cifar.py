"""CIFAR-10 and CIFAR-100: 32 x 32 pictures, from the binary version's files.

Format: records of one label byte (CIFAR-100: coarse label, fine label) and 3072
bytes of pixels, channel by channel (cs.toronto.edu/~kriz/cifar.html).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np

from burnish.data.dataset import ArrayDataset
from burnish.errors import InputError, RecordError

Path = str | os.PathLike[str]
Split = Literal["train", "test"]
_PIXELS = 3 * 32 * 32


class Cifar10Dataset(ArrayDataset):
    """Items are (image, label): uint8 (32, 32, 3) and int64.

    folder: where `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin` are, or
    the folder above, as unpacked.
    """

    def __init__(self, folder: Path, split: Split = "train"):
        files = {
            "train": [f"data_batch_{i}.bin" for i in range(1, 6)],
            "test": ["test_batch.bin"],
        }
        records = _records(folder, "cifar-10-batches-bin", files, split, [10])
        self.images, self.labels = _images(records), records[:, 0].astype(np.int64)
        super().__init__(self.images, self.labels)


class Cifar100Dataset(ArrayDataset):
    """Items are (image, label): uint8 (32, 32, 3) and int64.

    folder: where `train.bin` and `test.bin` are, or the folder above, as unpacked;
    coarse: labels are the 20 groups instead of the 100 classes.
    """

    def __init__(self, folder: Path, split: Split = "train", *, coarse: bool = False):
        files = {"train": ["train.bin"], "test": ["test.bin"]}
        records = _records(folder, "cifar-100-binary", files, split, [20, 100])
        self.images = _images(records)
        self.labels = records[:, 0 if coarse else 1].astype(np.int64)
        super().__init__(self.images, self.labels)


def _records(
    folder: Path,
    unpacked: str,
    files: dict[str, list[str]],
    split: Split,
    classes: Sequence[int],
) -> np.ndarray:
    """uint8 (n, labels + pixels); `classes` limits each label."""
    if split not in files:
        raise InputError(f"CIFAR: expected 'train' or 'test', got {split!r}")
    inner = os.path.join(folder, unpacked)
    root = inner if os.path.isdir(inner) else os.fspath(folder)
    return np.concatenate(
        [_file(os.path.join(root, name), classes) for name in files[split]]
    )


def _file(path: str, classes: Sequence[int]) -> np.ndarray:
    length = len(classes) + _PIXELS
    content = np.fromfile(path, np.uint8)
    whole, rest = divmod(content.size, length)
    if rest or not whole:
        raise RecordError(
            f"{path}: expected records of {length} bytes, got {content.size} bytes: "
            f"{whole} records and {rest} bytes"
        )
    records = content.reshape(whole, length)
    for place, limit in enumerate(classes):
        if (wrong := np.flatnonzero(records[:, place] >= limit)).size:
            raise RecordError(
                f"{path}: expected labels below {limit}, got "
                f"{records[wrong[0], place]} in record {wrong[0]}"
            )
    return records


def _images(records: np.ndarray) -> np.ndarray:
    pixels = records[:, -_PIXELS:].reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))
