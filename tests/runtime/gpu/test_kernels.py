"""Every kernel against float64: tails, strides, half precision, NaN and infinity."""

import numpy as np
import pytest

from burnish import Device, Tensor, ops
from burnish.backend.cuda import calls, kernels, layout
from burnish.backend.cuda.convolution import windows
from burnish.backend.cuda.elementwise import fused
from burnish.backend.cuda.products import cublaslt
from burnish.ops._kernels.window import window
from burnish.ops.normalization import channel_norm
from burnish.ops.sequences.attention import softmax_or_zero

LENGTHS = (1, 3, 8, 31, 100, 768, 1000, 4097)
ROUNDING = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-15, "bfloat16": 8e-3}


def dtype_of(name):
    if name == "bfloat16":
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    return np.dtype(name)


def there(array, dtype):
    return Device("cuda").put(np.asarray(array).astype(dtype))


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def agree(got, want, name, scale=8.0):
    got = got.get().astype(np.float64)
    assert got.shape == want.shape
    bound = ROUNDING[name] * scale * max(1.0, float(np.nanmax(np.abs(want), initial=0)))
    np.testing.assert_allclose(got, want, ROUNDING[name] * scale, bound)


def launched(call):
    """The result of a call that has to launch a kernel of ours."""
    before = kernels.kernel.cache_info()
    y = call()
    after = kernels.kernel.cache_info()
    assert after.hits + after.misses > before.hits + before.misses
    return y


DTYPES = pytest.mark.parametrize("name", ["float16", "float32", "float64"])


@DTYPES
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("op", [ops.softmax, ops.log_softmax], ids=str)
def test_softmax(op, n, name):
    x = there(numbers(5, n), name)
    g = there(numbers(5, n, seed=1), name)
    far, near = x.get().astype(np.float64), g.get().astype(np.float64)
    y = launched(lambda: op(x))
    want = op(far)
    agree(y, want, name)
    pull = op.rules_on["cupy"]["x"][0]
    agree(pull(g, y, x, axis=-1), op.rules["x"][0](near, want, far, axis=-1), name, 40)


@DTYPES
@pytest.mark.parametrize("n", [5, 768, 1500, 2048, 2052])
@pytest.mark.parametrize("op", [ops.softmax, ops.log_softmax, softmax_or_zero], ids=str)
def test_softmax_of_many_rows(op, n, name):
    x = there(numbers(2100, n), name)
    agree(launched(lambda: op(x)), op(x.get().astype(np.float64)), name)


@DTYPES
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_along_other_axes(axis, name):
    x = there(numbers(4, 7, 65), name)
    agree(ops.softmax(x, axis=axis), ops.softmax(x.get().astype("f8"), axis=axis), name)


@DTYPES
def test_masked_softmax(name):
    scores = numbers(6, 100)
    scores[1] = -np.inf
    scores[2, :50] = -np.inf
    scores[3, 7] = np.nan
    scores[4, 9] = np.inf
    x = there(scores, name)
    far = x.get().astype(np.float64)
    with np.errstate(invalid="ignore"):
        want = softmax_or_zero(far)
    agree(launched(lambda: softmax_or_zero(x)), want, name)
    with np.errstate(invalid="ignore"):
        agree(ops.softmax(x), ops.softmax(far), name)


@DTYPES
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("given", ["wb", "w", ""])
def test_layer_norm(n, given, name):
    x = there(numbers(37, n) * 3 + 1, name)
    w = there(numbers(n, seed=1), name) if "w" in given else None
    b = there(numbers(n, seed=2), name) if "b" in given else None
    g = there(numbers(37, n, seed=3), name)
    far = [None if a is None else a.get().astype(np.float64) for a in (x, w, b, g)]
    want = ops.layer_norm_from(*far[:3])
    got = launched(lambda: ops.layer_norm_from(x, w, b))
    agree(got, want, name, 20)
    options = {"axis": -1, "eps": 1e-5}
    found = ops.layer_norm_from.rules_on["cupy"]["x"][0](g, got, x, w, b, **options)
    expected = ops.layer_norm_from.rules["x"][0](far[3], want, *far[:3], **options)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            agree(one, other, name, 100)


