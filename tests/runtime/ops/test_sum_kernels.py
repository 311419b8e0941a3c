"""Kernels of reductions, rows added by number, losses, and slopes that broadcast.

`tests/runtime/plan/test_sanitized.py` runs this file under the compiler's checks too.
"""

from __future__ import annotations

import numpy as np
import pytest

from burnish import ops
from burnish.errors import InputError
from burnish.ops import _places
from burnish.ops.arrays.gather import scatter_rows
from burnish.ops.arrays.index import put_rows
from burnish.ops.loss import huber
from burnish.ops.normalization import group_norm_of
from tests.runtime.ops.kernels import (
    checked_by_differences,
    close,
    pulled,
    same_for_any_threads,
    values,
    wide,
)

pytestmark = pytest.mark.usefixtures("launched")


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [-1, 2, (1, 2), (2, -2), (-1,)])
@pytest.mark.parametrize("op", [ops.reduce_sum, ops.reduce_mean, ops.reduce_max])
def test_reductions(op, axes, keepdims, launched):
    x = values(5, 30, 540)
    options = {"axes": axes, "keepdims": keepdims}
    (y,) = same_for_any_threads(lambda: op(x, **options))
    close(y, op.value(*wide([x]), **options), 64)
    assert set(launched) == {"reduce"}


@pytest.mark.parametrize("op", [ops.reduce_sum, ops.reduce_mean, ops.reduce_max])
@pytest.mark.parametrize("columns", [64, 67, 150])
@pytest.mark.parametrize("axes", [0, (1, 0), (0, -2)])
def test_reductions_of_more_rows_than_columns(axes, columns, op, launched):
    x = values(17, 31, columns)
    if axes == 0:
        x = x.reshape(-1, columns)
    for keepdims in (False, True):
        options = {"axes": axes, "keepdims": keepdims}
        (y,) = same_for_any_threads(lambda given=options: op(x, **given))
        close(y, op.value(*wide([x]), **options), 64)
    x[(3,) * x.ndim], x[(5,) * x.ndim] = np.nan, np.inf
    close(op(x, axes=axes), op.value(*wide([x]), axes=axes), 64)
    assert set(launched) == {"reduce"}


@pytest.mark.parametrize("op", [ops.reduce_sum, ops.reduce_mean, ops.reduce_max])
def test_reductions_of_odd_numbers(op):
    x = values(4, 540)
    x[0, 3], x[1, 539], x[2, 7] = np.nan, np.inf, -np.inf
    for axes in (0, 1):
        close(op(x, axes=axes), op.value(*wide([x]), axes=axes), 64)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [None, (0, 1), (-1, 0), [1, 0]])
@pytest.mark.parametrize("op", [ops.reduce_sum, ops.reduce_mean])
def test_sums_of_everything(op, axes, keepdims, launched):
    x = values(70, 333)
    options = {"axes": axes, "keepdims": keepdims}
    (y,) = same_for_any_threads(lambda: op(x, **options))
    close(np.asarray(y), op.value(*wide([x]), **options), 64)
    assert set(launched) == {"program"}


def test_sums_of_everything_with_odd_numbers():
    x = values(3000)
    for odd in (np.inf, np.nan):
        x[2999] = odd
        assert np.array_equal(ops.reduce_sum(x), odd, equal_nan=True)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize(
    "few", [(64, 1, 1), (1, 64, 1, 1), (7, 1), (5, 64, 7, 1), (5, 1, 1, 1)]
)
def test_one_number_for_each_row_or_plane(name, few, launched):
    x, other = values(5, 64, 7, 33), values(*few, seed=1) + 3
    op = getattr(ops, name)
    for a, b in ((x, other), (other, x)):
        (y,) = same_for_any_threads(lambda a=a, b=b: op(a, b))
        assert np.array_equal(y, op.value(a, b))
    assert set(launched) == {"program"}


