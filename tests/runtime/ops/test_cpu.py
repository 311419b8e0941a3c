"""Operators' kernels of the C library: against float64 and central differences.

`tests/runtime/plan/test_sanitized.py` runs this file under the compiler's checks too.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import burnish
from burnish.errors import InputError
from burnish.kernels import direct
from burnish.ops import max_pool
from burnish.ops._cpu import convolution
from burnish.ops._kernels.slopes import gated
from burnish.ops.normalization import channel_norm
from burnish.ops.spatial.adaptive import (
    adaptive_max_pool_with_indices as adaptive_places,
)
from burnish.ops.spatial.conv import conv, conv_input_gradient, conv_weight_gradient
from tests.runtime.ops.kernels import (
    checked_by_differences,
    close,
    pulled,
    same_for_any_threads,
    values,
    wide,
)

pytestmark = pytest.mark.usefixtures("launched")


# --- convolutions ---


class Drawn:
    """A convolution of random sizes, and what it is called with."""

    def __init__(self, seed, rank):
        d = np.random.default_rng(seed)
        self.groups = int(d.choice([1, 1, 2, 3]))
        ins, outs = (int(d.choice([1, 5, 6, 13, 33])) for _ in range(2))
        kernel = [int(d.integers(1, 5 if rank < 3 else 3)) for _ in range(rank)]
        if self.groups > 1 and ins == 1:
            ins = 2  # else it is depthwise
        self.options = {
            "stride": tuple(int(d.integers(1, 4)) for _ in range(rank)),
            "padding": tuple((int(d.integers(4)), int(d.integers(3))) for _ in kernel),
            "dilation": tuple(int(d.integers(1, 3)) for _ in range(rank)),
            "groups": self.groups,
        }
        spans = [
            (k - 1) * e + 1
            for k, e in zip(kernel, self.options["dilation"], strict=True)
        ]
        self.sizes = tuple(
            max(1, span - sum(pad)) + int(d.choice([0, 1, 6, 15]))
            for span, pad in zip(spans, self.options["padding"], strict=True)
        )
        count = int(d.choice([1, 2, 5]))
        self.x = values(count, ins * self.groups, *self.sizes, seed=seed)
        self.weight = values(outs * self.groups, ins, *kernel, seed=seed + 1)
        self.bias = values(outs * self.groups, seed=seed + 2)


@pytest.fixture
def always(monkeypatch):
    """Plans are used also where NumPy's products are faster."""
    for name in ("_FEW_PRODUCTS", "_FEW_INS", "_FEW_OUTS", "_FEW_TAPS"):
        monkeypatch.setattr(convolution, name, 0)


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(rank, seed, launched, always):
    drawn = Drawn(seed, rank)
    args, options = (drawn.x, drawn.weight, drawn.bias), drawn.options
    (y,) = same_for_any_threads(lambda: conv(*args, **options))
    assert "conv" in launched
    close(y, conv.value(*wide(args), **options), 64)
    g = values(*y.shape, seed=9)
    launched.clear()
    given = {**options, "sizes": drawn.sizes}
    (dx,) = same_for_any_threads(lambda: conv_input_gradient(g, drawn.weight, **given))
    assert "conv" in launched
    close(dx, conv_input_gradient.value(*wide([g, drawn.weight]), **given), 64)
    given = {**options, "kernel": drawn.weight.shape[2:]}
    (dw,) = same_for_any_threads(lambda: conv_weight_gradient(drawn.x, g, **given))
    assert "conv_weight" in launched
    close(dw, conv_weight_gradient.value(*wide([drawn.x, g]), **given), 64)
    checked_by_differences(conv, args, g, [dx, dw, None], options)


def test_deep_convolutions(launched, always):
    x, weight = values(3, 150, 9, 11), values(40, 150, 3, 3, seed=1)
    options = {"padding": 1, "stride": 2}
    y = conv(x, weight, **options)
    close(y, conv.value(*wide([x, weight]), **options), 64)
    g = values(*y.shape, seed=2)
    given = {"sizes": (9, 11), "padding": [[1, 1], [1, 1]], "stride": [2, 2]}
    dx = conv_input_gradient(g, weight, **given)
    close(dx, conv_input_gradient.value(*wide([g, weight]), **given), 64)
    assert launched.count("conv") == 2


