"""Numbers to small ones and back: error bounds, packing, zeros, shapes of scales."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from onnx.reference import ReferenceEvaluator

from burnish import Tensor, ops
from burnish.errors import InputError
from burnish.ops.quantized.blocks import block_groups
from burnish.ops.quantized.small import SMALL, encoded, packed, rounded, unpacked
from burnish.quantization import VALUES, Calibration, Level, QParams, QuantScheme

WHOLE = [value for value in VALUES if SMALL[value].whole]
FLOATS = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
STORES = ["native", "packed_u8", "packed_u32"]
ARRAYS = arrays(
    np.float32,
    array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=7),
    elements=st.floats(-1e4, 1e4, width=32),
)


def levels(draw, shape):
    axis = draw(st.integers(0, len(shape) - 1))
    size = draw(st.integers(1, 8))
    return draw(
        st.sampled_from(
            [Level.tensor(), Level.row(), Level.channel(axis), Level.block(size)]
            + [Level.block(size, 3)] * (len(shape) > 1)
        )
    )


@st.composite
def quantizations(draw):
    x = draw(ARRAYS)
    value = draw(st.sampled_from(VALUES))
    modes = ["symmetric", "affine"] if value in WHOLE else ["symmetric"]
    scheme = QuantScheme(
        value,
        draw(st.sampled_from(modes)),
        levels(draw, x.shape),
        draw(st.sampled_from(STORES)),
    )
    return x, scheme


@pytest.mark.parametrize(
    "level", [Level.block(5), Level.row(), Level.channel(0)], ids=str
)
@pytest.mark.parametrize("mode", ["symmetric", "affine"])
@pytest.mark.parametrize("store", STORES)
def test_rows_that_share_no_scale_are_quantized_a_few_at_a_time(
    level, mode, store, monkeypatch
):
    x = np.random.default_rng(0).standard_normal((53, 3, 7)).astype(np.float32)
    scheme = QuantScheme("q4f", mode, level, store)
    at_once = scheme.pack(x)
    monkeypatch.setattr("burnish.lowbit.scheme._AT_ONCE", 16 * 21)
    in_parts = scheme.pack(x)
    assert in_parts.tobytes() == at_once.tobytes()
    assert (in_parts.shape, in_parts.dtype) == (at_once.shape, at_once.dtype)


@given(quantizations())
def test_the_error_is_at_most_half_a_step(given_):
    x, scheme = given_
    made = scheme.pack(x)
    assert made.scales.shape == scheme.level.counts(x.shape)
    scale = spread(made.scales, x.shape, scheme)
    error = np.abs(made.unpack() - x)
    if scheme.kind.whole:
        # a float32 scale's own rounding counts once a step: by the range, not by x
        bound = scale * (0.5 + 3e-7 * (scheme.kind.high - scheme.kind.low))
    else:  # half of the distance to the next number
        size = np.maximum(np.abs(x) / scale, 2.0**scheme.kind.least)
        bound = scale * 2.0 ** (np.floor(np.log2(size)) - scheme.kind.mantissa - 1)
    assert (error <= bound * 1.001 + 1e-6 * np.abs(x)).all()
    assert (made.unpack()[x == 0] == 0).all()


def spread(scales, shape, scheme):
    """Scales in x's shape, by indices: number of the block of every element."""
    blocks = scheme.level.blocks(shape)
    kept = len(blocks) - 1
    view = (*shape[:kept], int(np.prod(shape[kept:])))
    index = np.ix_(*(np.arange(n) // b for n, b in zip(view, blocks, strict=True)))
    return scales[index].reshape(shape)


@given(quantizations())
def test_what_is_written_is_read(given_):
    x, scheme = given_
    made = scheme.pack(x)
    again = QuantScheme.packed(made.arrays())
    assert again.scheme == scheme
    assert again.unpack().tobytes() == made.unpack().tobytes()
    assert made.nbytes == sum(part.nbytes for part in made.parts().values())


@pytest.mark.parametrize("store", STORES)
@given(
    value=st.sampled_from(VALUES),
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 100),
)
def test_packing_is_a_bijection(store, value, seed, size):
    kind = SMALL[value]
    draw = np.random.default_rng(seed).normal(0, kind.high, size).astype(np.float32)
    numbers = rounded(draw, kind)
    codes = encoded(numbers, kind)
    held = packed(codes, kind, store)
    if store != "native":
        unit = 8 * held.dtype.itemsize
        assert held.size == -(-size * kind.bits // unit)
    np.testing.assert_array_equal(unpacked(held, kind, store, (size,)), numbers)


def test_the_first_code_is_in_the_lowest_bits():
    kind = SMALL["q4f"]
    codes = np.array([1, -1, 2, -8, 7], np.int8)
    assert packed(codes, kind, "packed_u8").tolist() == [0xF1, 0x82, 0x07]
    assert packed(codes, kind, "packed_u32").tolist() == [0x000782F1]
    assert packed(np.array([1, -2, 0, -1], np.int8), SMALL["q2f"], "packed_u8") == [
        0b11_00_10_01
    ]


@pytest.mark.parametrize("value", FLOATS)
def test_small_floats_are_those_of_ml_dtypes(value):
    kind, dtype = SMALL[value], FLOATS[value]
    x = np.random.default_rng(0).normal(0, kind.high / 4, 20_000).astype(np.float32)
    x = np.concatenate([x, x / 100, x / 1e4, x / 1e6, np.float32([0, kind.high])])
    x = np.clip(x, kind.low, kind.high)
    expected = x.astype(dtype)
    codes = encoded(rounded(x, kind), kind)
    np.testing.assert_array_equal(rounded(x, kind), expected.astype(np.float32))
    zero = expected.astype(np.float32) == 0  # a zero here has no sign
    np.testing.assert_array_equal(codes[~zero], expected.view(np.uint8)[~zero])
    every = np.arange(2**kind.bits, dtype=np.uint8)
    values = every.view(dtype).astype(np.float32)
    sane = np.isfinite(values)
    np.testing.assert_array_equal(
        unpacked(every, kind, "native", every.shape)[sane], values[sane]
    )


@given(quantizations())
def test_fake_numbers_are_the_real_ones(given_):
    x, scheme = given_
    params = scheme.calibrated(x)
    blocks = scheme.level.blocks(x.shape)
    fake = ops.fake_quantize(x, *params, value=scheme.value, blocks=blocks)
    np.testing.assert_array_equal(fake, scheme.pack(x, params).unpack())


def test_affine_is_dynamic_quantize_linear():
    """y_scale, y_zero_point and y of ONNX's operator, which has them unsigned."""
    x = np.random.default_rng(0).normal(0.4, 1, (30, 20)).astype(np.float32)
    scales, zero_points = QuantScheme("q8f", "affine").calibrated(x)
    node = onnx.helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    y, scale, zero = ReferenceEvaluator(node).run(None, {"x": x})
    assert scales[0] == scale
    assert int(zero_points[0]) + 128 == int(zero)
    codes = QuantScheme("q8f", "affine").pack(x).codes
    np.testing.assert_array_equal(codes.astype(int) + 128, y)


def test_dtypes_and_empty_arrays():
    for dtype in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):
        x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4).astype(dtype)
        for param in ("float32", "float16", "bfloat16"):
            made = QuantScheme(level=Level.row(), param=param).pack(x)
            assert made.scales.dtype.name == param
            assert made.unpack().dtype == x.dtype
            np.testing.assert_allclose(
                made.unpack().astype("f8"), x.astype("f8"), atol=0.03
            )
    for shape in ((0, 3), (3, 0), (3, 0, 4)):
        for level in (Level.tensor(), Level.row(), Level.block(1)):
            made = QuantScheme(level=level).pack(np.zeros(shape, np.float32))
            assert made.unpack().shape == shape
    assert QuantScheme().pack(np.float32(2)[()] * np.ones(())).unpack() == 2