def test_products_that_the_kernel_does_not_take(launched):
    x, few = values(5, 6, 33), values(6, 1, seed=1)
    for a, b in (
        (x, few.astype(np.float64)),
        (x.swapaxes(0, 1), few[:5]),
        (x[:, :1], values(1, 6, 1)),
        (x, np.float32(2)),
        (x, x[:1]),
    ):
        assert np.array_equal(ops.mul(a, b), a * b)
    assert not launched


def test_reductions_that_the_kernel_does_not_take(launched):
    x = values(6, 7, 80)
    for a, axes in (
        (x, (0, 2)),
        (x.swapaxes(0, 2), 2),
        (x, ()),
        (x, 0),
        (x, 2),
    ):
        y = ops.reduce_sum(a, axes=axes)
        close(np.asarray(y), ops.reduce_sum.value(*wide([a]), axes=axes), 64)
    assert not launched


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(4, 1), (5, 70), (3, 7, 33)])
def test_running_sums(shape, reverse, exclusive, launched):
    x = values(*shape)
    options = {"axis": len(shape) - 1, "reverse": reverse, "exclusive": exclusive}
    (y,) = same_for_any_threads(lambda: ops.cum_sum(x, **options))
    close(y, ops.cum_sum.value(*wide([x]), **options), 1)
    x[1, ..., shape[-1] // 2], x[2, ..., 0] = np.inf, np.nan
    close(ops.cum_sum(x, **options), ops.cum_sum.value(*wide([x]), **options), 1)
    assert set(launched) == {"cum_sum"}


@pytest.mark.parametrize("repeats", [1, 30, 900])
def test_rows_added_by_number(repeats, launched):
    rows, count = 13, 11 * repeats
    x = values(count, 3, 7)
    places = np.random.default_rng(2).integers(-rows, rows, count)
    (y,) = same_for_any_threads(lambda: put_rows(x, places, rows=rows))
    close(y, put_rows.value(*wide([x]), places, rows=rows), 64)
    assert set(launched) == (set() if repeats == 900 else {"add_rows"})


@pytest.mark.parametrize("repeats", [1, 4, 5])
def test_elements_added_by_number(repeats, launched):
    x, rows = values(97 * repeats), 97
    places = np.random.default_rng(3).integers(-rows, rows, x.size)
    (y,) = same_for_any_threads(lambda: put_rows(x, places, rows=rows))
    close(y, put_rows.value(*wide([x]), places, rows=rows), 64)
    assert set(launched) == (set() if repeats == 5 else {"add_rows"})


def test_an_element_that_many_are_added_to_loses_no_digits(launched):
    size = 1 << 16
    places, x = np.random.default_rng(8).integers(-size, size, size), values(size)
    places[::2], x[::2] = 3, 0.1
    for y in (
        put_rows(x, places, rows=size),
        scatter_rows(np.zeros_like(x), places, x, reduction="add"),
    ):
        close(y, put_rows.value(*wide([x]), places, rows=size), 64)
    assert not launched


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("rest", [(), (3,), (2, 17)])
@pytest.mark.parametrize("count", [(1,), (5, 4), (200,)])
def test_rows_are_set_and_added_to_by_number(count, rest, reduction, launched):
    x, updates = values(29, *rest), values(*count, *rest, seed=1)
    places = np.random.default_rng(4).integers(-29, 29, count)
    (y,) = same_for_any_threads(
        lambda: scatter_rows(x, places, updates, reduction=reduction)
    )
    exact = scatter_rows.value(
        *wide([x]), places.ravel(), *wide([updates.reshape(-1, *rest)]),
        reduction=reduction,
    )  # fmt: skip
    close(y, exact, 64)
    is_exact = reduction == "add" and updates.size > 4 * x.size
    assert ("set_rows" in launched) != is_exact


def test_rows_that_the_kernel_does_not_set(launched):
    x, places = values(6, 5), np.array([0, -1])
    for args, options in (
        ((x, places, np.float32(2)), {}),
        ((x, places, values(5)), {}),
        ((x, places, values(2, 5).astype(np.float64)), {}),
        ((x, places.astype(np.int32), values(2, 5)), {}),
        ((x, places, values(2, 5)), {"reduction": "max"}),
        ((x, np.zeros(0, np.int64), values(0, 5)), {}),
    ):
        y = scatter_rows(*args, **options)
        assert np.array_equal(y, scatter_rows.value(*args, **options))
    with pytest.raises(InputError, match="expected -6 to 5"):
        scatter_rows(x, np.array([6]), values(1, 5))
    assert not launched


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(7,), (4, 6, 5), (3, 0, 2)])
def test_elements_along_an_axis(shape, axis, launched, monkeypatch):
    monkeypatch.setattr(_places, "_FEW", 0)
    axis = axis if axis < len(shape) else 0
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    sizes = list(shape)
    sizes[axis] = 9 if shape[axis] else 0
    given = np.random.default_rng(5).integers(
        -max(shape[axis], 1), max(shape[axis], 1), sizes
    )
    (y,) = same_for_any_threads(lambda: ops.gather_elements(x, given, axis=axis))
    assert np.array_equal(y, np.take_along_axis(x, given, axis))
    assert set(launched) == {"places_along"}