@pytest.mark.parametrize(
    ("shape", "padding", "kernel"),
    [
        ((4, 33, 70), 0, "matmul"),
        ((5, 40, 7, 9), 0, "matmul"),
        ((4, 20, 3, 5, 7), 0, "matmul"),
        ((4, 33, 70), 1, "conv"),
        ((3, 40, 7, 9), 0, "conv"),
    ],
)
@pytest.mark.parametrize("has_bias", [False, True])
def test_large_maps_are_multiplied_as_they_are(
    shape, padding, kernel, has_bias, launched, monkeypatch
):
    monkeypatch.setattr(convolution, "_FEW_PRODUCTS", 0)
    monkeypatch.setattr(convolution, "_LARGE", 0)
    ones = (1,) * (len(shape) - 2)
    args = values(*shape), values(18, shape[1], *ones, seed=1)
    args += (values(18, seed=2),) if has_bias else ()
    (y,) = same_for_any_threads(lambda: conv(*args, padding=padding))
    assert set(launched) & {"conv", "matmul"} == {kernel}
    close(y, conv.value(*wide(args), padding=padding), 64)


def test_places_that_no_tap_reaches_are_zero(launched, always):
    g, weight = values(2, 8, 3, 3), values(8, 7, 1, 1, seed=1)
    given = {"sizes": (7, 8), "padding": ((0, 0), (0, 0)), "stride": 3}
    dx = conv_input_gradient(g, weight, **given)
    assert "conv" in launched
    close(dx, conv_input_gradient.value(*wide([g, weight]), **given))
    assert not dx[:, :, 1::3].any()


@pytest.mark.parametrize("padding", [0, 1])
def test_convolutions_of_one_tap_that_give_few_channels(padding, launched):
    x, weight = values(2, 64, 17, 9), values(24, 64, 1, 1, seed=1)
    y = conv(x, weight, padding=padding)
    assert launched.count("conv") == 1
    close(y, conv.value(*wide([x, weight]), padding=padding), 64)
    given = {"sizes": (17, 9), "padding": ((padding, padding),) * 2}
    g, more = values(*y.shape, seed=2), values(24, 16, 1, 1, seed=3)
    close(
        conv_input_gradient(g, more, **given),
        conv_input_gradient.value(*wide([g, more]), **given),
        64,
    )
    assert launched.count("conv") == 2
    for few in (conv_input_gradient(g, weight, **given), conv(x[:, :8], weight[:, :8])):
        assert len(few) == 2
    assert launched.count("conv") == 2, "more channels are products of NumPy"


def test_one_plan_serves_calls_at_the_same_time(always):
    given = [
        (values(2, 6, 30, 31, seed=i), values(8, 6, 3, 3, seed=i)) for i in range(8)
    ]
    wanted = [conv(x, weight, padding=1) for x, weight in given]
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda pair: conv(*pair, padding=1), given * 4)]
    for y, want in zip(found, wanted * 4, strict=True):
        np.testing.assert_array_equal(y, want)