@pytest.mark.parametrize("method", ["percentile", "mse", "entropy"])
def test_ranges_leave_outliers_out(method):
    x = np.random.default_rng(0).normal(size=20_000).astype(np.float32)
    x[7] = 80.0
    scheme = QuantScheme("q4s")
    near = np.delete(np.arange(x.size), 7)
    whole = scheme.pack(x).unpack()
    less = scheme.pack(x, scheme.calibrated(x, Calibration(method))).unpack()
    assert np.abs(less - x)[near].mean() < 0.4 * np.abs(whole - x)[near].mean()


@pytest.mark.parametrize("value", ["q2s", "q4s", "e2m1"])
@pytest.mark.parametrize("mode", ["symmetric", "affine"])
def test_least_squares_are_no_worse_than_the_whole_range(value, mode):
    if value == "e2m1" and mode == "affine":
        pytest.skip("floats have no zero point")
    x = np.random.default_rng(1).standard_t(3, (6, 90)).astype(np.float32)
    scheme = QuantScheme(value, mode, Level.channel(0))
    whole = ((scheme.pack(x).unpack() - x) ** 2).sum(axis=1)
    params = scheme.calibrated(x, Calibration.mse())
    least = ((scheme.pack(x, params).unpack() - x) ** 2).sum(axis=1)
    assert (least <= whole).all()
    assert (least < 0.9 * whole).any()


