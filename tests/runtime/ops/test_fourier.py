import numpy as np
import pytest

from burnish import ops
from burnish.errors import InputError
from tests.harness.operators import case

WIDE = {"dtypes": ("float64",), "rtol": 1e-9, "gpu": False}  # a window on the host
HANN = ops.hann_window(6, dtype="float64")


def pairs(z):
    return np.stack([z.real, z.imag], axis=-1)


def complex_(x):
    return x[..., 0] + 1j * x[..., 1]


def there_and_back(x, **options):
    spectra = ops.stft(x, HANN, center=True, **options)
    return ops.istft(spectra, HANN, center=True, length=x.shape[1], **options)


CASES = [
    *(
        case(
            ops.rfft,
            (3, 5, 2),
            n=n,
            axis=axis,
            expect=lambda x, n=n, a=axis: pairs(np.fft.rfft(x, n, a)),
            dtypes=("float64",),
        )
        for n, axis in ((None, -1), (None, 1), (7, 0), (4, 1))
    ),
    *(
        case(
            ops.irfft,
            (2, 4, 3, 2),
            n=n,
            axis=1,
            expect=lambda x, n=n: np.fft.irfft(complex_(x), n, 1),
            dtypes=("float64",),
        )
        for n in (None, 5, 8)
    ),
    case(ops.rfft, np.arange(4), expect=lambda x: pairs(np.fft.rfft(x))),
    case(there_and_back, (2, 20), frame_step=2, expect=lambda x: x, **WIDE),
    case(
        there_and_back,
        (1, 13),
        frame_step=3,
        onesided=False,
        normalized=True,
        expect=lambda x: x,
        **WIDE,
    ),
    case(ops.istft, (2, 3, 4, 2), frame_step=2, grad=True),
    case(
        ops.istft, (2, 3, 5, 2), (5,), frame_step=2, frame_length=9, length=8, low=0.5
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_windows_that_leave_a_gap_are_refused():
    with pytest.raises(InputError, match="istft: expected windows that cover"):
        ops.istft(np.zeros((1, 3, 4, 2)), HANN, frame_step=8)
    with pytest.raises(InputError, match="center=True leaves out the ends"):
        ops.istft(np.zeros((1, 3, 4, 2)), HANN, frame_step=2)


def test_an_axis_that_is_not_there_is_named():
    with pytest.raises(InputError, match="rfft: expected an axis"):
        ops.rfft(np.zeros(3), axis=1)
