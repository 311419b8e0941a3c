"""Processes with a GPU each over NCCL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from burnish.backend import Array, Device
from burnish.backend.cuda.elementwise.casts import packed
from burnish.backend.cuda.graphs import live
from burnish.backend.nccl import communicator
from burnish.distributed.group import Group


class NcclGroup(Group):
    """Process `rank` of `size`; arrays go from GPU to GPU.

    See `burnish.backend.nccl.communicator` for how the processes find one another.
    """

    in_graphs = True

    def __init__(self, rank: int, size: int):
        self.rank, self.size = rank, size
        index, self._all = communicator(rank, size)
        self.device = Device(f"cuda:{index}")

    def sum_array(self, array: Array) -> Array:
        held = self.device.xp.ascontiguousarray(self.device.put(array))
        total = self.device.xp.empty_like(held)
        self._all.sum_into(total, held)
        return total

    def mean(self, arrays: Mapping[str, Array], count: int) -> dict[str, Array]:
        """As `Group.mean`; nothing waits for the GPU, so a CUDA graph may have it.

        Arrays of one precision travel as one. Those of half precision are summed in
        float32, which the means have. A graph that skips an overflow of one process's
        gradients does so in all of them. Graphs and plain calls sum the same arrays:
        parts of a batch may be of other sizes, and one of them empty.
        """
        places, xp = live.numbers(), self.device.xp
        skips = None if places is None else places.skips
        sums = xp.full(2, count, np.float64)  # of items, and of overflows
        sums[1] = 0 if skips is None else skips.overflow[0]
        self._all.sum_into(sums, sums)
        if skips is not None:
            skips.overflow[:1] = sums[1:].astype(np.int32)
        weight = count / sums[:1]
        kinds: dict[Any, list[str]] = {}
        for name in sorted(arrays):
            is_double = arrays[name].dtype == np.float64
            kinds.setdefault(np.float64 if is_double else np.float32, []).append(name)
        found: dict[str, Array] = {}
        for dtype, names in kinds.items():
            given = [arrays[name] for name in names]
            whole, parts = packed(given, dtype, weight)
            if whole.size:
                self._all.sum_into(whole, whole)
            found |= zip(names, parts, strict=True)
        return found
