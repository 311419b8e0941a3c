"""Convolutions and attention by cuDNN and matrix instructions, against float64."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.backend.cuda import layout
from burnish.backend.cuda.attention import attention
from burnish.backend.cuda.convolution import convolution, depthwise
from burnish.backend.cuda.elementwise import fused as elements
from burnish.backend.cuda.libraries import cudnn, workspace
from burnish.ops._kernels.window import window
from tests.runtime.plan.test_joined import block

RANDOM = np.random.default_rng(0)
CLOSE = {"f": 2e-6, "tf32": 2e-3, "e": 3e-3}
needs_cudnn = pytest.mark.skipif(cudnn.library() is None, reason="no cuDNN")


@pytest.fixture(params=["f", "tf32", "e"])
def kind(request):
    """A way to compute, in the `with` block of which products are."""
    import cupy

    room = cupy.empty(workspace.WORKSPACE, "uint8")
    with workspace.planned(room, request.param == "tf32"):
        yield request.param


def array(*shape, kind="f"):
    import cupy

    dtype = "e" if kind == "e" else "f"
    return cupy.asarray(RANDOM.standard_normal(shape).astype(dtype))


def close(y, wanted, kind):
    found = y.get().astype(np.float64)
    assert found.shape == wanted.shape
    assert np.isfinite(found).all()
    error = np.linalg.norm(found - wanted) / max(np.linalg.norm(wanted), 1e-30)
    assert error < CLOSE[kind], error


def correlated(x, weight, w, groups, bias=None):
    """The convolution's result, in float64 on the host."""
    options = {"stride": w.stride, "padding": w.pads, "dilation": w.dilation}
    given = [None if a is None else a.get().astype(np.float64) for a in (x, weight)]
    own = None if bias is None else bias.get().astype(np.float64)
    return ops.conv.value(*given, own, groups=groups, **options)


CONVS = [
    ((2, 3, 9, 13), (16, 3, 4, 4), 4, 0, 1, 1),
    ((2, 8, 6, 8), (12, 8, 2, 2), 2, 0, 1, 1),
    ((2, 8, 50), (12, 8, 5), 5, 0, 1, 1),
    ((2, 8, 9, 11), (12, 8, 3, 3), 1, 1, 1, 1),
    ((1, 3, 17, 13), (7, 3, 5, 5), 2, 2, 1, 1),
    ((3, 16, 8, 8), (32, 16, 1, 1), 1, 0, 1, 1),
    ((2, 12, 10, 10), (18, 6, 3, 3), 2, 1, 2, 2),
    ((2, 8, 31), (16, 8, 3), 1, 1, 1, 1),
    ((1, 4, 5, 6, 7), (8, 4, 3, 3, 3), 1, 1, 1, 1),
]


@needs_cudnn
@pytest.mark.parametrize("case", CONVS, ids=str)
def test_convolutions(case, kind):
    shape, own, stride, padding, dilation, groups = case
    x, weight = array(*shape, kind=kind), array(*own, kind=kind)
    w = window("", shape[2:], own[2:], stride, padding, dilation)
    wanted = correlated(x, weight, w, groups)
    y = convolution.conv(x, weight, w, groups)
    close(y, wanted, kind)
    bias, beside = array(own[0], kind=kind), array(*wanted.shape, kind=kind)
    lead = (-1, *(1,) * len(w.out))
    added = wanted + bias.get().reshape(lead)
    for given in (x, layout.last(x)):
        y = convolution.conv(given, weight, w, groups, bias)
        if y is not None:
            close(y, added, kind)
    for more in (None, beside):
        y = convolution.conv(x, weight, w, groups, bias, more, True)
        whole = added if more is None else added + more.get()
        if y is not None:
            close(y, np.maximum(whole, 0), kind)


@needs_cudnn
@pytest.mark.parametrize("case", CONVS, ids=str)
def test_gradients_of_convolutions(case, kind):
    shape, own, stride, padding, dilation, groups = case
    x, weight = array(*shape, kind=kind), array(*own, kind=kind)
    w = window("", shape[2:], own[2:], stride, padding, dilation)
    g = array(shape[0], own[0], *w.out, kind=kind)
    far = [a.get().astype(np.float64) for a in (x, weight, g)]
    options = {"stride": w.stride, "padding": w.pads, "dilation": w.dilation}
    options["groups"] = groups
    y = convolution.input_gradient(g, weight, w, shape[2:], groups)
    plain = ops.conv_input_gradient.value
    if y is not None:
        close(y, plain(far[2], far[1], sizes=shape[2:], **options), kind)
    y = convolution.weight_gradient(x, g, w, groups)
    wanted = ops.conv_weight_gradient.value(far[0], far[2], kernel=own[2:], **options)
    if y is not None:
        close(y, wanted, kind)
    for given in (g, layout.last(g)):
        y = ops.conv_weight_gradient(x, given, kernel=own[2:], **options)
        close(y, wanted, kind)


