"""Datasets, views of them, where they come from, and batches of them.

train, test = data.train_test_split(data.ArrayDataset(images, labels), test=0.2)
for x, y in data.batches(train, 64, shuffle=0): ...
"""

from typing import TYPE_CHECKING

from burnish.data.batches import DataLoader, batches
from burnish.data.collate import as_lists, padded
from burnish.data.dataset import (
    ArrayDataset,
    BatchDataset,
    Dataset,
    FakeDataset,
    TableDataset,
    stack,
)
from burnish.data.sources.audio import (
    AudioFolderDataset,
    SpeechCommandsDataset,
    read_wav,
)
from burnish.data.sources.cifar import Cifar10Dataset, Cifar100Dataset
from burnish.data.sources.frame import DataframeDataset, read_parquet
from burnish.data.sources.huggingface import huggingface_dataset
from burnish.data.sources.idx import read_idx
from burnish.data.sources.images import ImageFolderDataset, channels_first
from burnish.data.sources.mnist import MnistDataset
from burnish.data.sources.picture import read_mask, read_picture
from burnish.data.sources.sqlite import SqliteDataset, SqliteWriter
from burnish.data.sources.table import read_csv, read_json_lines
from burnish.data.sources.text import AgNewsDataset, TextFolderDataset
from burnish.data.strategy import BatchStrategy, FixedBatches, LengthBatches
from burnish.data.transforms import (
    ConcatDataset,
    MappedDataset,
    SamplerDataset,
    ShuffledDataset,
    Subset,
    WindowsDataset,
    split,
    split_chunks,
    train_test_split,
)
from burnish.errors import DataError
from burnish.habits import missing

__all__ = [
    "AgNewsDataset",
    "ArrayDataset",
    "AudioFolderDataset",
    "BatchDataset",
    "BatchStrategy",
    "Cifar10Dataset",
    "Cifar100Dataset",
    "ConcatDataset",
    "DataError",
    "DataLoader",
    "DataframeDataset",
    "Dataset",
    "FakeDataset",
    "FixedBatches",
    "ImageFolderDataset",
    "LengthBatches",
    "MappedDataset",
    "MnistDataset",
    "SamplerDataset",
    "ShuffledDataset",
    "SpeechCommandsDataset",
    "SqliteDataset",
    "SqliteWriter",
    "Subset",
    "TableDataset",
    "TextFolderDataset",
    "WindowsDataset",
    "as_lists",
    "batches",
    "channels_first",
    "huggingface_dataset",
    "padded",
    "read_csv",
    "read_idx",
    "read_json_lines",
    "read_mask",
    "read_parquet",
    "read_picture",
    "read_wav",
    "split",
    "split_chunks",
    "stack",
    "train_test_split",
]

if not TYPE_CHECKING:  # checkers know what there is

    def __getattr__(name):
        raise missing("burnish.data", name, __all__)
