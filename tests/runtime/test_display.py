import numpy as np
import pytest

import burnish
from burnish import Tensor


@pytest.fixture(autouse=True)
def _first_options():
    yield
    burnish.set_printoptions()


def test_repr_says_values_shape_and_dtype():
    assert repr(Tensor([[1, 2], [3, 4]])) == (
        "Tensor([[1, 2],\n        [3, 4]], shape=(2, 2), dtype=int64)"
    )
    assert repr(Tensor.zeros(1, device="cpu:autodiff")) == (
        "Tensor([0.], shape=(1,), dtype=float32, device='cpu:autodiff')"
    )


@pytest.mark.parametrize(
    ("x", "spec", "text"),
    [
        ([[1.5, 2.25]], ".1f", "Tensor([[1.5, 2.2]], shape=(1, 2), dtype=float32)"),
        ([1, 20], "3d", "Tensor([  1,  20], shape=(2,), dtype=int64)"),
        ([0.5], "", "Tensor([0.5], shape=(1,), dtype=float32)"),
        (0.123456, ".2f", "0.12"),
        (0.5, "", "Tensor(0.5, shape=(), dtype=float32)"),
    ],
)
def test_a_format_is_for_each_element(x, spec, text):
    assert format(Tensor(x), spec) == text


def test_options_hold_until_they_are_set_anew():
    x = Tensor(np.arange(12.0) / 7)
    burnish.set_printoptions(precision=2, threshold=5, edgeitems=1)
    assert repr(x) == "Tensor([0.  , ..., 1.57], shape=(12,), dtype=float64)"
    assert f"{x:.1f}" == "Tensor([0.0, ..., 1.6], shape=(12,), dtype=float64)"
    assert np.get_printoptions()["edgeitems"] == 3
    burnish.set_printoptions()
    assert "0.14285714" in repr(x)


def test_large_tensors_are_shortened():
    large = repr(Tensor.zeros(100, 100))
    assert "..." in large
    assert len(large) < 700
