"""Spectra. Complex numbers are pairs (real, imaginary) along the last axis.

Legend: B batch, L a signal's length, F frames, K frequencies.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import operator
from burnish.ops._tables import beside
from burnish.ops.arrays.padding import pad_constant


@operator
def dft(
    x,
    *,
    axis: int = -2,
    length: int | None = None,
    inverse: bool = False,
    onesided: bool = False,
) -> Array:
    """The discrete Fourier transform along `axis` of x (..., 1) or (..., 2).

    length: x is cut or filled with zeros to it. onesided: only the first half of the
    frequencies, which is all there is to real signals; with `inverse` that half is
    given, and the real signal (..., 1) comes back.
    """
    fft = namespace(x).fft
    axis, n = _axis(x, axis), _length(x, axis, length, inverse and onesided)
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    values = wide[..., 0] if x.shape[-1] == 1 else _complex(wide)
    if inverse and onesided:
        return fft.irfft(values, n, axis)[..., None].astype(x.dtype, copy=False)
    if inverse:
        y = fft.ifft(values, n, axis)
    elif onesided and values.dtype.kind == "f":
        y = fft.rfft(values, n, axis)
    else:
        y = fft.fft(values, n, axis)
        if onesided:
            y = y[(slice(None),) * axis + (slice(n // 2 + 1),)]
    pairs = namespace(x).ascontiguousarray(y).view(y.real.dtype)
    return pairs.reshape(*y.shape, 2).astype(x.dtype, copy=False)


@dft.vjp
def _(g, y, x, *, axis, length, inverse, onesided):
    axis = _axis(x, axis)
    n = _length(x, axis, length, inverse and onesided)
    if inverse and onesided:
        share = np.full(n // 2 + 1, 2 / n)
        share[0] = 1 / n
        share[n // 2 :] = 1 / n if n % 2 == 0 else share[n // 2 :]
        line = (-1, *(1 for _ in x.shape[axis + 1 :]))
        weights = beside(g, share.astype(x.dtype).reshape(line))
        part = dft(g, axis=axis, length=n, onesided=True) * weights
    else:
        whole = sized(g, axis, n)
        back = dft(whole, axis=axis, inverse=not inverse)
        part = back * (1 / n if inverse else n)
    part = sized(part, axis, x.shape[axis])
    return part if x.shape[-1] == 2 else part[..., :1]


def mel_weight_matrix(
    num_mel_bins: int,
    dft_length: int,
    sample_rate: int,
    lower_edge_hertz: float,
    upper_edge_hertz: float,
    *,
    dtype: Any = "float32",
) -> np.ndarray:
    """Triangles on the mel scale: (dft_length // 2 + 1, num_mel_bins), on the host

    A spectrum (..., K) times this matrix is the mel spectrum.
    """
    low, high = (
        2595 * np.log1p(e / 700) / log(10) for e in (lower_edge_hertz, upper_edge_hertz)
    )
    mels = low + np.arange(num_mel_bins + 2) * ((high - low) / (num_mel_bins + 2))
    hertz = 700 * np.expm1(mels / 2595 * log(10))
    places = ((dft_length + 1) * hertz // sample_rate).astype(int)
    left, center, right = places[:-2], places[1:-1], places[2:]
    bins = np.arange(dft_length // 2 + 1)[:, None]
    up = (bins - left) / np.maximum(center - left, 1)
    down = (right - bins) / np.maximum(right - center, 1)
    rising = np.where((bins >= left) & (bins < center), up, 0)
    falling = np.where((bins > center) & (bins < right), down, 0)
    return (rising + falling + (bins == center)).astype(dtype)


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = "float32"
) -> Any:
    """0.5 - 0.5 cos: (window_length,), on the host"""
    return _cosines(window_length, periodic, dtype, 0.5, 0.5)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = "float32",
) -> Any:
    """alpha - beta cos: (window_length,), on the host"""
    return _cosines(window_length, periodic, dtype, alpha, beta)


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = "float32"
) -> Any:
    """0.42 - 0.5 cos + 0.08 cos of twice the angle: (window_length,), on the host"""
    return _cosines(window_length, periodic, dtype, 0.42, 0.5, 0.08)


def _cosines(size: int, periodic: bool, dtype: Any, *shares: float) -> np.ndarray:
    angle = np.arange(size) * (2 * np.pi / max(1, size if periodic else size - 1))
    waves = [(-1) ** i * a * np.cos(i * angle) for i, a in enumerate(shares)]
    return sum(waves).astype(dtype)


def _complex(pairs: Array) -> Array:
    """Pairs (..., 2) of single or double precision as complex numbers (...)."""
    kind = np.complex64 if pairs.dtype == np.float32 else np.complex128
    return namespace(pairs).ascontiguousarray(pairs).view(kind)[..., 0]


def _axis(x: Any, axis: int) -> int:
    rank = len(x.shape)
    if rank < 2 or x.shape[-1] not in (1, 2) or axis % rank == rank - 1:
        raise InputError(
            f"dft: expected x (..., 1) or (..., 2) and another axis than the last, "
            f"got {x.shape} and axis {axis}"
        )
    return axis % rank


def _length(x: Any, axis: int, length: int | None, half: bool) -> int:
    """How many places the signal has."""
    if length is not None:
        return length
    return 2 * (x.shape[axis] - 1) if half else x.shape[axis]


def sized(x: Any, axis: int, size: int) -> Any:
    """x cut or filled with zeros along `axis`."""
    more = size - x.shape[axis]
    if more == 0:
        return x
    pads = tuple((0, more if i == axis else 0) for i in range(len(x.shape)))
    return pad_constant(x, pads=pads)
