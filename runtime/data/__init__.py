"""Datasets, and batches of them.

train, test = data.train_test_split(data.ArrayDataset(images, labels), test=0.2)
for x, y in data.batches(train, 64, shuffle=0): ...
"""

from burnish.data.batches import DataLoader, batches
from burnish.data.dataset import (
    ArrayDataset,
    Dataset,
    MappedDataset,
    Subset,
    train_test_split,
)
from burnish.data.idx import read_idx
from burnish.data.mnist import MnistDataset

__all__ = [
    "ArrayDataset",
    "DataLoader",
    "Dataset",
    "MappedDataset",
    "MnistDataset",
    "Subset",
    "batches",
    "read_idx",
    "train_test_split",
]
