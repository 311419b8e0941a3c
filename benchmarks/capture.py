"""A call of a module beside a run of its captured program; what Python takes of both.

python benchmarks/capture.py
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish import Tensor, nn, seed
from burnish.capture import capture

RNG = np.random.default_rng(0)
IDS = RNG.integers(0, 1000, (1, 16))


def floats(*shape: int) -> Tensor:
    return Tensor(RNG.standard_normal(shape, np.float32))


def gallery(name: str) -> nn.Module:
    return importlib.import_module(f"burnish.models.{name}.{name}").Model()


def rows() -> dict[str, tuple[Any, list[Tensor]]]:
    """What is called, and with what."""
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return {
        "MLP, 1 row": (net, [floats(1, 16)]),
        "MLP, 1024 rows": (net, [floats(1024, 16)]),
        "LSTM, 16 steps": (nn.LSTM(32, 32), [floats(16, 1, 32)]),
        "transformer layer, 16 words": (layer, [floats(1, 16, 64)]),
        "mnist": (gallery("mnist"), [floats(1, 28, 28)]),
        "minilm, 16 words": (
            gallery("minilm"),
            [Tensor(a) for a in (IDS, np.ones_like(IDS), np.zeros_like(IDS))],
        ),
    }


def least(function: Callable[..., Any], given: list[Tensor]) -> float:
    """The least time of many calls, in microseconds."""
    found, end = float("inf"), time.perf_counter() + 2
    while time.perf_counter() < end:
        start = time.perf_counter()
        function(*given)
        found = min(found, time.perf_counter() - start)
    return found * 1e6


def main() -> None:
    seed(0)
    print(f"{'':30}{'call':>10}{'program':>10}{'ratio':>8}{'calls':>7}")
    for name, (module, given) in rows().items():
        for learns in (False, True):
            made = module.fork("cpu:autodiff") if learns else module
            program = capture(made, *given)
            call, run = least(made, given), least(program, given)
            kind = f"{name}, recorded" if learns else name
            print(
                f"{kind:30}{call:10.1f}{run:10.1f}{call / run:8.2f}{len(program):7}",
                flush=True,
            )


if __name__ == "__main__":
    main()
