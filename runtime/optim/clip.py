"""Gradient clipping: functions from gradients to gradients, with their limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from burnish.backend import Array, namespace
from burnish.optim.gradients import GradientsParams

_EPSILON = 1e-6  # PyTorch's, so that a norm of zero divides


@dataclass(frozen=True)
class ClipValue:
    """Each element to [-limit, limit]."""

    limit: float

    def __call__(self, gradients: GradientsParams) -> GradientsParams:
        return GradientsParams(
            {path: g.clip(-self.limit, self.limit) for path, g in gradients.items()}
        )


@dataclass(frozen=True)
class ClipNorm:
    """Each parameter's gradient to an L2 norm of at most `limit`."""

    limit: float

    def __call__(self, gradients: GradientsParams) -> GradientsParams:
        return GradientsParams(
            {path: _scaled(g, _square(g), self.limit) for path, g in gradients.items()}
        )


@dataclass(frozen=True)
class ClipGlobalNorm:
    """All gradients, seen as one vector, to an L2 norm of at most `limit`."""

    limit: float

    def __call__(self, gradients: GradientsParams) -> GradientsParams:
        total = sum(map(_square, gradients.values()))
        return GradientsParams(
            {path: _scaled(g, total, self.limit) for path, g in gradients.items()}
        )


def _square(gradient: Array) -> Any:
    """The squared L2 norm, in float64 where the array lives; 0-d."""
    wide = gradient.ravel().astype("float64" if gradient.size else gradient.dtype)
    return wide @ wide


def _scaled(gradient: Array, square: Any, limit: float) -> Array:
    factor = limit / (namespace(gradient).sqrt(square) + _EPSILON)
    return gradient * factor.clip(None, 1).astype(gradient.dtype)
