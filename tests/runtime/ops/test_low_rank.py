"""A matrix plus a thin product."""

import numpy as np
import pytest

from burnish import ops
from tests.harness.operators import case


def expected(x, b, a, scale=1.0):
    return x + scale * (b @ a).reshape(x.shape)


def scaled(scale):
    return lambda *arrays: expected(*arrays, scale)


CASES = [
    case(ops.low_rank_add, (3, 4), (3, 2), (2, 4), expect=expected),
    case(ops.low_rank_add, (3, 4), (3, 1), (1, 4), scale=0.5, expect=scaled(0.5)),
    case(
        ops.low_rank_add, (3, 2, 2, 5), (3, 2), (2, 20), scale=-2.0, expect=scaled(-2.0)
    ),
    case(ops.low_rank_add, (3, 0), (3, 2), (2, 0), expect=expected),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_the_matrix_says_the_dtype():
    half = np.ones((3, 4), np.float16)
    assert ops.low_rank_add(half, np.ones((3, 2)), np.ones((2, 4))).dtype == np.float16
