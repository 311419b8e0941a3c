"""Discrete Fourier transforms in plans, beside those of NumPy in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burnish
from burnish import Tensor, ops
from tests.runtime.plan.checks import check

pytestmark = pytest.mark.usefixtures("canaries")

#: Powers of two and four, odd radices, the largest radix, and mixed lengths.
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 12, 25, 31, 62, 160, 400, 512)
#: (signals, places) (first axis, between axes, a vector and more of them)
SIGNALS = ((3, None, ()), (2, 1, (5,)), (35, 0, ()))


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def wanted(x: np.ndarray, n: int, is_inverse: bool, is_half: bool) -> np.ndarray:
    """NumPy's transform along axis 1, in double precision."""
    wide = x.astype(np.float64)
    values = wide[..., 0] + (1j * wide[..., 1] if x.shape[-1] == 2 else 0)
    if is_inverse and is_half:
        return np.fft.irfft(values, n, 1)[..., None]
    y = (np.fft.ifft if is_inverse else np.fft.fft)(values, n, 1)
    y = y[:, : n // 2 + 1] if is_half else y
    return np.stack([y.real, y.imag], -1)


@pytest.mark.parametrize("is_half", [False, True])
@pytest.mark.parametrize("is_inverse", [False, True])
@pytest.mark.parametrize("width", [1, 2])
def test_transforms(width: int, is_inverse: bool, is_half: bool) -> None:
    """Signals as long as the transform, cut to it, and filled with zeros."""
    for n in LENGTHS:
        for signals, more, between in SIGNALS:
            x = drawn(signals, max(1, n + (more or -1)), *between, width)
            options: Any = {"length": n, "inverse": is_inverse, "onesided": is_half}
            fast = burnish.compile(lambda x, o=options: ops.dft(x, axis=1, **o))
            exact = wanted(x, n, is_inverse, is_half)
            y = fast(Tensor(x)).numpy()
            assert y.shape == exact.shape
            assert np.abs(y - exact).max() <= 5e-7 * np.abs(exact).max(), n
            assert not fast.planned(Tensor(x)).eager, fast.explain()


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_nan_and_infinity_spread_as_in_the_plain_call(odd: float) -> None:
    x = drawn(20, 16, 1)
    check(lambda x: ops.dft(x, axis=1, onesided=True), Tensor(x))
    x[3, 5] = odd
    check(lambda x: ops.dft(x, axis=1, onesided=True), Tensor(x))


def test_spectra_of_frames_and_back_run_no_step_eagerly() -> None:
    window = Tensor(np.hanning(65)[:-1].astype(np.float32))
    x = Tensor(drawn(2, 640))

    def there(x: Any) -> Any:
        return ops.stft(x, window, frame_step=16)

    assert not check(there, x).planned(x).eager


@pytest.mark.parametrize("shape", [(8, 37, 1), (1, 2048, 1), (8, 8192, 1)])
def test_lengths_that_numpy_is_faster_at_are_its_own(shape: Any) -> None:
    x = Tensor(drawn(*shape))
    fast = check(lambda x: ops.dft(x, axis=1), x)
    assert "NumPy is faster" in fast.explain()
