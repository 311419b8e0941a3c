"""Windows as columns and back."""

import numpy as np
import pytest

from burnish import ops
from burnish.errors import InputError
from tests.harness.operators import case

EVERY = {"stride": (2, 1), "padding": ((1, 0), (0, 1)), "dilation": (1, 2)}

CASES = [
    case(
        ops.im2col,
        (1, 2, 3, 3),
        kernel_size=(1, 3),
        expect=lambda x: x.transpose(0, 1, 3, 2).reshape(1, 6, 3),
    ),
    case(ops.im2col, (2, 2, 4, 5), kernel_size=(2, 3), **EVERY),
    case(
        ops.col2im,
        (1, 4, 3),
        sizes=(4,),
        kernel_size=(2,),
        expect=lambda x: np.stack(
            [
                np.append(x[0, 2 * i], 0) + np.insert(x[0, 2 * i + 1], 0, 0)
                for i in range(2)
            ]
        )[None].astype(x.dtype),
    ),
    case(ops.col2im, (2, 12, 4), sizes=(4, 5), kernel_size=(2, 3), **EVERY),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_columns_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"expected \(N, C \* 2, 3\)"):
        ops.col2im(np.ones((1, 4, 4)), sizes=(4,), kernel_size=(2,))
