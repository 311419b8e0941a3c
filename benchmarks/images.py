"""Epochs over a folder of pictures beside PyTorch's DataLoader.

    python benchmarks/images.py [--workers 0,2] [--rounds 7] [--only TEXT] [--own-time]

Files are made up in a temporary folder: PNG files as the image-folder example's, and
JPEG files the size of photographs on the web, resized while they are read. Both loaders
shuffle, turn each picture by quarters, mirror it, and give batches of 32 as float32
(batch, 3, height, width) from 0 to 1. PyTorch's dataset opens files with Pillow, too.
Burnish's workers are threads, PyTorch's are processes. "kept" means that workers stay
from one epoch to the next, as with `persistent_workers`; else their start is part of an
epoch. The batches without random changes are compared first. --own-time: the process's
own time, without what other processes of the machine take, for no workers.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from beside import Timing, limit_threads, measure, report
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from burnish import data
from burnish.models.examples.image_folder import make_up, turned

BATCH = 32


class Pictures(Dataset[Any]):
    """(picture, label) as a user of PyTorch and Pillow writes it."""

    def __init__(self, files: list[tuple[str, int]], size: int, turn: bool):
        self.files = files
        self.size = size
        self.turn = turn

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self.files[index]
        with Image.open(path) as file:
            picture = file.convert("RGB")
        if picture.size != (self.size, self.size):
            picture = picture.resize((self.size, self.size), Image.Resampling.BILINEAR)
        pixels = np.array(picture)
        if self.turn:
            draws = torch.randint(8, ()).item()
            pixels = np.rot90(pixels, draws % 4)
            if draws >= 4:
                pixels = pixels[:, ::-1]
        image = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))
        return image.to(torch.float32).div_(255), label


def photographs(folder: Path, count: int) -> None:
    """Write `count` JPEG files of 375 x 500: smooth colours with some noise."""
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize((500, 375), Image.Resampling.BICUBIC))
        pixels = smooth + rng.normal(0, 6, smooth.shape)
        path = folder / "ab"[number % 2] / f"{number:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path, quality=90)


def ours(folder: Path, size: int, workers: int, turn: bool = True) -> data.DataLoader:
    pictures = data.ImageFolderDataset.classification(folder, size=(size, size))
    return data.batches(
        pictures,
        BATCH,
        shuffle=0 if turn else None,
        augment=turned if turn else None,
        batcher=data.channels_first,
        num_workers=workers,
    )


def theirs(
    folder: Path, size: int, workers: int, turn: bool = True, kept: bool = False
) -> DataLoader[Any]:
    files = data.ImageFolderDataset.classification(folder).items
    pictures = Pictures([(path, int(label)) for path, label in files], size, turn)
    return DataLoader(
        pictures, BATCH, turn, num_workers=workers, persistent_workers=kept
    )


def epoch(loader: Any) -> int:
    """The number of pictures of an epoch, each batch read."""
    return sum(len(labels) for _, labels in loader)


def check(folder: Path, size: int) -> None:
    pairs = zip(
        ours(folder, size, 0, False), theirs(folder, size, 0, False), strict=True
    )
    for (images, labels), (expected, classes) in pairs:
        np.testing.assert_allclose(images.numpy(), expected.numpy(), rtol=1e-6)
        np.testing.assert_array_equal(labels.numpy(), classes.numpy())


def rows(folder: Path, options: argparse.Namespace) -> Iterator[Timing]:
    clock = time.process_time if options.own_time else time.perf_counter
    timed = partial(measure, rounds=options.rounds, clock=clock)
    kinds = (("600 PNG files of 32 x 32", make_up, 600, 32),)
    kinds += (("96 JPEG files of 375 x 500 to 224", photographs, 96, 224),)
    for title, make, count, size in kinds:
        if options.only not in title:
            continue
        place = folder / str(size)
        make(place, count)
        check(place, size)
        for workers in map(int, options.workers.split(",")):
            loaders = ours(place, size, workers), theirs(place, size, workers)
            name = f"{title}, workers {workers}"
            yield timed(name, *(partial(epoch, loader) for loader in loaders))
            if workers:
                kept = theirs(place, size, workers, kept=True)
                with loaders[0]:
                    runs = (partial(epoch, loader) for loader in (loaders[0], kept))
                    yield timed(f"{name}, kept", *runs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", default="0,2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--own-time", action="store_true")
    options = parser.parse_args()
    limit_threads(1)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        report(rows(Path(folder), options))


if __name__ == "__main__":
    main()
