"""Gradient clipping: functions from gradients to gradients, with their limit."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnish._engine.arguments import check_fields
from burnish.backend import Array, namespace
from burnish.optim.core.gradients import GradientsParams

EPSILON = 1e-6
"""PyTorch's: the addend of a norm, so that nothing is divided by zero."""


@dataclass(frozen=True)
class ClipValue:
    """Each element to [-limit, limit]."""

    limit: float

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, gradients: GradientsParams) -> GradientsParams:
        return GradientsParams(
            {path: g.clip(-self.limit, self.limit) for path, g in gradients.items()}
        )


@dataclass(frozen=True)
class ClipNorm:
    """Each parameter's gradient to a norm of at most `limit`.

    norm: 2 for the Euclidean one, any p > 0, or infinity.
    """

    limit: float
    norm: float = 2.0

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, gradients: GradientsParams) -> GradientsParams:
        return GradientsParams(
            {
                path: _scaled(g, self.limit, norm_of([g], self.norm))
                for path, g in gradients.items()
            }
        )


@dataclass(frozen=True)
class ClipGlobalNorm:
    """All gradients, seen as one vector, to a norm of at most `limit`.

    norm: 2 for the Euclidean one, any p > 0, or infinity.
    """

    limit: float
    norm: float = 2.0

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, gradients: GradientsParams) -> GradientsParams:
        total = norm_of(list(gradients.values()), self.norm)
        return GradientsParams(
            {path: _scaled(g, self.limit, total) for path, g in gradients.items()}
        )


def is_planned(clip: Any) -> bool:
    """Whether plans have records for it: for nothing, and the classes of this file."""
    return clip is None or type(clip) in (ClipValue, ClipNorm, ClipGlobalNorm)


def bound_of(clip: Any) -> float:
    """The largest absolute value of a gradient's element; infinite where none is."""
    return clip.limit if isinstance(clip, ClipValue) else float("inf")


def norm_of(gradients: list[Array], p: float) -> Any:
    """The p-norm of all elements, in float64 where the arrays live; 0-d."""
    parts = [_power_sum(gradient, p) for gradient in gradients if gradient.size]
    if p == float("inf"):
        return functools.reduce(namespace(parts[0]).maximum, parts) if parts else 0.0
    return sum(parts) ** (1 / p)


def are_finite(gradients: GradientsParams) -> bool:
    """Whether no gradient has an infinity or a NaN; waits for a GPU, once."""
    return math.isfinite(float(norm_of([*gradients.values()], math.inf)))


def _power_sum(gradient: Array, p: float) -> Any:
    """The sum of |x| ** p; the largest |x| for p infinite."""
    xp, wide = namespace(gradient), gradient.ravel().astype("float64")
    if p == 2:
        return wide @ wide if xp is np else xp.square(wide).sum()
    size = xp.abs(wide)
    return size.max() if p == float("inf") else (size**p).sum()


def _scaled(gradient: Array, limit: float, norm: Any) -> Array:
    xp = namespace(gradient)
    factor = xp.minimum(limit / (norm + EPSILON), 1.0)
    return gradient * factor.astype(gradient.dtype)