@pytest.mark.parametrize("c", [8, 5])
@pytest.mark.parametrize(
    ("sizes", "kernel", "stride", "dilation"),
    [
        ((9, 13), (3, 3), 1, 1),
        ((14, 7), (7, 7), 1, 1),
        ((11, 12), (3, 5), 2, 2),
        ((23,), (5,), 1, 1),
        ((16,), (4,), 3, 1),
    ],
)
def test_each_channel_by_itself(c, sizes, kernel, stride, dilation, kind):
    x, weight = array(2, c, *sizes, kind=kind), array(c, 1, *kernel, kind=kind)
    bias = array(c, kind=kind)
    w = window("", sizes, kernel, stride, 1, dilation)
    wanted = correlated(x, weight, w, c, bias)
    taps = depthwise.taps(weight)
    close(depthwise.depthwise(x, taps, w, bias), wanted, kind)
    y = depthwise.depthwise(x, taps, w, bias, (-0.5, 0.75))
    close(y, wanted.clip(-0.5, 0.75), kind)
    below = correlated(x.clip(None, 0.25), weight, w, c, bias)
    close(depthwise.depthwise(x, taps, w, bias, ceiling=0.25), below, kind)
    around = depthwise.flipped(w, sizes)
    if around is not None:
        g = array(*wanted.shape, kind=kind)
        given = (a.get().astype(np.float64) for a in (g, weight))
        options = {"sizes": sizes, "padding": w.pads, "groups": c}
        far = ops.conv_input_gradient.value(*given, **options)
        close(depthwise.depthwise(g, taps[::-1].copy(), around), far, kind)


@pytest.mark.parametrize("c", [12, 96, 240])
@pytest.mark.parametrize(
    ("n", "sizes", "kernel", "stride"),
    [
        (32, (28, 33), (3, 3), 1),
        (32, (29, 28), (3, 3), 2),
        (16, (21, 21), (7, 7), 1),
        (2, (9, 9), (9, 9), 1),
        (40, (300,), (9,), 1),
    ],
)
def test_each_channel_by_itself_in_tiles(n, c, sizes, kernel, stride, kind):
    x, weight = array(n, c, *sizes, kind=kind), array(c, 1, *kernel, kind=kind)
    w = window("", sizes, kernel, stride, kernel[0] // 2, 1)
    y = depthwise.depthwise(x, depthwise.taps(weight), w)
    close(y, correlated(x, weight, w, c), kind)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", ["no", "booleans", "added", "float32"])
@pytest.mark.parametrize(
    ("t", "s", "d", "heads"),
    [
        (128, 128, 64, 3),
        (1, 77, 32, 2),
        (197, 197, 64, 2),
        (50, 33, 128, 1),
        (16, 200, 80, 5),
        (65, 64, 16, 2),
        (300, 310, 64, 60),
        (130, 70, 112, 2),
        (300, 130, 128, 30),
    ],
)
def test_attention(t, s, d, heads, masked, causal, kind):
    import cupy

    # heads side by side in a row, as linear layers leave them
    q, k, v = (
        array(2, n, heads, d, kind=kind).transpose(0, 2, 1, 3) for n in (t, s, s)
    )
    mask = None
    if masked == "booleans":
        mask = cupy.asarray(RANDOM.random((2, 1, 1, s)) < 0.7)
        mask[0] = False  # nobody takes part
    elif masked != "no":
        mask = array(t, s, kind="f" if masked == "float32" else kind)
    y = attention.attended(q, k, v, mask, 0.3, causal)
    if y is None:
        assert kind == "e"
        assert masked == "float32"
        return
    q, k, v = (a.get().astype(np.float64) for a in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * 0.3
    if masked == "booleans":
        scores = np.where(mask.get(), scores, -np.inf)
    elif mask is not None:
        scores = scores + mask.get()
    if causal:
        scores = np.where(np.tri(t, s, dtype=bool), scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = weights.sum(axis=-1, keepdims=True)
    wanted = weights / np.where(total == 0, 1, total) @ v
    close(y, wanted, kind)


def test_channels_last_arrays_stay_so():
    x, bias = array(2, 6, 5, 7), array(6, 1, 1)
    turned = layout.last(x)
    y = elements.evaluated(lambda a, b, c: a * b + c, (turned, x, bias))
    assert y.transpose(0, 2, 3, 1).flags.c_contiguous
    np.testing.assert_allclose(y.get(), (x * x + bias).get(), atol=1e-6)
    for op in (ops.max_pool, ops.window_sum):
        given = [Tensor(x.get()).to("cuda"), None]
        given[1] = Tensor.wrap(turned, given[0].device)
        options = {"kernel_size": 3, "stride": 2, "padding": 1}
        one, other = (op(each, **options).numpy() for each in given)
        np.testing.assert_allclose(one, other, rtol=1e-5)


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128), 3)


def apart(fast, model, *x):
    y, wanted = fast(*x), model(*x)
    y, wanted = (a[1] if isinstance(a, tuple) else a for a in (y, wanted))
    assert y.dtype == wanted.dtype
    return abs(y.numpy() - wanted.numpy()).max() / abs(wanted.numpy()).max()


@pytest.mark.parametrize("precision", ["tf32", "fp16"])
def test_precision(precision):
    for model, shape in ((block(), (3, 6, 20, 18)), (encoder(), (70, 2, 64))):
        model.to("cuda")
        x = Tensor(RANDOM.standard_normal(shape).astype(np.float32)).to("cuda")
        fast = burnish.compile(model, precision=precision)
        assert 1e-6 < apart(fast, model, x) < 1e-2
        assert precision in fast.plan(x)
        assert "planning failed" not in fast.explain()
        assert apart(fast, model, x * 3) < 1e-2
        name, weight = next(iter(model.named_parameters()))
        weight.assign(weight.data * 2)
        assert apart(fast, model, x) < 1e-2, name


def test_half_precision_gives_back_what_it_was_given():
    weight = Tensor(RANDOM.standard_normal(5).astype(np.float32)).to("cuda")
    x = Tensor(np.full(5, 1 / 3, np.float32)).to("cuda")
    fast = burnish.compile(lambda x: (x, weight, x * weight), precision="fp16")
    for one, other in zip(fast(x)[:2], (x, weight), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert fast(x)[2].dtype == np.float32
