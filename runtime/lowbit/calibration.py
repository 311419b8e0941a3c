"""Calibration: which range of numbers a scale has to cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.ops.quantized.blocks import block_groups

if TYPE_CHECKING:
    from burnish.lowbit.scheme import QuantScheme

_SHARES = (*np.linspace(0.985, 0.3, 46), *np.geomspace(0.29, 0.005, 34))
_BINS = 2048
_METHODS = ("min_max", "percentile", "mse", "entropy")


@dataclass(frozen=True)
class Calibration:
    """How to find the range that is kept; values beyond it are clipped.

    "min_max": all of it. "percentile": `share` percent of the values, as many left out
    on either side. "mse": the one with the least squared error after rounding, out of
    81. "entropy": the one whose histogram tells most of the original (Kullback-Leibler,
    as TensorRT's), out of 81; per tensor.
    """

    method: str = "min_max"
    share: float = 99.9

    def __post_init__(self) -> None:
        if self.method not in _METHODS:
            raise InputError(
                f"Calibration: expected a method out of {', '.join(_METHODS)}, "
                f"got {self.method!r}"
            )
        if not 0 < self.share <= 100:
            raise InputError(
                f"Calibration: expected 0 < share <= 100, got {self.share}"
            )

    @classmethod
    def min_max(cls) -> Self:
        """The whole range."""
        return cls("min_max")

    @classmethod
    def percentile(cls, share: float = 99.9) -> Self:
        """The range of `share` percent of the values."""
        return cls("percentile", share)

    @classmethod
    def mse(cls) -> Self:
        """The range with the least squared error."""
        return cls("mse")

    @classmethod
    def entropy(cls) -> Self:
        """The range that loses the least information."""
        return cls("entropy")

    def ranges(
        self, x: Array, scheme: QuantScheme, blocks: tuple[int, ...]
    ) -> tuple[Array, Array]:
        """(minimum, maximum) of each block that scales have to cover.

        Raises InputError where x is not finite.
        """
        xp = namespace(x)
        if x.dtype.itemsize < 4:
            x = x.astype(np.float32)
        groups = block_groups(x, blocks)
        low = xp.minimum(groups.min(axis=-1), 0)
        high = xp.maximum(groups.max(axis=-1), 0)
        if not bool(xp.isfinite(low + high).all()):
            raise InputError("quantization: expected finite values, got inf or nan")
        if self.method == "percentile" and groups.size:
            edge = (100 - self.share) / 2
            low = xp.minimum(xp.percentile(groups, edge, axis=-1), 0)
            high = xp.maximum(xp.percentile(groups, 100 - edge, axis=-1), 0)
        elif self.method in ("mse", "entropy") and groups.size:
            lose = _squares if self.method == "mse" else _divergence
            low, high = _best(groups, low, high, scheme, lose)
        return low, high


def _best(groups: Any, low: Any, high: Any, scheme: QuantScheme, lose: Any) -> Any:
    """Of every group the range, out of smaller ones, that loses the least.

    Affine: the upper end first, then the lower one.
    """
    if scheme.mode == "symmetric":
        edge = namespace(low).maximum(-low, high)
        edge = _least(edge, lambda e: lose(groups, -e, e, scheme))
        return -edge, edge
    high = _least(high, lambda e: lose(groups, low, e, scheme))
    return _least(low, lambda e: lose(groups, e, high, scheme)), high


def _least(edge: Any, lose: Any) -> Any:
    """Of every group the share of `edge` for which `lose(share * edge)` is least."""
    xp = namespace(edge)
    least, best = lose(edge), edge
    for share in _SHARES:
        less = (share * edge).astype(edge.dtype)
        lost = lose(less)
        best = xp.where(lost < least, less, best)
        least = xp.minimum(least, lost)
    return best


def _squares(groups: Any, low: Any, high: Any, scheme: QuantScheme) -> Any:
    made = scheme.fake(groups, scheme.params(low[..., None], high[..., None]))
    return ((made - groups) ** 2).sum(axis=-1)


def _divergence(groups: Any, low: Any, high: Any, scheme: QuantScheme) -> Any:
    """Kullback-Leibler divergence from the values' histogram to the rounded ones'.

    What was cut off counts in the outermost bins of the first. In the second all bins
    that hold something and are rounded to one number share its values evenly.
    """
    xp = namespace(groups)
    if low.size != 1:
        raise InputError(
            f"Calibration.entropy: expected one scale per tensor, got {scheme.level}; "
            f"use Calibration.mse()"
        )
    flat, ends = groups.reshape(-1), (float(low.min()), float(high.max()))
    if ends[0] == ends[1]:
        return xp.zeros(low.shape)
    inside, edges = xp.histogram(flat, _BINS, ends)
    true, _ = xp.histogram(xp.clip(flat, *ends), _BINS, ends)
    centers = ((edges[1:] + edges[:-1]) / 2)[None].astype(np.float32)
    params = scheme.params(low.reshape(1, 1), high.reshape(1, 1))
    _, level = xp.unique(scheme.fake(centers, params), return_inverse=True)
    level, held = level.reshape(-1), true > 0
    sums, counts = (xp.bincount(level, weights=w) for w in (inside, held))
    share = (sums / xp.maximum(counts, 1))[level]
    p, q = true[held] / true.sum(), share[held] / max(float(inside.sum()), 1.0)
    return (p * xp.log(p / xp.maximum(q, 1e-12))).sum().reshape(low.shape)
