import numpy as np
import pytest

from burnish import Tensor, ops
from tests.harness.operators import case

TIED = np.array([[2.0, 1.0, 2.0, 3.0, 3.0], [0.0, -1.0, -1.0, -1.0, 5.0]])

CASES = [
    case(
        ops.cum_max, (3, 4), axis=1, expect=lambda x: np.maximum.accumulate(x, axis=1)
    ),
    case(ops.cum_max, (3, 1, 4), axis=0, expect=np.maximum.accumulate),
    case(ops.cum_max, (3, 4), axis=-1, dtypes=("int32", "uint8"), grad=False),
    case(ops.cum_max, (0, 3), axis=0, expect=lambda x: x),
    case(ops.cum_min, (2, 3, 2), axis=-2, expect=lambda x: np.minimum.accumulate(x, 1)),
    case(ops.cum_min, np.array([True, True, False, True]), axis=0, grad=False),
    case(
        ops.sum_runs,
        (2, 4),
        np.array([[True, False, True, True], [True, False, False, False]]),
        axis=-1,
        expect=lambda x, s: np.stack(
            [[x[0, 0] + x[0, 1], 0, x[0, 2], x[0, 3]], [x[1].sum(), 0, 0, 0]]
        ).astype(x.dtype),
        rtol=1e-5,
    ),
    case(
        ops.cum_max_places,
        TIED,
        axis=1,
        expect=lambda x: np.array([[0, 0, 2, 3, 4], [0, 0, 0, 0, 4]]),
        grad=False,
    ),
    case(
        ops.cum_min_places,
        TIED,
        axis=1,
        expect=lambda x: np.array([[0, 1, 1, 1, 1], [0, 1, 2, 3, 3]]),
        grad=False,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_from_a_nan_on_everything_is_nan():
    x = np.array([1.0, np.nan, 3.0, np.nan, 0.0])
    assert np.isnan(ops.cum_max(x, axis=0)).tolist() == [False, True, True, True, True]
    assert ops.cum_max_places(x, axis=0).tolist() == [0, 1, 1, 3, 3]


def test_the_gradient_goes_to_the_last_of_equal_ones():
    x = Tensor(TIED).require_grad()
    got = x.grad(ops.cum_max(x, axis=1).sum().backward())
    assert got.tolist() == [[2, 0, 1, 1, 1], [4, 0, 0, 0, 1]]
