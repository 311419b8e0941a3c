"""Kernels along axes: resizing, its adjoint and that of windows, against float64.

`tests/runtime/plan/test_sanitized.py` runs this file under the compiler's checks too.
"""

from __future__ import annotations

import numpy as np
import pytest

from burnish.ops import resample, resample_adjoint
from burnish.ops._cpu import along
from burnish.ops._kernels.axis_tables import adjoint, axis_table, dense
from burnish.ops.spatial.pool import window_spread
from tests.runtime.ops.kernels import close, same_for_any_threads, values, wide

pytestmark = pytest.mark.usefixtures("launched")


def table(n, out, mode):
    """Places and weights that resize an axis of n places to `out`."""
    found = axis_table(
        n, out, out / n, mode=mode, coordinates="half_pixel", nearest_mode="floor",
        cubic_coeff_a=-0.75, antialias=False, exclude_outside=False, roi=(0.0, 1.0),
    )  # fmt: skip
    return found.places, found.weight


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize(
    ("shape", "axis", "out"),
    [((2, 3, 7, 9), 2, 15), ((4, 11, 33), 1, 6), ((13, 16), 0, 13), ((3, 5, 8), -2, 9)],
)
def test_resizing_and_its_adjoint(shape, axis, out, mode, launched):
    index, weight = table(shape[axis], out, mode)
    x = values(*shape)
    (y,) = same_for_any_threads(lambda: resample(x, index, weight, axis=axis))
    close(y, resample.value(*wide([x]), index, weight, axis=axis))
    options = {"axis": axis, "size": shape[axis]}
    (dx,) = same_for_any_threads(lambda: resample_adjoint(y, index, weight, **options))
    close(dx, resample_adjoint.value(*wide([y]), index, weight, **options))
    assert set(launched) == {"resample"}


@pytest.mark.parametrize("case", ["narrow", "absent place", "many taps"])
def test_what_no_kernel_resizes(case, launched):
    x = values(4, 40, along._WIDE - 1 if case == "narrow" else along._WIDE)
    index, weight = table(40, 2 if case == "many taps" else 50, "linear")
    if case == "absent place":
        with pytest.raises(IndexError):
            resample(x, index + 40, weight, axis=1)
    elif case == "many taps":
        index = np.repeat(np.arange(2), 20)[:, None]
        y = resample_adjoint(x, index, np.ones((40, 1)), axis=1, size=2)
        close(y, resample_adjoint.value(*wide([x]), index, np.ones((40, 1)), axis=1,
                                        size=2))  # fmt: skip
    else:
        resample(x, index, weight, axis=1)
    assert not launched


def test_the_adjoint_of_a_table_is_its_matrix_transposed():
    index, weight = table(9, 14, "cubic")
    found = adjoint(index, weight, 9, 64)
    assert found is not None
    places, shares = found
    np.testing.assert_allclose(dense(places, shares, 14), dense(index, weight, 9).T)
    assert adjoint(index, weight, 9, places.shape[1] - 1) is None


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((17,), {"kernel_size": 3, "stride": 2, "padding": 1}),
        ((9, 12), {"kernel_size": (2, 3), "stride": (1, 2), "dilation": (3, 1)}),
        ((8, 7), {"kernel_size": 2, "stride": 3}),
        ((5, 6, 7), {"kernel_size": 2, "padding": 1}),
    ],
)
def test_sums_of_windows_spread_again(sizes, options, ceil_mode, launched):
    given = {**options, "ceil_mode": ceil_mode, "sizes": sizes}
    w = along.pool.spread_window(**window_spread.defaults | given)
    g = values(2, 5, *w.out)
    (x,) = same_for_any_threads(lambda: window_spread(g, **given))
    close(x, window_spread.value(*wide([g]), **given))
    assert set(launched) == {"resample"}


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_not_finite_goes_to_its_own_windows(odd, launched):
    options = {"kernel_size": 3, "stride": 2, "padding": 1, "sizes": (16, 17)}
    g = values(2, 20, 8, 9)
    g[0, 0, 0, 0] = g[1, 3, 4, 5] = odd
    close(window_spread(g, **options), window_spread.value(*wide([g]), **options))
    assert set(launched) == {"resample"}
