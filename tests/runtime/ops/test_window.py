"""Borders around arrays, and crops."""

from itertools import product

import numpy as np
import pytest

from burnish.ops._kernels.window import padded

PADS = [
    (n, b, a) for n, b, a in product(range(1, 4), *[range(-4, 5)] * 2) if n + b >= -a
]


@pytest.mark.parametrize(("n", "before", "after"), PADS)
def test_padded_is_a_part_of_an_endless_array(n, before, after):
    x = np.arange(1.0, n + 1)
    endless = np.pad(x, 10)
    expected = endless[10 - before : 10 + n + after]
    np.testing.assert_array_equal(padded(x, ((before, after),)), expected)
