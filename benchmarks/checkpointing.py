"""Memory and time of a deep network's gradients: `python benchmarks/checkpointing.py`.

Ratios to keeping everything, in one run: memory by tracemalloc, which NumPy reports to,
time as the best of several.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from burnish import Tensor, nn, ops
from burnish.checkpointing import checkpoint


class Block(nn.Module):
    """(N, size) -> the same: a transformer's feed-forward part"""

    def __init__(self, size: int):
        self.norm = nn.LayerNorm(size)
        self.fc1 = nn.Linear(size, 4 * size)
        self.fc2 = nn.Linear(4 * size, size)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.drop(self.fc2(ops.gelu(self.fc1(self.norm(x)))))


class Network(nn.Module):
    """Many blocks, one after another."""

    def __init__(self, depth: int, size: int, checkpointed: bool):
        self.blocks = [Block(size) for _ in range(depth)]
        self.checkpointed = checkpointed

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = checkpoint(block, x) if self.checkpointed else block(x)
        return x


WAYS = {
    "everything kept": ("cpu:autodiff", False),
    "balanced": ("cpu:autodiff:balanced", False),
    "blocks again": ("cpu:autodiff", True),
    "blocks again, balanced": ("cpu:autodiff:balanced", True),
}


def peak(step: Callable[[], object]) -> int:
    """The most bytes that one step held."""
    tracemalloc.start()
    step()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def best(step: Callable[[], object], times: int) -> float:
    """The shortest of several steps, in seconds."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, default=24)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    whole: tuple[float, float] | None = None
    for name, (device, checkpointed) in WAYS.items():
        network = Network(options.depth, options.size, checkpointed).to(device)
        x = Tensor(np.ones((options.rows, options.size), np.float32), device=device)

        def step(network: Network = network, x: Tensor = x) -> object:
            return network(x).sum().backward()

        step()
        memory, seconds = peak(step), best(step, options.times)
        whole = whole or (memory, seconds)
        print(
            f"{name:24} {memory / 2**20:7.1f} MB {memory / whole[0]:5.2f}   "
            f"{seconds * 1e3:7.1f} ms {seconds / whole[1]:5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
