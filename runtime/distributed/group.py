"""Processes that train one model together, and what they do together.

Every process calls the same methods in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from burnish.backend import Array, Device, namespace, on_host
from burnish.distributed.message import decode, encode


class Group:
    """`size` processes, this one being number `rank`; alone unless a subclass.

    device: where this process should compute.
    """

    rank: int = 0
    size: int = 1
    in_graphs: bool = False
    """Whether `mean` can be part of a CUDA graph."""

    def __init__(self, device: Device | str = "cpu"):
        self.device = Device(device)

    def sum_array(self, array: Array) -> Array:
        """The sum of all processes' arrays, each contiguous, of one shape and dtype.

        All that an engine has to bring; the rest follows from it.
        """
        return array

    @property
    def is_first(self) -> bool:
        """Whether this process writes and shows what all of them do."""
        return self.rank == 0

    def gather(self, value: Any) -> list[Any]:
        """Every process's value; dicts, numbers, texts, None and host arrays."""
        if self.size == 1:
            return [value]
        data = np.frombuffer(encode(value), np.uint8)
        sizes = np.zeros(self.size, np.int64)
        sizes[self.rank] = data.size
        ends = on_host(self.sum_array(sizes)).cumsum()
        every = np.zeros(ends[-1], np.uint8)
        every[ends[self.rank] - data.size : ends[self.rank]] = data
        parts = np.split(on_host(self.sum_array(every)), ends[:-1])
        return [decode(part.tobytes()) for part in parts]

    def sum(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The sum of all processes' arrays; those of one dtype travel as one.

        All processes give the same names, shapes and dtypes.
        """
        if self.size == 1:
            return dict(arrays)
        kinds: dict[Any, list[str]] = {}
        for name in sorted(arrays):
            kinds.setdefault(arrays[name].dtype, []).append(name)
        summed: dict[str, Array] = {}
        for dtype, names in kinds.items():
            half = dtype.itemsize < 4 and dtype.kind in "fV"
            flat = [arrays[name].reshape(-1) for name in names]
            joined = namespace(*flat).concatenate(flat)
            total = self.sum_array(joined.astype(np.float32) if half else joined)
            start = 0
            for name in names:
                array = arrays[name]
                part = total[start : start + array.size].reshape(array.shape)
                summed[name] = part.astype(dtype, copy=False)
                start += array.size
        return summed

    def mean(self, arrays: Mapping[str, Array], count: int) -> Mapping[str, Array]:
        """The mean of all processes' arrays, each process's weighted by its count.

        Gradients by path, with the sizes of the processes' parts of a batch, become
        those of the whole batch. All processes give the same names, shapes and dtypes;
        the counts may differ, and their sum is above 0.
        """
        if self.size == 1:
            return arrays
        total = float(on_host(self.sum_array(np.array([count], np.float64)))[0])
        return self.sum({name: each * (count / total) for name, each in arrays.items()})

    def from_first(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The first process's arrays, bit for bit, for all of them."""
        if self.size == 1:
            return dict(arrays)
        bits = {}
        for name, array in arrays.items():
            xp = namespace(array)
            held = xp.ascontiguousarray(array).reshape(-1).view(np.uint8)
            bits[name] = held if self.is_first else xp.zeros_like(held)
        return {
            name: flat.view(arrays[name].dtype).reshape(arrays[name].shape)
            for name, flat in self.sum(bits).items()
        }