@DTYPES
@pytest.mark.parametrize("n", LENGTHS)
def test_rms_norm(n, name):
    x, w, g = (there(numbers(*s), name) for s in ((37, n), (n,), (37, n)))
    far = [a.get().astype(np.float64) for a in (x, w, g)]
    want = ops.rms_norm_from(*far[:2])
    got = launched(lambda: ops.rms_norm_from(x, w))
    agree(got, want, name, 20)
    options = {"axis": -1, "eps": 1e-5}
    found = ops.rms_norm_from.rules_on["cupy"]["x"][0](g, got, x, w, **options)
    expected = ops.rms_norm_from.rules["x"][0](far[2], want, *far[:2], **options)
    for one, other in zip(found, expected, strict=True):
        agree(one, other, name, 100)


@DTYPES
@pytest.mark.parametrize("shape", [(6, 5), (2, 5, 7), (3, 5, 8, 8)])
def test_batch_norm(shape, name):
    given = [numbers(*shape), *(numbers(5, seed=i) for i in range(4))]
    given[2] = np.abs(given[2]) + 0.5
    here = [there(a, name) for a in given]
    want = ops.batch_norm(*(a.get().astype(np.float64) for a in here))
    agree(ops.batch_norm(*here), want, name, 20)


def channels_last(a):
    import cupy

    order = (0, *range(2, a.ndim), 1)
    back = (0, a.ndim - 1, *range(1, a.ndim - 1))
    return cupy.ascontiguousarray(a.transpose(order)).transpose(back)


@DTYPES
@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize(
    "shape",
    [(60, 5), (2, 5, 7), (3, 5, 8, 8), (5, 24, 9, 11), (40, 300, 7), (2, 8, 1, 3)],
)
@pytest.mark.parametrize("given", ["wb", ""])
def test_batch_norm_in_training(shape, given, is_last, name):
    c = shape[1]
    x = there(numbers(*shape) * 3 + 20, name)
    g = there(numbers(*shape, seed=3), name)
    w, b = (there(numbers(c, seed=i), name) if given else None for i in (1, 2))
    if is_last and len(shape) > 2:
        x, g = channels_last(x), channels_last(g)
    far = [None if a is None else a.get().astype(np.float64) for a in (x, w, b, g)]
    want = channel_norm.value(*far[:3])
    got = launched(lambda: channel_norm(x, w, b))
    for one, other in zip(got, want, strict=True):
        agree(one, other, name, 60)
    pull = channel_norm.rules_on["cupy"]["x"][0]
    plain = channel_norm.rules["x"][0]
    found = pull((g, None, None), got, x, w, b, eps=1e-5)
    wanted = plain((far[3], None, None), want, *far[:3], eps=1e-5)
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            agree(one, other, name, 300)


@DTYPES
@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((9, 12), {"kernel_size": 3, "stride": 2, "padding": 1}),
        ((9, 12), {"kernel_size": 2}),
        ((9, 12), {"kernel_size": (3, 2), "stride": (1, 3), "dilation": (2, 1)}),
        ((9, 12), {"kernel_size": 3, "stride": 2, "ceil_mode": True}),
        ((31,), {"kernel_size": 4, "stride": 3, "padding": 2}),
        ((8, 29), {"kernel_size": (2, 3), "stride": (1, 6), "padding": (0, 1)}),
    ],
)
def test_the_gradient_of_max_pooling(sizes, options, is_last, name):
    whole = np.random.default_rng(0).integers(-3, 4, (2, 5, *sizes))  # many are equal
    x = there(whole, name)
    y = ops.max_pool(x, **options)
    g = there(numbers(*y.shape), name)
    if is_last:
        x = channels_last(x)
    given_options = {
        "stride": None,
        "padding": 0,
        "dilation": 1,
        "ceil_mode": False,
    } | options
    pull = ops.max_pool.rules_on["cupy"]["x"][0]
    got = launched(lambda: pull(g, y, x, **given_options))
    far = [a.get().astype(np.float64) for a in (g, y, x)]
    agree(got, np.asarray(ops.max_pool.rules["x"][0](*far, **given_options)), name, 20)


