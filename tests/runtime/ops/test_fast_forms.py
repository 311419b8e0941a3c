"""Forms chosen for speed: as exact as plain ones, and alike where numbers are odd."""

import numpy as np
import pytest

from burnish import Tensor, ops
from tests.harness.operators import case


def values(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


ROWS = {
    "a length of whole strips": values(5, 64),
    "and a rest": values(5, 1003),
    "three axes, strided": np.repeat(values(2, 3, 90), 2, axis=2)[..., ::2],
    "one row": values(200001),
    "float64": values(3, 77).astype(np.float64),
    "half precision": values(3, 77).astype(np.float16),
    "no rows": values(0, 40),
}


@pytest.mark.parametrize("x", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_along_rows(x, reverse):
    wide = x.astype(np.float64)
    want = (wide[..., ::-1].cumsum(-1)[..., ::-1] if reverse else wide.cumsum(-1)) + 0
    y = ops.cum_sum(x, axis=-1, reverse=reverse)
    assert y.dtype == x.dtype
    scale = np.finfo(x.dtype).eps * x.shape[-1] ** 0.5
    np.testing.assert_allclose(y, want, 0, 4 * scale * max(abs(wide).max(initial=0), 1))


@pytest.mark.parametrize("shape", [(40, 517), (20003,), (3, 90, 130), (300, 64, 1)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
@pytest.mark.parametrize("best", ["maximum", "minimum"])
def test_the_best_so_far(shape, dtype, best):
    x = (20 * values(*shape)).astype(dtype)
    if dtype == "float32":
        x[x > 55] = np.nan
    found = {"maximum": ops.cum_max, "minimum": ops.cum_min}[best]
    for axis in range(len(shape)):
        want = getattr(np, best).accumulate(x, axis)
        np.testing.assert_array_equal(found(x, axis=axis), want)
        turned = np.asfortranarray(x)
        np.testing.assert_array_equal(found(turned, axis=axis), want)


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [0, 5, 20, 99])
def test_running_sums_before_an_odd_number_are_finite(odd, place):
    x = values(4, 100)
    x[2, place] = odd
    np.testing.assert_allclose(ops.cum_sum(x, axis=1), x.cumsum(1), 1e-5, 1e-5)


def test_running_sums_may_overflow():
    x = np.full((1, 64), 3e37, np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(np.isinf(ops.cum_sum(x, axis=1)[0, 32:]), True)


def in_order(x, k, largest):
    """Sorting all of it, NaN above everything and the first of equal ones first."""
    rows = x if x.dtype.kind != "f" else np.where(np.isnan(x), np.inf, x)
    above = np.isnan(x) if x.dtype.kind == "f" else np.zeros_like(x, bool)
    sign = -1 if largest else 1
    keys = (np.broadcast_to(np.arange(x.shape[-1]), x.shape), sign * rows, sign * above)
    return np.lexsort(keys)[..., :k]


TIES = np.random.default_rng(1).integers(-3, 4, (6, 500))
ODD = np.where(TIES == 3, np.nan, np.where(TIES == -3, -np.inf, TIES))
CHOICES = {
    "floats": values(6, 500),
    "integers that tie": TIES,
    "small integers": TIES.astype(np.int8),
    "floats that tie": TIES.astype(np.float32),
    "NaN and infinities": ODD,
    "infinities": np.where(TIES > 0, np.inf, -np.inf),
    "one NaN": np.where(np.arange(3000).reshape(6, 500) == 700, np.nan, values(6, 500)),
    "strided": np.asfortranarray(values(6, 500)),
    "the least integers": np.full((2, 500), np.iinfo(np.int64).min),
}


@pytest.mark.parametrize("x", CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 5, 15, 16, 100])
def test_the_greatest_few(x, k, largest):
    before = x.copy()
    top, places = ops.top_k(x, k, largest=largest)
    same = x.astype(np.float64) if x.dtype.kind == "i" and abs(x).max() < 9 else x
    want = in_order(same, k, largest) if x.min() > -1e9 or x.dtype.kind == "f" else None
    if want is None:
        want = np.broadcast_to(np.arange(k), places.shape)
    np.testing.assert_array_equal(places, want)
    np.testing.assert_array_equal(top, np.take_along_axis(x, want, -1))
    np.testing.assert_array_equal(x, before)


def normal(x, axes, eps=1e-5):
    x = x.astype(np.float64)
    apart = x - x.mean(axes, keepdims=True)
    return apart / np.sqrt((apart**2).mean(axes, keepdims=True) + eps)


@pytest.mark.parametrize("mean", [0, 1, 3, 100, 1e4])
@pytest.mark.parametrize("shape", [(700, 96), (3, 40000), (2, 3)], ids=str)
def test_rows_far_from_zero(shape, mean):
    x = values(*shape) + np.float32(mean)
    weight, bias = values(shape[1]), values(2, shape[1])[1]
    bound = 3e-6 + 3e-7 * mean
    y = ops.layer_norm(x, shape[1], weight, bias)
    np.testing.assert_allclose(y, normal(x, 1) * weight + bias, 0, 8 * bound)
    groups = x.reshape(1, 1, *shape).repeat(2, axis=1)
    np.testing.assert_allclose(
        ops.group_norm(groups, 2)[0, 1],
        normal(groups, (2, 3))[0, 1],
        0,
        bound,
    )
    leaf, slope = Tensor(x).require_grad(), np.cos(np.arange(x.size)).reshape(shape)
    found = (
        ops.layer_norm(leaf, shape[1], weight, bias) * slope.astype(np.float32)
    ).sum()
    wide = Tensor(x.astype(np.float64)).require_grad()
    exact = (ops.layer_norm(wide, shape[1], weight, bias) * slope).sum()
    got, want = leaf.grad(found.backward()), wide.grad(exact.backward())
    np.testing.assert_allclose(got.numpy(), want.numpy(), 0, 20 * bound)


def test_equal_rows_have_no_deviation():
    x = np.full((40, 128), 1000, np.float32)
    np.testing.assert_array_equal(ops.layer_norm(x, 128), 0)
    np.testing.assert_array_equal(ops.group_norm(x[None], 4), 0)


def test_an_odd_row_leaves_the_others_alone():
    x = values(50, 64)
    want = ops.layer_norm(x, 64)
    x[3, 5], x[7] = np.inf, np.nan
    y = ops.layer_norm(x, 64)
    assert np.isnan(y[[3, 7]]).all()
    rest = np.delete(np.arange(50), [3, 7])
    np.testing.assert_allclose(y[rest], want[rest], 1e-5, 1e-6)


@pytest.mark.parametrize("op", [ops.gelu, ops.silu], ids=["gelu", "silu"])
def test_slopes_at_all_sizes(op):
    """What a slope takes from the value, it takes right near 0 and far out too."""
    size = np.concatenate([[0.0, 1e-45, 1e-38, 1e-20], np.geomspace(1e-10, 60, 300)])
    x = np.concatenate([-size, size]).astype(np.float32)
    far = {"some are 0": x, "none is": x[abs(x) > 1e-19]}
    for x in far.values():
        leaf, wide = (
            Tensor(x.astype(d)).require_grad() for d in ("float32", "float64")
        )
        got, want = (a.grad(op(a).sum().backward()).numpy() for a in (leaf, wide))
        np.testing.assert_allclose(got, want, 1e-6, 6e-7)


@pytest.mark.parametrize(
    "case",
    [
        case(ops.huber, (3, 4), (3, 4)),
        case(ops.huber, (3, 4), (3, 4), delta=0.7, summed=True),
        case(ops.huber, (3, 4), (3, 4), delta=np.inf, summed=True),
    ],
    ids=str,
)
def test_huber_and_its_gradients(case):
    case.check()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 5, 200003])
def test_summed_huber_is_the_sum(size, dtype):
    a, b = (row.astype(dtype) for row in values(2, size) * 0.02)
    apart = a.astype(np.float64) - b
    y = ops.huber(a, b, delta=0.03, summed=True)
    near = np.clip(apart, -0.03, 0.03)
    assert y.dtype == dtype
    rtol = max(8 * np.finfo(dtype).eps, 1e-14)
    np.testing.assert_allclose(y, (near * (apart - near / 2)).sum(), rtol)


MANY = 200003
SUMS = {
    "all": (lambda x: ops.reduce_sum(x), (MANY,)),
    "rows": (lambda x: ops.reduce_sum(x, axes=1), (3, MANY)),
    "columns": (lambda x: ops.reduce_sum(x, axes=0), (MANY, 3)),
    "between": (lambda x: ops.reduce_sum(x, axes=1), (2, MANY, 3)),
    "some columns": (lambda x: ops.reduce_sum(x, axes=0), (4096, 30)),
    "some rows": (lambda x: ops.reduce_sum(x, axes=1), (30, 4096)),
    "some between": (lambda x: ops.reduce_sum(x, axes=1), (4, 4000, 6)),
    "channels": (lambda x: ops.reduce_sum(x, axes=(0, 2)), (2000, 3, 50)),
    "every other axis": (
        lambda x: ops.reduce_sum(x, axes=(2, 0), keepdims=True),
        (600, 3, 700, 2),
    ),
    "strided": (lambda x: ops.reduce_sum(x[::2], axes=0), (2 * MANY, 3)),
    "mean": (lambda x: ops.reduce_mean(x, axes=0), (MANY, 3)),
    "squares": (lambda x: ops.reduce_sum_square(x, axes=0), (MANY, 3)),
    "length": (lambda x: ops.reduce_l2(x, axes=0), (MANY, 3)),
    "exponentials": (lambda x: ops.reduce_log_sum_exp(x, axes=0), (MANY, 3)),
    "broadcast": (lambda x: ops.sum_to(x, shape=(1, 3)), (MANY, 3)),
    "the last of a chain": (lambda x: ops.cum_sum(x, axis=0)[-1], (MANY, 3)),
    "and of a wide one": (lambda x: ops.cum_sum(x, axis=0)[-1], (2003, 200)),
    "and of a row": (lambda x: ops.cum_sum(x, axis=1)[:, -1], (3, MANY)),
    "einsum": (lambda x: ops.einsum("ij->j", x), (MANY, 3)),
    "rows of an index": (
        lambda x: ops.put_rows(x, np.zeros(len(x), np.int64), rows=1),
        (MANY, 3),
    ),
}


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("of", "shape"), SUMS.values(), ids=SUMS)
def test_sums_of_many_numbers(of, shape, dtype):
    """No chain of additions: its error would grow with the length, and by machine."""
    size = 0.1 if dtype == np.float16 else 1
    x = (size * np.random.default_rng(0).uniform(0, 1, shape)).astype(dtype)
    y = of(x)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, of(x.astype(np.float64)), 8 * np.finfo(dtype).eps)