@pytest.fixture(params=[True, False], ids=["planes", "blocks"])
def thin(request, always, monkeypatch):
    """The kernels of depthwise convolutions: plane by plane, and in blocks."""
    monkeypatch.setattr(convolution, "_is_thin", lambda x, w: request.param)
    both = ("depthwise", "depthwise_weight"), ("window", "window_weight")
    return both[0] if request.param else both[1]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_depthwise(rank, seed, launched, thin):
    drawn = Drawn(seed, rank)
    c, many = max(2, drawn.x.shape[1] % 19), 1 + seed % 2
    x, options = values(len(drawn.x), c, *drawn.sizes), {**drawn.options, "groups": c}
    weight = values(c * many, 1, *drawn.weight.shape[2:], seed=1)
    bias = values(c * many, seed=2)
    (y,) = same_for_any_threads(lambda: conv(x, weight, bias, **options))
    whole, sums = thin if many == 1 else ("depthwise", "depthwise_weight")
    assert whole in launched
    close(y, conv.value(*wide([x, weight, bias]), **options), 64)
    g = values(*y.shape, seed=9)
    given = {**options, "kernel": weight.shape[2:]}
    (dw,) = same_for_any_threads(lambda: conv_weight_gradient(x, g, **given))
    assert sums in launched or not dw.any()
    close(dw, conv_weight_gradient.value(*wide([x, g]), **given), 64)
    given = {**options, "sizes": drawn.sizes}
    (dx,) = same_for_any_threads(lambda: conv_input_gradient(g, weight, **given))
    close(dx, conv_input_gradient.value(*wide([g, weight]), **given), 64)
    checked_by_differences(conv, (x, weight, bias), g, [dx, dw, None], options)


@pytest.mark.parametrize(
    ("shape", "weight", "groups", "options"),
    [
        ((3, 12, 9, 35), (15, 4, 3, 3), 3, {"padding": 1}),
        ((2, 6, 30), (4, 3, 5), 2, {"padding": ((0, 3),), "dilation": 2}),
        ((1, 4, 26, 25), (4, 2, 2, 1), 2, {"padding": (1, 0)}),
    ],
)
def test_groups_of_few_channels_go_plane_by_plane(
    shape, weight, groups, options, launched
):
    x, weight, bias = values(*shape), values(*weight, seed=1), values(weight[0], seed=2)
    x[0, 0].flat[7] = np.nan
    given = {**options, "groups": groups}
    (y,) = same_for_any_threads(lambda: conv(x, weight, bias, **given))
    assert set(launched) == {"depthwise"}
    close(y, conv.value(*wide([x, weight, bias]), **given), 64)
    launched.clear()
    conv(x, weight, bias, **given, stride=2)
    assert "depthwise" not in launched


def test_depthwise_of_many_taps_and_places(launched, thin):
    x, weight = values(2, 3, 70, 90), values(3, 1, 5, 7, seed=1)
    options = {"stride": 1, "padding": ((2, 2), (3, 3)), "groups": 3}
    y = conv(x, weight, **options)
    close(y, conv.value(*wide([x, weight]), **options), 64)
    given = {**options, "kernel": (5, 7)}
    dw = conv_weight_gradient(x, y, **given)
    close(dw, conv_weight_gradient.value(*wide([x, y]), **given), 64)
    assert set(thin) <= set(launched)


@pytest.mark.parametrize("stride", [1, 2])
def test_an_infinity_reaches_the_places_that_see_it(stride):
    x, weight = values(2, 4, 9, 11), np.abs(values(4, 1, 3, 3, seed=1))
    x[0, 1, 4, 10] = np.inf
    options = {"padding": ((1, 1), (1, 1)), "groups": 4, "stride": stride}
    y = conv(x, weight, **options)
    close(y, conv.value(*wide([x, weight]), **options), 64)
    g = np.abs(values(*y.shape, seed=2))
    given = {**options, "kernel": (3, 3)}
    dw = conv_weight_gradient(x, g, **given)
    assert np.isfinite(dw[[0, 2, 3]]).all()
    assert np.isinf(dw[1]).any()
    assert not np.isnan(dw).any()