FORMULAS = [
    ops.relu,
    ops.leaky_relu,
    ops.elu,
    ops.celu,
    ops.gelu,
    lambda x: ops.gelu(x, approximate="tanh"),
    ops.sigmoid,
    ops.swish,
    ops.softplus,
    ops.hard_sigmoid,
    ops.hard_swish,
    ops.shrink,
    ops.thresholded_relu,
    ops.ndtr,
    ops.erf,
]


@DTYPES
@pytest.mark.parametrize("op", FORMULAS)
@pytest.mark.parametrize("size", [1, 7, 1000, 70001])
def test_activations_are_one_kernel(monkeypatch, op, size, name):
    x, prepare, launched = there(numbers(size) * 3, name), fused._launched, []

    def counted(*given):
        run = prepare(*given)

        def launch(*arrays):
            launched.append(given)
            return run(*arrays)

        return launch

    monkeypatch.setattr(fused, "_launched", counted)
    calls._held.ready.clear()
    y = op(x)
    assert len(launched) == 1
    agree(y, op(x.get().astype(np.float64)), name)
    part = there(numbers(3, size) * 3, name)[1]  # not aligned
    agree(op(part), op(part.get().astype(np.float64)), name)
    turned = there(numbers(3, size) * 3, name).T
    agree(op(turned), op(turned.get().astype(np.float64)), name)


@DTYPES
@pytest.mark.parametrize(
    ("whole", "shape"),
    [
        ((3, 5), (5,)),
        ((3, 16), (16,)),
        ((3, 16), (3, 1)),
        ((3, 5), (3, 1)),
        ((2, 3, 4, 8), (1, 3, 1, 1)),
        ((2, 3, 4, 8), (2, 1, 1, 8)),
        ((2, 3, 5, 7), (2, 1, 1, 7)),
        ((2, 3, 4, 8), (2, 1, 4, 8)),
        ((2, 3, 4, 8), (2, 1, 4, 1)),
        ((2, 3, 5, 3), (2, 1, 5, 1)),
        ((2, 3, 4, 8), ()),
    ],
)
def test_sums_of_arrays_that_broadcast_are_one_kernel(whole, shape, name):
    a, b = there(numbers(*whole), name), there(numbers(*shape, seed=1), name)
    y = launched(lambda: fused.evaluated(lambda a, b: a - 2 * b, (a, b)))
    agree(y, a.get().astype("f8") - 2 * b.get().astype("f8"), name)
    y = launched(lambda: fused.evaluated(lambda a, b: a - 2 * b, (b, a)))
    agree(y, b.get().astype("f8") - 2 * a.get().astype("f8"), name)


@DTYPES
@pytest.mark.parametrize("op", [ops.relu, ops.gelu, ops.sigmoid, ops.swish])
def test_nan_and_infinity_travel(op, name):
    x = there([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e4], name)
    with np.errstate(invalid="ignore", over="ignore"):
        want = op.value(x.get())
    got = op(x).get()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((5, 7), (7, 3)),
        ((64, 128), (128, 96)),
        ((1, 768), (768, 2304)),
        ((3, 5, 7), (7, 4)),
        ((3, 5, 7), (3, 7, 4)),
        ((2, 3, 5, 7), (2, 3, 7, 4)),
        ((2, 3, 5, 7), (3, 7, 4)),
        ((5, 7), (3, 7, 4)),
        ((2, 1, 5, 7), (1, 3, 7, 4)),
        ((1, 1), (1, 1)),
        ((4, 1), (1, 6)),
    ],
)
def test_products(a, b, name):
    x, z = there(numbers(*a), name), there(numbers(*b, seed=1), name)
    want = x.get().astype("f8") @ z.get().astype("f8")
    got = cublaslt.matmul(x, z)
    assert got is not None
    agree(got, want, name, 20)
    agree(ops.matmul(x.mT.copy().mT, z.mT.copy().mT), want, name, 20)
    bias = there(numbers(b[-1], seed=2), name)
    want = want + bias.get().astype("f8")
    agree(cublaslt.matmul(x, z, bias), want, name, 20)


