"""Tables of rows, and the operators that scatter into flat places."""

import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.errors import InputError
from burnish.ops._kernels.scatter import put_flat, take_flat
from tests.harness.operators import case

IDS = np.array([[0, 2, 2], [4, 0, 1]])
FLAT = np.array([[0, 5], [5, 3]])

CASES = [
    case(ops.embedding, IDS, (5, 3), expect=lambda i, w: w[i]),
    case(ops.embedding, IDS, (5, 3), padding_idx=-3, grad=False),
    case(take_flat, (2, 3), FLAT, expect=lambda x, i: x.reshape(-1)[i]),
    case(put_flat, (2, 2), FLAT, shape=(2, 3)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_the_padding_row_gets_no_gradient():
    weight = Tensor(np.ones((5, 3))).require_grad()
    y = ops.embedding(Tensor(IDS), weight, padding_idx=-3)
    grad = weight.grad(y.backward(np.ones(y.shape))).numpy()
    assert grad[:, 0].tolist() == [2, 1, 0, 0, 1]


def test_an_id_outside_the_table_is_refused():
    with pytest.raises(InputError, match="ids from 0 to 4, got 0 to 7"):
        ops.embedding(np.array([0, 7]), np.ones((5, 3)))
