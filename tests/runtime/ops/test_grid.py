import numpy as np
import pytest

from burnish import ops
from burnish.errors import InputError
from tests.harness.operators import case


def plane(theta, size, corners):
    """Written as loops over places."""
    h, w = size[2:]
    y = np.empty((len(theta), h, w, 2), theta.dtype)
    for i in range(h):
        for j in range(w):
            v, u = (
                0.0
                if n == 1
                else 2 * k / (n - 1) - 1
                if corners
                else (2 * k + 1) / n - 1
                for k, n in ((i, h), (j, w))
            )
            y[:, i, j] = theta @ np.array([u, v, 1.0], theta.dtype)
    return y


CASES = [
    case(
        ops.affine_grid,
        (2, 2, 3),
        size=size,
        align_corners=corners,
        expect=lambda theta, s=size, c=corners: plane(theta, s, c),
    )
    for size in ((2, 1, 3, 4), (2, 5, 1, 2))
    for corners in (False, True)
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_a_theta_of_another_size_is_refused():
    with pytest.raises(InputError, match=r"affine_grid: expected theta \(1, 2, 3\)"):
        ops.affine_grid(np.zeros((1, 3, 4)), size=(1, 1, 2, 2))