def test_products_of_parts_of_arrays():
    x, w = there(numbers(9, 33), "float32"), there(numbers(40, 33), "float32")
    for rows, columns in ((slice(1, 6), slice(1, 30)), (slice(None, None, 2), ...)):
        part = x[rows, columns] if columns is not ... else x[rows]
        other = w[:, columns] if columns is not ... else w
        want = part.get().astype("f8") @ other.get().astype("f8").T
        agree(ops.linear(part, other), want, "float32", 20)
    heads = there(numbers(2, 6, 4, 8), "float32").swapaxes(1, 2)
    far = heads.get().astype("f8")
    agree(ops.matmul(heads, heads.mT), far @ far.swapaxes(-1, -2), "float32", 20)


@pytest.mark.parametrize("order", ["rows", "columns", "heads"])
@pytest.mark.parametrize(
    ("op", "a", "b"),
    [
        (ops.linear, (2, 3, 24), (16, 24)),
        (ops.matmul, (2, 3, 24), (24, 16)),
        (ops.matmul, (2, 3, 24), (2, 24, 16)),
        (ops.matmul, (3, 24), (2, 24, 16)),
        (ops.matmul, (2, 1, 3, 24), (4, 24, 16)),
    ],
)
def test_gradients_of_products_for_any_order_of_a_slope(op, a, b, order):
    arrays = [numbers(*a), numbers(*b, seed=1)]
    if op is ops.linear:
        arrays.append(numbers(len(arrays[1]), seed=2))
    exact = [Tensor(array).require_grad() for array in arrays]
    far = op(*exact)
    slope = numbers(*far.shape, seed=3)
    wanted = far.backward(slope)
    near = [Tensor(there(array, "float32")).require_grad() for array in arrays]
    moved = there(slope, "float32")
    if order == "columns":
        moved = moved.mT.copy().mT
    elif order == "heads":
        moved = moved.swapaxes(0, -2).copy().swapaxes(0, -2)
    found = op(*near).backward(moved)
    for own, other in zip(near, exact, strict=True):
        agree(found.get(own).data, wanted.get(other).data, "float32", 20)


@pytest.mark.parametrize("step", [3, -1])
@pytest.mark.parametrize(
    ("op", "x", "w", "options"),
    [
        (ops.linear, (9, 16), (8, 16), {}),
        (ops.conv, (2, 8, 9, 9), (8, 8, 3, 3), {"padding": 1}),
        (ops.conv, (2, 8, 9, 9), (8, 1, 3, 3), {"groups": 8}),
        (ops.conv, (2, 8, 17), (8, 8, 1), {}),
    ],
)
def test_a_bias_that_is_a_part_of_an_array(op, x, w, options, step):
    packed = there(numbers(24, seed=2), "float32")
    b = packed[::step][:8]
    given = there(numbers(*x), "float32"), there(numbers(*w, seed=1), "float32"), b
    want = op(*(a.get().astype("f8") for a in given), **options)
    agree(op(*given, **options), want, "float32", 40)


@DTYPES
@pytest.mark.parametrize("sizes", [(17,), (9, 11), (5, 6, 7)])
def test_convolutions(sizes, name):
    x = there(numbers(2, 3, *sizes), name)
    w = there(numbers(4, 3, *(3, 2, 3)[: len(sizes)], seed=1), name)
    b = there(numbers(4, seed=2), name)
    options = {"stride": 2, "padding": 1, "dilation": 1}
    want = ops.conv(*(a.get().astype("f8") for a in (x, w, b)), **options)
    agree(launched(lambda: ops.conv(x, w, b, **options)), want, name, 40)


