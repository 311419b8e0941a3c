"""Datasets that worker processes load, which import this file and no test's."""

from __future__ import annotations

import os
import time

import numpy as np


class Squares:
    """Item i is (i * i as an array, its name); some fail."""

    def __init__(self, count=23, bad=None, size=3):
        self.count = count
        self.bad = bad
        self.size = size

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index == self.bad:
            raise Damaged(f"file {index}.png", "truncated")
        return {"x": np.full(self.size, index * index), "name": f"item {index}"}


class Damaged(Exception):
    def __init__(self, path, why):
        super().__init__(f"{path}: {why}")


class Ends(Squares):
    def __getitem__(self, index):
        os._exit(3)


class Slow(Squares):
    def __getitem__(self, index):
        time.sleep(0.02)
        return super().__getitem__(index)


def jitter(item, rng):
    return item | {"noise": rng.normal(size=2), "seen": rng.integers(1000)}


def wrong_batcher(fields):
    return fields["y"]
