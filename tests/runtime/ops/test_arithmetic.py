import numpy as np
import pytest

from burnish import ops
from tests.harness.operators import case

CASES = [
    case(ops.add, (3, 1, 4), (2, 4), expect=np.add),
    case(ops.sub, (3, 1, 4), (2, 4), expect=np.subtract),
    case(ops.mul, (3, 1, 4), (2, 4), expect=np.multiply),
    case(ops.neg, (3, 4), expect=np.negative),
    case(ops.exp, (3, 4), expect=np.exp),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()
