import numpy as np
import pytest

import burnish
from burnish import Tensor, ops
from burnish.errors import InputError


def test_numbers_are_drawn_as_often_as_they_weigh():
    burnish.seed(0)
    weights = np.array([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]])
    drawn = ops.multinomial(weights, num_samples=20_000, replacement=True)
    assert drawn.shape == (2, 20_000)
    shares = np.stack([np.bincount(row, minlength=3) / 20_000 for row in drawn])
    np.testing.assert_allclose(shares, [[0.25, 0, 0.75], [0.5, 0.5, 0]], atol=0.02)


def test_the_first_of_those_without_replacement_too():
    burnish.seed(0)
    weights = Tensor(np.tile(np.float32([1, 0, 3, 1]), (5000, 1)))
    drawn = ops.multinomial(weights, num_samples=3)
    assert drawn.dtype == np.int64
    assert (np.sort(drawn.numpy(), 1) == [0, 2, 3]).all()
    share = (drawn[:, 0] == 2).numpy().mean()
    np.testing.assert_allclose(share, 0.6, atol=0.03)


@pytest.mark.parametrize(
    ("weights", "count"), [([1.0, -1.0], 1), ([1.0, 0.0], 2), ([np.nan], 1)]
)
def test_weights_that_cannot_be_drawn_from_are_refused(weights, count):
    with pytest.raises(InputError, match="multinomial: expected weights"):
        ops.multinomial(np.array(weights), num_samples=count)


def test_one_weight_is_a_row():
    assert ops.multinomial(np.array(2.0), num_samples=1).tolist() == [0]


def test_nothing_is_drawn_for_no_rows():
    assert ops.multinomial(np.ones((0, 3)), num_samples=2).shape == (0, 2)
