"""Products with their GELU, sums with their norm, joined channels; against float64."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.backend.cuda import layout
from burnish.backend.cuda.elementwise.fused import cast
from burnish.backend.cuda.libraries import workspace
from burnish.backend.cuda.norms.residual import add_norm, prepared_norm
from burnish.backend.cuda.products import cublaslt
from tests.runtime.plan.test_joined import block

RANDOM = np.random.default_rng(0)
ROUNDING = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 5e-6}


def array(*shape, dtype="float32"):
    import cupy
    import ml_dtypes

    values = RANDOM.standard_normal(shape).astype(np.float32)
    given = getattr(ml_dtypes, dtype, dtype)
    return cupy.asarray(values).astype(given)


def exact(a):
    return a.astype("float32").get().astype(np.float64)


def error(y, wanted):
    assert y.shape == wanted.shape
    found = exact(y)
    assert np.isfinite(found).all()
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


@pytest.mark.parametrize("n", [1, 33, 64, 384, 768, 1000, 4096, 9000])
@pytest.mark.parametrize(
    ("kinds", "dtype", "kept"),
    [
        (("float16", "float32", "float32"), "float16", "float32"),
        (("float16", "float16", "float16"), "float16", None),
        (("bfloat16", "float32", "float32"), "bfloat16", "bfloat16"),
        (("float32", "float32", "float32"), "float32", "float32"),
    ],
)
def test_a_sum_and_its_norm(n, kinds, dtype, kept):
    x, z = array(3, 5, n, dtype=kinds[0]), array(3, 5, n, dtype=kinds[1])
    weight, bias = (array(n, dtype=kinds[2]) for _ in range(2))
    for other, center in ((z, True), (z[0], True), (z[:1], False)):
        options = {"center": center, "dtype": array(1, dtype=dtype).dtype}
        kind = None if kept is None else array(1, dtype=kept).dtype
        made = add_norm(x, other, weight, bias, 1e-3, kept=kind, **options)
        total = exact(x) + exact(other)
        mean = total.mean(-1, keepdims=True) if center else 0
        scale = 1 / np.sqrt(((total - mean) ** 2).mean(-1, keepdims=True) + 1e-3)
        wanted = (total - mean) * scale * exact(weight) + exact(bias)
        assert made[1].dtype == options["dtype"]
        assert error(made[1], wanted) < ROUNDING[dtype]
        if kept is not None:
            assert error(made[0], total) < ROUNDING[kept]
    assert add_norm(x, z[:, :1], weight, bias, 1e-3, kept=None, **options) is None


@pytest.mark.parametrize("n", [1, 7, 24, 64, 96, 192, 200, 768, 2048])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_norm_of_rows(n, dtype):
    x, weight = array(7, 19, n, dtype=dtype), array(n, dtype=dtype)
    bias = array(n, dtype=dtype)
    for center, own, plus in ((True, weight, bias), (False, weight, None)):
        far = exact(x)
        far = far - (far.mean(-1, keepdims=True) if center else 0)
        far = far / np.sqrt((far**2).mean(-1, keepdims=True) + 1e-3) * exact(own)
        far = far if plus is None else far + exact(plus)
        y = prepared_norm(x, own, plus, n, 1e-3, center)(x, own, plus)
        assert y.dtype == x.dtype
        assert np.abs(exact(y) - far).max() < ROUNDING[dtype] * np.abs(far).max()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(4, 3, 8, 16), (2, 5, 7, 3), (3, 64, 5, 7), (2, 8)])
def test_another_dtype_and_order_in_memory(shape, dtype):
    x = array(*shape, dtype=dtype)
    for given in (x, layout.last(x)) if x.ndim > 2 else (x,):
        for other in ROUNDING:
            kind = array(1, dtype=other).dtype
            y = cast(given, kind)
            assert (y.dtype, y.strides[1] < y.strides[-1]) == (
                kind,
                given.strides[1] < given.strides[-1],
            )
            np.testing.assert_array_equal(exact(y), exact(given.astype(kind)))
        if x.ndim > 2:
            np.testing.assert_array_equal(exact(layout.last(given)), exact(x))
            y = layout.contiguous(layout.last(given))
            assert y.flags.c_contiguous
            np.testing.assert_array_equal(exact(y), exact(x))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", [(1, 24, 40), (130, 384, 1536)])
def test_a_product_and_its_gelu(shape, biased, dtype):
    rows, k, n = shape
    x, weight = array(2, rows, k, dtype=dtype), array(n, k, dtype=dtype)
    weight = weight * weight.dtype.type(0.125)
    bias = array(n, dtype=dtype) if biased else None
    y = cublaslt.linear(x, weight, bias, act="gelu")
    product = exact(x) @ exact(weight).T + (exact(bias) if biased else 0)
    wanted = ops.gelu.value(product, approximate="tanh")
    assert error(y, wanted) < ROUNDING[dtype]
    again = cublaslt.linear(x, weight, bias, act="gelu")
    np.testing.assert_array_equal(exact(y), exact(again))
    assert error(cublaslt.linear(x, weight, bias), product) < ROUNDING[dtype]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8"])
@pytest.mark.parametrize("channels", [(8, 16), (3, 5, 1), (4, 4)])
def test_channels_are_joined(channels, dtype):
    import cupy

    parts = [array(2, c, 5, 7).astype(array(1, dtype=dtype).dtype) for c in channels]
    wanted = cupy.concatenate(parts, 1)
    given = [layout.last(part) if i % 2 == 0 else part for i, part in enumerate(parts)]
    y = layout.joined(given)
    assert layout.is_last(y)
    assert (y == wanted).all()
    tensors = [Tensor.wrap(part, Tensor(0).to("cuda").device) for part in given]
    assert (ops.concat(tensors, axis=1).data == wanted).all()


class Block(nn.Module):
    """A block of a transformer without its attention, and a table of places."""

    def __init__(self):
        self.places = nn.Embedding(9, 64)
        self.norm1, self.norm2 = nn.LayerNorm(64), nn.RMSNorm(64)
        self.fc1, self.fc2 = nn.Linear(64, 256), nn.Linear(256, 64)
        self.fc3 = nn.Linear(64, 64)

    def forward(self, x, places):
        x = x + self.places(places)
        x = x + self.fc2(ops.gelu(self.fc1(self.norm1(x))))
        return self.fc3(self.norm2(x)), x


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "bf16"])
def test_a_block(precision):
    model = Block().to("cuda")
    x = Tensor(RANDOM.standard_normal((3, 9, 64)).astype(np.float32)).to("cuda")
    places = Tensor(np.arange(9)).to("cuda")
    fast = burnish.compile(model, precision=precision)
    most = {"fp32": 1e-5, "tf32": 3e-3, "fp16": 3e-3, "bf16": 3e-2}[precision]
    for _ in range(2):
        for one, other in zip(fast(x, places), model(x, places), strict=True):
            assert one.dtype == np.float32
            apart = one.numpy() - other.numpy()
            assert np.linalg.norm(apart) < most * np.linalg.norm(other.numpy())
        model.norm1.weight.assign(model.norm1.weight.data * 2)
    text = fast.plan(x, places)
    assert "add + layer_norm_from" in text
    assert "add + rms_norm_from" in text
    assert ("linear + gelu" in text) is (precision in ("fp16", "bf16"))


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precision_of_whole_networks(precision):
    """A few roundings from the plain call."""
    most = {"fp16": 3e-3, "bf16": 3e-2}[precision]
    layer = nn.TransformerEncoderLayer(64, 4, 128, activation=ops.gelu)
    for model, shape in (
        (block(), (3, 6, 20, 18)),
        (nn.TransformerEncoder(layer, 3), (70, 2, 64)),
    ):
        model.to("cuda")
        x = Tensor(RANDOM.standard_normal(shape).astype(np.float32)).to("cuda")
        fast = burnish.compile(model, precision=precision)
        y, wanted = fast(x), model(x)
        y, wanted = (a[1] if isinstance(a, tuple) else a for a in (y, wanted))
        apart = np.linalg.norm(y.numpy() - wanted.numpy())
        assert apart < most * np.linalg.norm(wanted.numpy())
        assert "planning failed" not in fast.explain()
        assert precision in fast.plan(x)


def test_workspace_is_the_plans():
    import cupy

    room = cupy.empty(workspace.WORKSPACE, "uint8")
    with workspace.planned(room, True):
        assert workspace.in_plan()
        assert workspace.rounds()
        assert workspace.workspace(0, 0) is room
    assert not workspace.in_plan()