SHARED = [(ops.layer_norm_from, 1), (ops.layer_norm_from, 2), (ops.rms_norm_from, 1)]


@pytest.mark.parametrize(("op", "place"), SHARED)
def test_gradients_of_what_many_rows_share(op, place):
    x, weight = values(MANY, 8), np.ones(8, np.float32)
    found = []
    for dtype in (np.float32, np.float64):
        given = [x, weight, weight][: 3 if op is ops.layer_norm_from else 2]
        leaves = [Tensor(a.astype(dtype)).require_grad() for a in given]
        loss = (op(*leaves) * (1 + np.cos(x)).astype(dtype)).sum()
        found.append(leaves[place].grad(loss.backward()).numpy())
    np.testing.assert_allclose(*found, 3e-6, 1e-6 * abs(found[1]).max())


def test_huber_of_odd_numbers():
    a = np.array([np.inf, -np.inf, np.nan, 1e38], np.float32)
    for delta, large in ((1.0, 1e38), (np.inf, np.inf)):
        for i, want in enumerate([np.inf, np.inf, np.nan, large]):
            there, none = a[i : i + 1], np.zeros(1, np.float32)
            total = ops.huber(there, none, delta=delta, summed=True)
            np.testing.assert_allclose(total, want, 1e-6)


@pytest.mark.parametrize("name", ["relu", "relu6", "hard_sigmoid", "hard_swish"])
def test_ramps_of_odd_numbers(name):
    """A slope is all or nothing: nothing of an infinite gradient where it is flat."""
    x, op = np.array([-9, -0.0, 0, 2e38], np.float32), getattr(ops, name)
    assert np.isfinite(op(x)).all()
    if name != "hard_swish":
        leaf = Tensor(x[:2]).require_grad()
        g = Tensor(np.array([np.inf, 1], np.float32))
        assert leaf.grad(op(leaf).backward(g)).numpy()[0] == 0
