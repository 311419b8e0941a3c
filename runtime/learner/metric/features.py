"""Metrics of images as a network sees them; the network is the caller's.

features: called with images (batch, 3, height, width), gives maps (batch, channels,
height, width) for LPIPS and DISTS, the first of which DISTS wants to be the images
themselves; for FID one vector each (batch, features).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnish.errors import InputError
from burnish.learner.metric.base import Compared, Statistics, array, ratio
from burnish.tensor import Tensor


@dataclass(frozen=True)
class LPIPS(Compared):
    """Distance of unit-length feature maps (Zhang et al. 2018).

    weights: one (channels,) for each map; None weighs all channels alike.
    """

    features: Callable[[Tensor], Sequence[Tensor]]
    weights: Sequence[Any] | None = None

    higher_is_better = False

    def compare(self, output: Any, targets: Any) -> Statistics:
        maps = zip(*(_maps(self, x) for x in (output, targets)), strict=True)
        total = np.zeros(len(output))
        for i, (a, b) in enumerate(maps):
            gap = (_unit(a) - _unit(b)) ** 2
            weight = 1.0
            if self.weights is not None:
                weight = array(self.weights[i]).reshape(-1, 1, 1)
            total += (gap * weight).sum(1).mean((1, 2))
        return {"sum": float(total.sum()), "count": len(output)}

    def value(self, statistics: Statistics) -> float:
        return ratio(statistics["sum"], statistics["count"])


@dataclass(frozen=True)
class DISTS(Compared):
    """Distance of the means and the covariances of maps (Ding et al. 2020).

    alpha, beta: weights of texture and structure, one (channels,) for each map; None
    weighs all alike.
    """

    features: Callable[[Tensor], Sequence[Tensor]]
    alpha: Sequence[Any] | None = None
    beta: Sequence[Any] | None = None

    higher_is_better = False

    def compare(self, output: Any, targets: Any) -> Statistics:
        pairs = list(zip(*(_maps(self, x) for x in (output, targets)), strict=True))
        channels = [a.shape[1] for a, _ in pairs]
        given = (self.alpha, self.beta)
        alpha, beta = ([array(w) for w in each] if each else None for each in given)
        alpha = alpha or [np.ones(n) for n in channels]
        beta = beta or [np.ones(n) for n in channels]
        whole = sum(w.sum() for w in alpha) + sum(w.sum() for w in beta)
        near = np.zeros(len(output))
        for (a, b), of_means, of_both in zip(pairs, alpha, beta, strict=True):
            mean_a, mean_b = a.mean((2, 3)), b.mean((2, 3))
            both = (a * b).mean((2, 3)) - mean_a * mean_b
            texture = (2 * mean_a * mean_b + 1e-6) / (mean_a**2 + mean_b**2 + 1e-6)
            structure = (2 * both + 1e-6) / (a.var((2, 3)) + b.var((2, 3)) + 1e-6)
            near += (texture @ of_means + structure @ of_both) / whole
        return {"sum": float((1 - near).sum()), "count": len(output)}

    def value(self, statistics: Statistics) -> float:
        return ratio(statistics["sum"], statistics["count"])


@dataclass(frozen=True)
class FID(Compared):
    """Fréchet distance of two Gaussians fitted to features (Heusel et al. 2017)."""

    features: Callable[[Tensor], Tensor]

    higher_is_better = False

    def compare(self, output: Any, targets: Any) -> Statistics:
        found: Statistics = {}
        for name, images in (("output", output), ("targets", targets)):
            rows = array(self.features(Tensor(images))).astype(np.float64)
            if rows.ndim != 2:
                raise InputError(
                    f"FID: expected features (batch, features), got {rows.shape}"
                )
            found |= {
                f"{name}.count": len(rows),
                f"{name}.sum": rows.sum(0),
                f"{name}.products": rows.T @ rows,
            }
        return found

    def value(self, statistics: Statistics) -> float:
        (mean_a, cov_a), (mean_b, cov_b) = (
            _gaussian(statistics, name) for name in ("output", "targets")
        )
        # tr sqrt(A B) is the sum of the roots of the eigenvalues of A B
        roots = np.sqrt(np.maximum(np.linalg.eigvals(cov_a @ cov_b).real, 0)).sum()
        gap = ((mean_a - mean_b) ** 2).sum()
        return float(gap + np.trace(cov_a) + np.trace(cov_b) - 2 * roots)


def _gaussian(statistics: Statistics, name: str) -> tuple[Any, Any]:
    count = statistics[f"{name}.count"]
    mean = statistics[f"{name}.sum"] / count
    products = statistics[f"{name}.products"]
    return mean, (products - count * np.outer(mean, mean)) / max(count - 1, 1)


def _maps(metric: Any, images: Any) -> list[Any]:
    return [array(m).astype(np.float64) for m in metric.features(Tensor(images))]


def _unit(x: Any) -> Any:
    return x / (np.sqrt((x * x).sum(1, keepdims=True)) + 1e-10)
