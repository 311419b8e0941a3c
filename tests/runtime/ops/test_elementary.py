import math

import numpy as np
import pytest

from burnish import Tensor, ops
from tests.harness.operators import case

erf = np.vectorize(math.erf)
share = np.vectorize(lambda x: math.erfc(-x / math.sqrt(2)) / 2)
CASES = [
    case(ops.sqrt, (3, 4), low=0.3, expect=np.sqrt),
    case(ops.exp, (3, 4), expect=np.exp),
    case(ops.expm1, (3, 4), expect=np.expm1),
    case(ops.log, (3, 4), low=0.3, expect=np.log),
    case(ops.log1p, (3, 4), low=-0.5, expect=np.log1p),
    case(ops.sin, (3, 4), expect=np.sin),
    case(ops.cos, (3, 4), expect=np.cos),
    case(ops.tan, (3, 4), low=-1, high=1, expect=np.tan),
    case(ops.asin, (3, 4), low=-0.9, high=0.9, expect=np.arcsin),
    case(ops.acos, (3, 4), low=-0.9, high=0.9, expect=np.arccos),
    case(ops.atan, (3, 4), expect=np.arctan),
    case(ops.atan2, (3, 4), (3, 1), expect=np.arctan2),
    case(ops.sinh, (3, 4), expect=np.sinh),
    case(ops.cosh, (3, 4), expect=np.cosh),
    case(ops.tanh, (3, 4), expect=np.tanh),
    case(ops.asinh, (3, 4), expect=np.arcsinh),
    case(ops.acosh, (3, 4), low=1.3, expect=np.arccosh),
    case(ops.atanh, (3, 4), low=-0.9, high=0.9, expect=np.arctanh),
    case(ops.erf, (3, 40), low=-7, high=7, expect=lambda x: erf(x).astype(x.dtype)),
    case(ops.ndtr, (3, 40), low=-9, high=9, expect=lambda x: share(x).astype(x.dtype)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_erf_at_the_ends_and_near_zero():
    x = np.array([0.0, -0.0, 1e-300, 6.5, -30, np.inf, -np.inf, np.nan])
    np.testing.assert_allclose(ops.erf(x), erf(x), rtol=1e-15)
    assert np.signbit(ops.erf(x)[1])
    assert ops.erf(np.float16([0.5])).dtype == np.float16


def test_angle_of_the_origin_has_gradient_zero():
    x = Tensor(np.zeros(2)).require_grad()
    assert x.grad(ops.atan2(x, x).sum().backward()).tolist() == [0, 0]
