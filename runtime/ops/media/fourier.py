"""Real FFT, STFT and their inverses.

Legend: B batch, L a signal's length, F frames, n a frame's length, K frequencies. As in
`signal`, complex numbers are pairs (real, imaginary) along the last axis.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed
from burnish.ops._shapes import broadcast_to, cast, ranked
from burnish.ops._tables import beside
from burnish.ops.arrays.index import put_rows, take_slices
from burnish.ops.arrays.padding import pad
from burnish.ops.arrays.shape import reshape, transpose
from burnish.ops.media.signal import dft, sized
from burnish.steps import step


@composed
def rfft(x: Any, n: int | None = None, axis: int = -1) -> Array:
    """The spectrum of a real signal: (..., L, ...) -> (..., K, ..., 2)

    n: the signal is cut or filled with zeros to it; K is n // 2 + 1.
    """
    x = _floating(x)
    if not -len(x.shape) <= axis < len(x.shape):
        raise InputError(f"rfft: expected an axis of x {x.shape}, got {axis}")
    return dft(x[..., None], axis=axis % len(x.shape), length=n, onesided=True)


@composed
def irfft(spectrum: Any, n: int | None = None, axis: int = -2) -> Array:
    """The real signal of a spectrum: (..., K, ..., 2) -> (..., n, ...)

    n: 2 * (K - 1) unless given; spectra of odd lengths need it.
    """
    y = dft(spectrum, axis=axis, length=n, inverse=True, onesided=True)
    return y[..., 0]


@composed
def stft(
    signal: Any,
    window: Any = None,
    *,
    frame_step: int,
    frame_length: int | None = None,
    onesided: bool = True,
    center: bool = False,
    pad_mode: str = "reflect",
    normalized: bool = False,
) -> Array:
    """Spectra of frames: signal (B, L), (B, L, 1) or (B, L, 2) -> (B, F, K, 2)

    A frame starts every `frame_step` places and is weighed by `window`, whose length
    it has unless `frame_length` is given. center: the signal grows by half a frame at
    both ends, as `pad` does in `pad_mode`, so that frames have their middle at every
    step. normalized: spectra are divided by sqrt(n).
    """
    ranked("stft: signal", signal, 2, 3)
    if len(signal.shape) == 2:
        signal = signal[..., None]
    n = frame_length or (signal.shape[1] if window is None else window.shape[0])
    if center:
        signal = pad(signal, ((n // 2, n // 2),), pad_mode, axes=(1,))
    size = signal.shape[1]
    if not 0 < n <= size or frame_step < 1:
        raise InputError(
            f"stft: expected frames of 1 to {size} places and a positive step, "
            f"got frame_length {n} and frame_step {frame_step}"
        )
    seen = n if window is None else min(n, window.shape[0])
    starts = np.arange(0, size - n + 1, frame_step)
    frames = take_slices(
        signal, beside(signal, starts[:, None] + np.arange(seen)), axis=1
    )
    if window is not None:
        frames = frames * reshape(window[:seen], shape=(seen, 1))
    spectra = dft(frames, axis=2, length=n, onesided=onesided)
    return spectra * (1 / sqrt(n)) if normalized else spectra


@composed
def istft(
    spectra: Any,
    window: Any = None,
    *,
    frame_step: int,
    frame_length: int | None = None,
    onesided: bool = True,
    center: bool = False,
    normalized: bool = False,
    length: int | None = None,
) -> Array:
    """The real signal whose `stft` is nearest to spectra (B, F, K, 2): (B, L)

    Frames are weighed by `window` once more, added where they overlap and divided by
    the sum of the squared windows there. length: what the signal is cut or filled with
    zeros to; with `center` the half frames at both ends are cut off unless it is given.

    Raises InputError where a place is under no part of a window.
    """
    ranked("istft: spectra", spectra, 4)
    count, k = spectra.shape[1:3]
    n = frame_length or (2 * (k - 1) if onesided else k)
    if normalized:
        spectra = spectra * sqrt(n)
    frames = dft(spectra, axis=2, length=n, inverse=True, onesided=onesided)[..., 0]
    shape = beside(frames, np.ones(n, frames.dtype)) if window is None else window
    shape = sized(cast(shape, dtype=frames.dtype), 0, n)
    places = np.arange(count)[:, None] * frame_step + np.arange(n)
    total = int(places[-1, -1]) + 1 if count else 0
    weights = broadcast_to(shape * shape, shape=(count, n))
    signal = _overlapped(frames * shape, places, total)
    envelope = _overlapped(weights[None], places, total)
    start = n // 2 if center else 0
    stop = total - start if length is None else min(start + length, total)
    signal, envelope = signal[:, start:stop], envelope[:, start:stop]
    _check_covered(envelope, start=start, stop=stop, frame_step=frame_step)
    signal = signal / envelope
    return signal if length is None else sized(signal, 1, length)


_LEAST = 1e-11  # PyTorch's bound too


@step
def _check_covered(envelope: Any, *, start: int, stop: int, frame_step: int) -> None:
    if namespace(envelope) is np and bool((envelope < _LEAST).any()):
        raise InputError(
            f"istft: expected windows that cover the signal from {start} to {stop}, "
            f"got a place where they add up to 0 at frame_step {frame_step}; "
            f"center=True leaves out the ends"
        )


def _overlapped(frames: Any, places: Any, total: int) -> Any:
    """Frames (B, F, n) added at their places: (B, total)"""
    rows = reshape(frames, shape=(frames.shape[0], -1))
    places = beside(frames, places.reshape(-1))
    return transpose(put_rows(transpose(rows), places, rows=total))


def _floating(x: Any) -> Any:
    return cast(x, dtype=np.float64) if x.dtype.kind in "iub" else x