def test_elements_along_an_axis_out_of_range_are_refused(launched, monkeypatch):
    monkeypatch.setattr(_places, "_FEW", 0)
    for wrong in (-5, 4):
        with pytest.raises(InputError, match="expected -4 to 3 for axis 0"):
            ops.gather_elements(values(4, 2), np.array([[0, wrong]]), axis=0)


def test_rows_of_numbers_out_of_range_are_refused(launched):
    with pytest.raises(Exception, match="out of bounds"):
        put_rows(values(2, 3), np.array([0, 4]), rows=4)
    assert not launched


@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize("delta", [0.4, 1.0, np.inf])
def test_huber(delta, summed, launched):
    a, b = values(9, 70), values(9, 70, seed=1)
    a[3, 4] = np.nan if not summed else 0
    options = {"delta": delta, "summed": summed}
    (y,) = same_for_any_threads(lambda: huber(a, b, **options))
    close(np.asarray(y), np.asarray(huber.value(*wide([a, b]), **options)), 64)
    g = values(*np.shape(y), seed=2)
    given = pulled(huber, g, y, (a, b), options)
    wanted = pulled(huber, *wide([g, y]), wide([a, b]), options)
    for ours, want in zip(given, wanted, strict=True):
        close(ours, want)
    assert set(launched) == {"program"}


@pytest.mark.parametrize("shape", [(), (6, 1, 1), (3, 6, 4, 5), (5,), (1, 1, 4, 1)])
def test_a_slope_that_broadcasts(shape, launched):
    x, slope = values(3, 6, 4, 5), values(*shape, seed=1)
    x[0, 0, 0, :2] = np.nan, np.inf
    (y,) = same_for_any_threads(lambda: ops.prelu_of(x, slope))
    close(y, ops.prelu_of.value(*wide([x, slope])))
    assert launched
    g = values(*x.shape, seed=2)
    dx, _ = ops.prelu_of.pull(g, y, (x, slope), {}, [True, False])
    wanted = ops.prelu_of.pull(
        *wide([g, y]), tuple(wide([x, slope])), {}, [True, False]
    )
    close(dx, wanted[0])


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("groups", [1, 3, 6])
def test_the_gradient_of_group_norm(groups, scaled, launched):
    x, g = values(3, 6, 5, 7), values(3, 6, 5, 7, seed=1)
    scales = [values(6, seed=2), values(6, seed=3)] if scaled else [None, None]
    args, options = (x, *scales), {"num_groups": groups, "eps": 1e-5}
    y = group_norm_of(*args, **options)
    launched.clear()
    parts = same_for_any_threads(lambda: pulled(group_norm_of, g, y, args, options))
    assert set(launched) == {"group_norm_gradient"}
    checked_by_differences(group_norm_of, args, g, parts, options, 1e-3)
