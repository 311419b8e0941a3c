"""Sinusoidal position embeddings. T length, D d_model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish import ops
from burnish.errors import InputError
from burnish.nn.core.layer import Layer
from burnish.tensor import Tensor


class PositionalEncoding(Layer):
    """x (..., T, D) -> x + sin and cos of the place, at D / 2 wavelengths

    Columns 2 i and 2 i + 1 are sine and cosine of place / max_timescale ** (2 i / D).
    Sequences may have any length; a call may say where the sequence starts.
    """

    def __init__(self, d_model: int, max_timescale: float = 10000.0):
        self.d_model = _even("PositionalEncoding", d_model)
        self.max_timescale = max_timescale

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Raises InputError unless x ends in (T, D)."""
        angles = _angles(self, x, start, _frequencies(self.d_model, self.max_timescale))
        waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
        return x + _beside(x, waves.reshape(len(angles), -1))


class RotaryEncoding(Layer):
    """x (..., T, D) -> the same shape, pairs of columns turned by angles of the place

    Pair i turns by place * theta ** (-2 i / D); scaling changes these D / 2 numbers.
    interleaved: pairs are neighbours, else columns i and i + D / 2. Sequences may have
    any length; a call may say where the sequence starts.
    """

    def __init__(
        self,
        d_model: int,
        theta: float = 10000.0,
        interleaved: bool = True,
        scaling: Callable[[np.ndarray], np.ndarray] | None = None,
    ):
        if theta <= 0:
            raise InputError(f"RotaryEncoding: expected theta above 0, got {theta}")
        self.d_model = _even("RotaryEncoding", d_model)
        self.theta = theta
        self.interleaved = interleaved
        self.scaling = scaling

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Raises InputError unless x ends in (T, D)."""
        frequencies = _frequencies(self.d_model, self.theta)
        if self.scaling is not None:
            frequencies = self.scaling(frequencies)
        angles = _angles(self, x, start, frequencies)
        cos, sin = _beside(x, np.cos(angles)), _beside(x, np.sin(angles))
        half = self.d_model // 2
        pairs = (half, 2) if self.interleaved else (2, half)
        axis = -1 if self.interleaved else -2
        parts = x.reshape(*x.shape[:-1], *pairs)
        a, b = (part.squeeze(axis) for part in ops.split(parts, num=2, axis=axis))
        turned = ops.stack([a * cos - b * sin, a * sin + b * cos], axis=axis)
        return turned.reshape(*x.shape)


def _even(where: str, d_model: int) -> int:
    if d_model % 2:
        raise InputError(f"{where}: expected an even d_model, got {d_model}")
    return d_model


def _frequencies(d_model: int, base: float) -> np.ndarray:
    return np.asarray(base ** (-np.arange(0, d_model, 2) / d_model))


def _angles(layer: Any, x: Tensor, start: int, frequencies: np.ndarray) -> np.ndarray:
    """(T, D / 2), in double precision"""
    if len(x.shape) < 2 or x.shape[-1] != layer.d_model:
        raise InputError(
            f"{type(layer).__name__}: expected x (..., T, {layer.d_model}), "
            f"got shape {x.shape}"
        )
    return np.outer(np.arange(start, start + x.shape[-2]), frequencies)


def _beside(x: Tensor, table: np.ndarray) -> Any:
    return x.device.put(table, x.dtype)