@pytest.mark.parametrize("last", [(1, 1, 1), (1, 0, 1), (0, 1, 0)])
@pytest.mark.parametrize("name", ["float32", "float16"])
def test_pointwise_convolutions_of_channels_last(name, last):
    """y, and the gradients of x and the weight, each argument channels-last or not."""
    shapes = (2, 24, 5, 7), (2, 16, 5, 7), (16, 24, 1, 1)
    x, g, w = (there(numbers(*s, seed=i), name) for i, s in enumerate(shapes))
    x, g, w = (
        layout.last(a) if is_last else a
        for a, is_last in zip((x, g, w), last, strict=True)
    )
    far_x, far_g, far_w = (a.get().astype("f8") for a in (x, g, w))
    b = there(numbers(16, seed=4), name)
    want = np.einsum("nchw,oc->nohw", far_x, far_w[..., 0, 0])
    agree(ops.conv(x, w), want, name, 40)
    agree(ops.conv(x, w, b), want + b.get().astype("f8")[:, None, None], name, 40)
    sizes = {"padding": ((0, 0), (0, 0))}
    want = np.einsum("nohw,oc->nchw", far_g, far_w[..., 0, 0])
    agree(ops.conv_input_gradient(g, w, sizes=(5, 7), **sizes), want, name, 40)
    want = np.einsum("nohw,nchw->oc", far_g, far_x)[..., None, None]
    agree(ops.conv_weight_gradient(x, g, kernel=(1, 1), **sizes), want, name, 40)


def test_a_pointwise_transposed_convolution_with_output_padding():
    """There is more of the result than windows, which see one element each."""
    x, w = there(numbers(2, 8, 4, 5), "float32"), there(numbers(8, 16, 1, 1), "float32")
    options = {"dilation": 2, "output_padding": (1, 0)}
    want = ops.conv_transpose(x.get(), w.get(), **options)
    agree(ops.conv_transpose(layout.last(x), w, **options), want, "float32", 40)


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("sizes", [(17,), (9, 11), (5, 6, 7)])
def test_windows_are_counted_in_32_and_64_bits(sizes, is_long, monkeypatch):
    monkeypatch.setattr(windows, "NUMBERED", 0 if is_long else 1 << 31)
    x, rank = there(numbers(2, 3, *sizes), "float64"), len(sizes)
    w = window("", sizes, (3, 2, 3)[:rank], 2, 1, (1, 2, 1)[:rank])
    far = np.pad(x.get(), ((0, 0), (0, 0), *w.pads))
    places = np.stack([far[w.under(offset)] for offset in w.offsets()], axis=2)
    want = places.reshape(2, -1, np.prod(w.out))
    cols = windows.columns(x, sizes, w, together=False)(x)
    agree(cols, want, "float64")
    turned = windows.columns(x, sizes, w, together=True)(x)
    agree(turned, want.swapaxes(0, 1).reshape(len(turned), -1), "float64")
    agree(windows.reduced("sum", x, w)(x), places.sum(axis=2), "float64")
    agree(windows.reduced("max", x, w)(x), ops.max_pool(*pooled(x, w)), "float64")
    back = np.zeros(far.shape)
    for offset, part in zip(w.offsets(), np.moveaxis(places, 2, 0), strict=True):
        back[w.under(offset)] += part
    back = back[(..., *(slice(1, 1 + n) for n in sizes))]
    agree(windows.spread_columns(cols, x.shape, w)(cols), back, "float64")


def pooled(x, w):
    return x.get(), w.kernel, w.stride, w.pads, w.dilation


def test_bfloat16():
    kind = dtype_of("bfloat16")
    x = there(numbers(5, 100), kind)
    far = x.get().astype(np.float64)
    for op in (ops.softmax, ops.gelu, ops.layer_norm_from, ops.relu):
        y = op(x)
        assert y.dtype == kind
        agree(y, op(far), "bfloat16")


def test_dropout_masks_follow_the_seed():
    from burnish import rng, seed

    device = Device("cuda")
    seed(3)
    first = rng.keep_mask((100_003,), 0.75, device)
    second = rng.keep_mask((100_003,), 0.75, device)
    seed(3)
    again = rng.keep_mask((100_003,), 0.75, device)
    assert (first == again).all()
    assert (first != second).any()
    seed(3)
    assert (first.get() == rng.keep_mask((100_003,), 0.75, Device("cpu"))).all()
    assert abs(float(first.mean()) - 0.75) < 0.01
    assert abs(float((first & second).mean()) - 0.75**2) < 0.01