def test_block_groups_are_the_blocks():
    x = np.arange(30.0).reshape(5, 6)
    groups = block_groups(x, (2, 4))
    assert groups.shape == (3, 2, 8)
    assert groups[0, 0].tolist() == [0, 1, 2, 3, 6, 7, 8, 9]
    assert groups[2, 1].tolist() == [28, 29, 0, 0, 0, 0, 0, 0]
    assert ops.block_sums(x, blocks=(2, 4)).sum() == x.sum()


def test_gradients_go_straight_through_in_range():
    x = Tensor(np.array([[-9.0, -0.3, 0.4], [1.2, 0.0, 7.6]])).require_grad()
    scales = Tensor(np.array([[1.0], [0.5]])).require_grad()
    y = ops.fake_quantize(x, scales, value="q4s", blocks=(1, 3))
    assert y.tolist() == [[-7, 0, 0], [1, 0, 3.5]]
    found = y.sum().backward()
    assert x.grad(found).tolist() == [[0, 1, 1], [1, 1, 0]]
    expected = [[-7 + 0.3 - 0.4], [(2 - 2.4) + 7]]
    np.testing.assert_allclose(scales.grad(found).numpy(), expected, atol=1e-12)


def test_a_tensor_is_quantized():
    x = Tensor(np.array([[-1.0, 0.5], [2.0, 4.0]], np.float32))
    made = x.quantize(QuantScheme("q4s", level=Level.row()))
    assert (made.shape, made.dtype) == ((2, 2), np.float32)
    assert made.nbytes == 2 + 8
    assert type(made + 1) is type(made.dequantize()) is Tensor
    np.testing.assert_array_equal((made + 1).numpy(), made.dequantize().numpy() + 1)
    given_ = x.quantize(QuantScheme("q8f"), (np.float32([0.5]), None))
    np.testing.assert_array_equal(given_.numpy(), x.numpy())
    assert x.dequantize() is x


TEXT = QuantScheme().to_text((2, 3), np.float32)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "[" * 100_000,
        "{}",
        TEXT.replace('"float32", "shape"', '"float8", "shape"'),
        TEXT.replace("[2, 3]", "[2, -3]"),
        TEXT.replace("[2, 3]", "3"),
        TEXT.replace('"dtype": "float32"', '"dtype": "object"'),
        TEXT.replace('"tensor"', '"channel"'),
        TEXT.replace('["tensor"]', '["block", 0]'),
        TEXT.replace('"q8s"', "[]"),
        TEXT.replace('"mode"', '"more"'),
    ],
)
def test_texts_that_say_no_scheme(text):
    with pytest.raises(InputError):
        QuantScheme.from_text(text)
    assert QuantScheme.from_text(TEXT) == (QuantScheme(), (2, 3), np.float32)


def row(message, act):
    return pytest.param(act, message, id=message)


X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        row("values out of q8s", lambda: QuantScheme("int8")),
        row("mode out of symmetric, affine", lambda: QuantScheme(mode="both")),
        row("store out of native", lambda: QuantScheme(store="u8")),
        row("param out of float32", lambda: QuantScheme(param="float8")),
        row("expected a Level", lambda: QuantScheme(level="channel")),
        row("expected whole numbers for", lambda: QuantScheme("e4m3", "affine")),
        row("sizes of 1 or more, got none", lambda: Level.block()),
        row(
            "expected an axis of shape",
            lambda: QuantScheme(level=Level.channel(2)).pack(X),
        ),
        row(
            "at least 3 axes",
            lambda: QuantScheme(level=Level.block(1, 2, 3)).pack(X),
        ),
        row(
            "floating-point values, got int", lambda: QuantScheme().pack(X.astype(int))
        ),
        row("finite values, got inf", lambda: QuantScheme().pack(X / np.float32(0))),
        row("method out of min_max", lambda: Calibration("max")),
        row("0 < share <= 100, got 0", lambda: Calibration.percentile(0)),
        row(
            "use Calibration.mse",
            lambda: QuantScheme(level=Level.row()).calibrated(X, Calibration.entropy()),
        ),
        row(
            "that float16 can hold",
            lambda: QuantScheme(param="float16").pack(X * np.float32(1e9)),
        ),
        row("expected a burnish.quantization", lambda: Tensor(X).quantize("int8")),
        row(
            r"scales of shape \(1,\)",
            lambda: QuantScheme().pack(X, QParams(np.ones(2, np.float32))),
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_cannot_be_is_refused(act, message):
    with pytest.raises(InputError, match=message):
        act()
