"""Metrics of images (batch, channels, height, width) and of masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from burnish.errors import InputError
from burnish.learner.metric.base import Compared, Statistics, percent, ratio

_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


@dataclass(frozen=True)
class Dice(Compared):
    """Twice the overlap of two masks over their sizes; of one shape, any rank.

    An output above `threshold` belongs to the mask.
    """

    threshold: float = 0.5

    unit = "%"

    def compare(self, output: Any, targets: Any) -> Statistics:
        fits = output.shape == targets.shape
        self.expect(fits, "output and targets of one shape", output, targets)
        found, wanted = output > self.threshold, targets.astype(bool)
        whole = int(found.sum()) + int(wanted.sum())
        return {"both": 2 * int((found & wanted).sum()), "whole": whole}

    def value(self, statistics: Statistics) -> float:
        return percent(statistics, "both", "whole")


@dataclass(frozen=True)
class _Images(Compared):
    """The mean over images of values in [0, largest]."""

    largest: float = 1.0

    def compare(self, output: Any, targets: Any) -> Statistics:
        fits = output.ndim == 4 and output.shape == targets.shape
        what = "images (batch, channels, height, width) of one shape"
        self.expect(fits, what, output, targets)
        scores = self.images(output.astype(np.float64), targets.astype(np.float64))
        return {"sum": float(scores.sum()), "count": len(output)}

    def images(self, a: Any, b: Any) -> Any:
        """The value of each image, (batch,)."""
        raise TypeError(f"{type(self).__name__} does not say how it compares")

    def value(self, statistics: Statistics) -> float:
        return ratio(statistics["sum"], statistics["count"])


@dataclass(frozen=True)
class PSNR(_Images):
    """Peak signal-to-noise ratio."""

    unit = "dB"

    def images(self, a: Any, b: Any) -> Any:
        error = ((a - b) ** 2).mean((1, 2, 3))
        with np.errstate(divide="ignore"):
            return 10 * np.log10(self.largest**2 / error)


@dataclass(frozen=True)
class SSIM(_Images):
    """Structural similarity with a Gaussian window (Wang et al. 2004).

    window, sigma: of the Gaussian, in pixels; images must be at least that large.
    """

    window: int = 11
    sigma: float = 1.5

    def images(self, a: Any, b: Any) -> Any:
        return self.parts(a, b)[0]

    def parts(self, a: Any, b: Any) -> tuple[Any, Any]:
        """The similarity of each image, and the part of it that is contrast."""
        if min(a.shape[2:]) < self.window:
            raise InputError(
                f"{self.name}: expected images of at least {self.window} x "
                f"{self.window} pixels, got {a.shape[2]} x {a.shape[3]}"
            )
        c1, c2 = (0.01 * self.largest) ** 2, (0.03 * self.largest) ** 2
        mean_a, mean_b = self._blurred(a), self._blurred(b)
        var_a = self._blurred(a * a) - mean_a**2
        var_b = self._blurred(b * b) - mean_b**2
        both = self._blurred(a * b) - mean_a * mean_b
        contrast = (2 * both + c2) / (var_a + var_b + c2)
        light = (2 * mean_a * mean_b + c1) / (mean_a**2 + mean_b**2 + c1)
        return (light * contrast).mean((1, 2, 3)), contrast.mean((1, 2, 3))

    def _blurred(self, x: Any) -> Any:
        places = np.arange(self.window) - (self.window - 1) / 2
        kernel = np.exp(-(places**2) / (2 * self.sigma**2))
        kernel /= kernel.sum()
        for axis in (2, 3):
            windows = np.lib.stride_tricks.sliding_window_view(x, self.window, axis)
            x = windows @ kernel
        return x


@dataclass(frozen=True)
class MSSSIM(SSIM):
    """Structural similarity at five sizes, each half the one before (Wang 2003)."""

    weights: tuple[float, ...] = _WEIGHTS

    @property
    def name(self) -> str:
        return "MS-SSIM"

    def images(self, a: Any, b: Any) -> Any:
        score = np.ones(len(a))
        for i, weight in enumerate(self.weights):
            whole, contrast = self.parts(a, b)
            last = i == len(self.weights) - 1
            score *= np.maximum(whole if last else contrast, 0.0) ** weight
            if not last:
                a, b = _halved(a), _halved(b)
        return score


def _halved(x: Any) -> Any:
    """The mean of every 2 x 2 pixels; a last odd row or column is left out."""
    n, c, h, w = x.shape
    x = x[:, :, : h // 2 * 2, : w // 2 * 2]
    return x.reshape(n, c, h // 2, 2, w // 2, 2).mean((3, 5))
