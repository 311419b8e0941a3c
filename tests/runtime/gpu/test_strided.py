"""Convolutions in bfloat16 of few channels and strides: cells of channels."""

import cupy
import ml_dtypes
import numpy as np
import pytest

from burnish import ops
from burnish.backend.cuda.convolution import convolution, folded
from burnish.backend.cuda.libraries import cudnn
from burnish.ops._kernels.window import window
from burnish.ops.spatial.conv import conv_weight_gradient

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
CASES = [  # sizes, kernel, stride, padding, channels
    ((30, 33), (7, 7), (2, 2), 3, 3),
    ((17, 12), (3, 3), (2, 2), 1, 1),
    ((14, 21), (7, 3), (3, 1), (2, 0), 4),
    ((13, 11), (7, 6), (3, 2), ((1, 2), (0, 1)), 2),
]


def there(shape, dtype, last, seed):
    """Numbers on the GPU, and the same in float64."""
    x = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    held = cupy.asarray(x)
    if last:
        held = cupy.moveaxis(cupy.ascontiguousarray(cupy.moveaxis(held, 1, -1)), -1, 1)
    return held, x.astype(np.float64)


def apart(made, wanted):
    made = cupy.asnumpy(made).astype(np.float64)
    assert made.shape == wanted.shape
    return np.linalg.norm(made - wanted) / np.linalg.norm(wanted)


@pytest.mark.skipif(cudnn.library() is None, reason="cuDNN is not installed")
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_few_channels(case, last):
    dtype = BFLOAT16
    sizes, kernel, stride, padding, c = case
    (x, far), (weight, own) = (
        there((5, c, *sizes), dtype, last, 0),
        there((24, c, *kernel), dtype, False, 1),
    )
    w = window("conv", sizes, kernel, stride, padding, 1)
    assert folded.fits(x, w, 1)
    near = 8e-3
    bias, level = there((24,), dtype, False, 2)
    wanted = ops.conv(far, own, level, stride=stride, padding=padding)
    made = convolution.conv(x, weight, w, 1, bias, relu=True)
    assert apart(made, np.maximum(wanted, 0)) < near
    g, slope = there(wanted.shape, dtype, True, 3)
    options = {"kernel": kernel, "padding": w.pads, "stride": stride, "groups": 1}
    wanted = conv_weight_gradient(far, slope, dilation=(1, 1), **options)
    assert apart(convolution.weight_gradient(x, g, w, 1), wanted) < near
    back = folded.unfolded(folded.weights(weight, w), c, w)
    np.testing.assert_array_equal(back.get(), weight.get())


@pytest.mark.parametrize(
    ("shape", "stride", "dilation", "groups", "dtype"),
    [
        ((2, 5, 9, 9), 2, 1, 1, BFLOAT16),
        ((2, 3, 9, 9), 1, 1, 1, BFLOAT16),
        ((2, 3, 9, 9), 3, 1, 1, BFLOAT16),
        ((2, 3, 9, 9), 2, 2, 1, BFLOAT16),
        ((2, 3, 9, 9), 2, 1, 3, BFLOAT16),
        ((2, 3, 9, 9), 2, 1, 1, "f2"),
        ((2, 3, 9, 9), 2, 1, 1, "f4"),
        ((2, 3, 9), 2, 1, 1, BFLOAT16),
    ],
    ids=str,
)
def test_others_stay_as_they_are(shape, stride, dilation, groups, dtype):
    x = cupy.zeros(shape, dtype)
    kernel = (3,) * (x.ndim - 2)
    w = window("conv", shape[2:], kernel, stride, 1, dilation)
    assert not folded.fits(x, w, groups)
