import numpy as np
import pytest

from burnish import Tensor, ops
from tests.harness.operators import case

CASES = [
    case(ops.hypot, (3, 4), (3, 1), expect=np.hypot),
    case(ops.hypot, 3.0, (4,), expect=np.hypot),
    case(ops.deg2rad, (3, 4), low=-400, high=400, expect=np.deg2rad),
    case(ops.rad2deg, (3, 4), expect=np.rad2deg),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_hypot_at_the_origin_has_gradient_zero():
    x = Tensor([0.0, 3.0], dtype="float64").require_grad()
    assert x.grad(ops.hypot(x, [0.0, 4.0]).sum().backward()).tolist() == [0, 0.6]