@pytest.mark.parametrize("odd", [np.nan, np.inf])
@pytest.mark.parametrize("groups", [1, 3])
def test_odd_numbers_go_where_the_plain_form_has_them(groups, odd, always):
    x, weight = values(2, 6, 9, 9), values(9, 6 // groups, 3, 3, seed=1)
    x[1, 2, 4, 4] = odd
    options = {"padding": ((1, 1), (1, 1)), "groups": groups}
    with np.errstate(invalid="ignore"):
        y = conv(x, weight, **options)
        close(y, conv.value(*wide([x, weight]), **options), 64)
        g = values(*y.shape, seed=2)
        g[0, 1, 2, 2] = odd
        dx = conv_input_gradient(g, weight, sizes=(9, 9), **options)
        wanted = conv_input_gradient.value(*wide([g, weight]), sizes=(9, 9), **options)
        close(dx, wanted, 64)
    assert np.isfinite(y[0]).all()
    assert np.isfinite(dx[1]).all()


def test_arrays_of_other_sizes_are_refused(launched, always):
    with pytest.raises(InputError):
        conv(values(1, 5, 8, 8), values(4, 6, 3, 3))
    with pytest.raises(InputError):
        conv(values(1, 6, 8, 8), values(4, 6, 3, 3), values(3))
    assert not launched


# --- activations and pooling ---


@pytest.mark.parametrize("count", [1, 7, 8, 31, 1003])
@pytest.mark.parametrize("below", [None, 1.0])
@pytest.mark.parametrize("slope", [1.0, 0.25])
def test_slopes_between_bounds(count, below, slope, launched):
    x, g = values(count), values(count, seed=1)
    x[::5], x[1::7], g[::3] = 0, np.nan, np.nan
    given = {"above": 0.0, "below": below, "slope": slope}
    (y,) = same_for_any_threads(lambda: gated(g, x, **given))
    np.testing.assert_array_equal(y, gated.value(g, x, **given))
    assert set(launched) == {"gate"}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_pooling(rank, seed, launched):
    d = np.random.default_rng(seed)
    kernel = tuple(int(d.integers(1, 4)) for _ in range(rank))
    options = {
        "kernel_size": kernel,
        "stride": tuple(int(d.integers(1, 4)) for _ in kernel),
        "padding": tuple(int(d.integers(0, k // 2 + 1)) for k in kernel),
        "dilation": int(d.integers(1, 3)),
        "ceil_mode": bool(seed % 2),
    }
    x = values(2, 5, *(int(d.integers(7, 20)) for _ in kernel), seed=seed)
    if seed > 3:
        x = np.rint(x)  # many are equal
    (y,) = same_for_any_threads(lambda: max_pool(x, **options))
    np.testing.assert_array_equal(y, max_pool.value(x, **options))
    g = values(*y.shape, seed=1)
    (dx,) = same_for_any_threads(lambda: pulled(max_pool, g, y, (x,), options)[0])
    assert set(launched) <= {"max_windows", "max_pool_gradient"}
    close(dx, pulled(max_pool, *wide([g, y]), tuple(wide([x])), options)[0])


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize(
    ("sizes", "out"), [((9,), 4), ((7, 13), (3, 13)), ((5, 6, 7), (2, 6, 3)), ((3,), 5)]
)
def test_adaptive_max_pooling(sizes, out, equal, launched):
    x = values(2, 3, *sizes)
    if equal:
        x = np.rint(x)
        x[0, 0].flat[1], x[1, 2].flat[:3] = np.nan, -np.inf
    found = same_for_any_threads(lambda: adaptive_places(x, output_size=out))
    wanted = adaptive_places.value(x, output_size=out)
    for ours, want in zip(found, wanted, strict=True):
        assert ours.dtype == want.dtype
        np.testing.assert_array_equal(ours, want)
    assert set(launched) == {"max_windows"}


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize(
    ("kernel", "padding", "dilation"), [(2, 0, 1), (3, 1, 1), (3, 1, 2)]
)
def test_max_pooling_of_long_rows(kernel, padding, dilation, stride, launched):
    x = np.round(values(3, 2, 9, 131) * 2)  # many equal ones
    x[0, 0, 4, 60:64], x[1, 1, 3, ::7], x[2, 0, 2:6, 30:70] = np.nan, np.inf, -np.inf
    options = {"kernel_size": kernel, "stride": stride, "padding": padding}
    given = {"dilation": dilation, "ceil_mode": True, **options}
    y = max_pool(x, **given)
    np.testing.assert_array_equal(y, max_pool.value(x, **given))
    g = values(*y.shape, seed=1)
    (dx,) = same_for_any_threads(lambda: pulled(max_pool, g, y, (x,), given)[0])
    (wanted,) = pulled(max_pool, *wide([g, y]), tuple(wide([x])), given)
    assert set(launched) <= {"max_windows", "max_pool_gradient"}
    close(dx, wanted)


def test_max_pooling_of_odd_numbers(launched):
    x = values(1, 2, 8, 8)
    x[0, 0, 3, 3], x[0, 1, :4], x[0, 1, 6, 6] = np.nan, -np.inf, np.inf
    options = {"kernel_size": 3, "stride": 2, "padding": 1}
    y = max_pool(x, **options)
    np.testing.assert_array_equal(y, max_pool.value(x, **options))
    g = values(*y.shape, seed=1)
    (dx,) = pulled(max_pool, g, y, (x,), options)
    (wanted,) = pulled(max_pool, *wide([g, y]), tuple(wide([x])), options)
    assert launched
    close(dx, wanted)


# --- normalisation ---


@pytest.mark.parametrize(
    "shape",
    [
        *((3, 5, 7, 9), (6, 17, 1, 1), (64, 3), (2, 1, 513), (1, 2, 40, 33), (4, 6, 8)),
        *((200, 70), (130, 85, 1)),
    ],
)
@pytest.mark.parametrize("given", ["both", "scale", "neither"])
def test_batch_norm_in_training(shape, given, launched):
    c = shape[1]
    x, g = values(*shape) * 3 + 5, values(*shape, seed=1)
    scale = None if given == "neither" else values(c, seed=2)
    bias = values(c, seed=3) if given == "both" else None
    args, options = (x, scale, bias), {"eps": 1e-3}
    y = same_for_any_threads(lambda: channel_norm(*args, **options))
    wanted = channel_norm.value(*wide(args), **options)
    for ours, want in zip(y, wanted, strict=True):
        close(ours, want)
    grads = same_for_any_threads(
        lambda: pulled(channel_norm, (g, None, None), tuple(y), args, options)
    )
    exact = pulled(channel_norm, (*wide([g]), None, None), wanted, wide(args), options)
    assert set(launched) == {"batch_norm", "batch_norm_gradient"}
    for ours, want in zip(grads, exact, strict=True):
        assert (ours is None) == (want is None)
        if ours is not None:
            close(ours, want, 128)
    checked_by_differences(channel_norm, args, g, grads, options)


def test_batch_norm_of_equal_numbers_and_of_nan():
    x = np.full((3, 4, 5, 5), 1e4, np.float32)
    x[:, 1] = 0
    y, mean, var = channel_norm(x)
    assert not y.any()
    assert not var.any()
    np.testing.assert_array_equal(mean, [1e4, 0, 1e4, 1e4])
    x[0, 2, 3, 3] = np.nan
    y, _, _ = channel_norm(x)
    assert np.isnan(y[:, 2]).all()
    assert not np.isnan(y[:, [0, 1, 3]]).any()


def test_plain_rules_take_what_kernels_do_not(launched):
    x = values(4, 3, 5)
    g = values(3)
    y = channel_norm(x.astype(np.float64))
    pulled(channel_norm, (None, g, None), y, (x, None, None), {"eps": 1e-5})
    assert not launched


def test_nothing_is_launched_without_a_library(launched, monkeypatch):
    monkeypatch.setattr(direct, "usable", lambda: None)
    x = values(4, 3, 5)
    wanted = channel_norm.value(x)
    for ours, want in zip(channel_norm(x), wanted, strict=True):
        np.testing.assert_array_equal(ours, want)
    assert not launched


def test_pools_of_threads_follow_one_another_at_once():
    x = values(4, 64, 3)
    try:
        for count in [2, 5, 3, 8] * 20:  # the last threads may not have begun yet
            burnish.set_num_threads(count)
            channel_norm(x)
    finally:
        burnish.set_num_threads(None)
