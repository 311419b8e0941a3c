"""The error and the size of quantized parameters, one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnish.backend import namespace
from burnish.lowbit import Packed


@dataclass(frozen=True)
class Loss:
    """One parameter: what became of it.

    snr: signal to noise in decibels, 20 log10(|x| / |x - q|); 6 are about one bit.
    largest, mean: of the absolute errors. before, after: bytes.
    """

    path: str
    shape: tuple[int, ...]
    scheme: str
    snr: float
    largest: float
    mean: float
    before: int
    after: int

    @classmethod
    def of(cls, path: str, x: Any, packed: Packed) -> Loss:
        """The error of `packed` against the array x, which is not empty."""
        xp = namespace(x)
        wide = np.float64 if x.dtype == np.float64 else np.float32
        values = x.astype(wide, copy=False)
        error = xp.abs(values - packed.unpack().astype(wide, copy=False))
        noise = float((error * error).sum(dtype=np.float64))
        signal = float((values * values).sum(dtype=np.float64))
        snr = 10 * math.log10(signal / noise) if noise and signal else math.inf
        return cls(
            path,
            tuple(x.shape),
            str(packed.scheme),
            snr,
            float(error.max()),
            float(error.mean(dtype=np.float64)),
            x.nbytes,
            packed.nbytes,
        )


class Report:
    """Every quantized parameter's Loss, in the module's order; prints as a table.

    before, after: bytes of the whole module.
    """

    def __init__(self, losses: list[Loss], before: int, after: int):
        self.losses = losses
        self.before = before
        self.after = after

    def __getitem__(self, path: str) -> Loss:
        for loss in self.losses:
            if loss.path == path:
                return loss
        raise KeyError(path)

    @property
    def worst(self) -> Loss:
        """The parameter with the lowest signal to noise."""
        return min(self.losses, key=lambda loss: loss.snr)

    def __str__(self) -> str:
        head = ("parameter", "shape", "scheme", "SNR", "largest", "mean", "bytes")
        rows = [head]
        for loss in self.losses:
            rows.append(
                (
                    loss.path,
                    "x".join(map(str, loss.shape)),
                    loss.scheme,
                    f"{loss.snr:.1f} dB",
                    f"{loss.largest:.2g}",
                    f"{loss.mean:.2g}",
                    f"{loss.before:,} -> {loss.after:,}",
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(f"{cell:<{n}}" for cell, n in zip(row, widths, strict=True))
            for row in rows
        ]
        share = 100 * self.after / max(self.before, 1)
        total = f"whole module: {self.before:,} -> {self.after:,} bytes ({share:.1f} %)"
        return "\n".join([*map(str.rstrip, lines), total])
