"""Spectra against NumPy's, their gradients, and what they are weighed with."""

import numpy as np
import pytest

from burnish import ops
from burnish.errors import InputError
from tests.harness.operators import case


def pairs(values, dtype):
    return np.stack([values.real, values.imag], axis=-1).astype(dtype)


def whole(x):
    return x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]


def spectrum(axis, n=None):
    return lambda x: pairs(np.fft.fft(whole(x), n, axis), x.dtype)


def half(axis, n=None):
    return lambda x: pairs(np.fft.rfft(x[..., 0], n, axis), x.dtype)


def signal_of(x):
    return np.fft.ifft(whole(x), axis=1)


CASES = [
    case(ops.dft, (2, 5, 2), expect=spectrum(1)),
    case(ops.dft, (2, 5, 1), expect=spectrum(1)),
    case(ops.dft, (4, 3, 1), axis=0, length=6, expect=spectrum(0, 6)),
    case(ops.dft, (2, 5, 2), length=3, expect=spectrum(1, 3)),
    case(ops.dft, (2, 6, 1), onesided=True, expect=half(1)),
    case(ops.dft, (2, 5, 1), onesided=True, length=7, expect=half(1, 7)),
    case(
        ops.dft,
        (2, 5, 2),
        onesided=True,
        expect=lambda x: pairs(np.fft.fft(whole(x), axis=1)[:, :3], x.dtype),
    ),
    case(
        ops.dft, (2, 5, 2), inverse=True, expect=lambda x: pairs(signal_of(x), x.dtype)
    ),
    *(
        case(
            ops.dft,
            (2, 4, 2),
            inverse=True,
            onesided=True,
            length=n,
            expect=lambda x, n=n: np.fft.irfft(whole(x), n, axis=1)[..., None].astype(
                x.dtype
            ),
        )
        for n in (None, 7, 5, 10)
    ),
    case(ops.stft, (2, 9), (4,), frame_step=2),
    case(ops.stft, (2, 9, 1), (3,), frame_step=2, frame_length=4),
    case(
        ops.stft,
        (1, 8, 2),
        frame_step=4,
        frame_length=4,
        onesided=False,
        expect=lambda x: pairs(np.fft.fft(whole(x).reshape(1, 2, 4), axis=2), x.dtype),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_half_precision_stays():
    x = np.ones((1, 4, 1), np.float16)
    assert ops.dft(x).dtype == np.float16


@pytest.mark.parametrize(
    ("window", "found"),
    [
        (ops.hann_window(8, periodic=False), np.hanning(8)),
        (ops.blackman_window(8, periodic=False), np.blackman(8)),
        (ops.hann_window(8), np.hanning(9)[:8]),
        (ops.blackman_window(8), np.blackman(9)[:8]),
        (
            ops.hamming_window(5, alpha=25 / 46, beta=21 / 46),
            25 / 46 - 21 / 46 * np.cos(np.arange(5) * 0.4 * np.pi),
        ),
        (ops.hann_window(1, periodic=False), np.zeros(1)),
    ],
)
def test_windows(window, found):
    assert window.dtype == np.float32
    np.testing.assert_allclose(window, found, 1e-6, 1e-7)


def test_triangles_rise_to_one_and_fall():
    matrix = ops.mel_weight_matrix(4, 64, 8000, 0.0, 4000.0, dtype="float64")
    assert matrix.shape == (33, 4)
    assert matrix.max(axis=0).tolist() == [1, 1, 1, 1]
    first = matrix[:, 1]
    assert (np.diff(np.sign(np.diff(first[first > 0]))) <= 0).all()


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="another axis than the last"):
        ops.dft(np.ones((2, 3, 2)), axis=-1)
    with pytest.raises(InputError, match="1 to 4 places"):
        ops.stft(np.ones((1, 4)), frame_step=1, frame_length=5)
