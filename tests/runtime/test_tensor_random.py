import numpy as np
import pytest

import burnish
from burnish import Tensor
from burnish.distributions import Bernoulli, Default, Normal, Uniform
from burnish.errors import InputError

SHARES = [
    (Default(), "float32", 0.5, 12**-0.5, 0, 1),
    (Default(), "bool", 0.5, 0.5, 0, 1),
    (Default(), "uint8", 127.5, 256 * 12**-0.5, 0, 255),
    (Default(), "int8", -0.5, 256 * 12**-0.5, -128, 127),
    (Bernoulli(0.2), "float64", 0.2, 0.4, 0, 1),
    (Bernoulli(1.0), "int32", 1, 0, 1, 1),
    (Uniform(-2, 4), "float16", 1, 6 * 12**-0.5, -2, 4),
    (Uniform(0, 10), "int64", 4.5, 8.25**0.5, 0, 9),
    (Uniform(0.5, 2.5), "int64", 1.5, 0.5, 1, 2),
    (Normal(3, 0.5), "float32", 3, 0.5, -np.inf, np.inf),
]


@pytest.mark.parametrize("row", SHARES, ids=lambda row: f"{row[0]} {row[1]}")
def test_draws_have_the_mean_deviation_and_bounds(row):
    distribution, dtype, mean, std, low, high = row
    burnish.seed(0)
    drawn = Tensor.random((20_000,), distribution, dtype=dtype)
    assert drawn.dtype == dtype
    values = drawn.numpy().astype(float)
    assert abs(values.mean() - mean) <= 5 * std / 20_000**0.5
    assert abs(values.std() - std) <= 0.03 * std
    assert values.min() >= low
    assert values.max() <= high


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_upper_end_is_left_out_of_narrow_dtypes_too(dtype):
    burnish.seed(0)
    assert Tensor.rand(100_000, dtype=dtype).max().item() < 1


def test_a_tensor_gives_shape_dtype_and_device():
    x = Tensor.zeros(2, 3, dtype="float16", device="cpu:autodiff")
    for drawn in (x.random_like(), x.random_like(Normal())):
        assert (drawn.shape, drawn.dtype, drawn.device) == (x.shape, x.dtype, x.device)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Bernoulli(1.5), "Bernoulli: expected p from 0 to 1, got 1.5"),
        (lambda: Uniform(1, 1), "Uniform: expected low < high, got 1, 1"),
        (lambda: Uniform(0, np.inf), "Uniform: expected low < high, got 0, inf"),
        (
            lambda: Tensor.random(2, Uniform(0, 300), dtype="uint8"),
            r"high=300\): expected ends that uint8 holds",
        ),
        (lambda: Normal(0, -1), "Normal std: expected a number of 0 or more, got -1"),
        (
            lambda: Tensor.random(2, Uniform(0.2, 0.8), dtype="int64"),
            "expected an integer between the ends",
        ),
    ],
)
def test_mistaken_parameters_are_explained(make, what):
    with pytest.raises(InputError, match=what):
        make()
