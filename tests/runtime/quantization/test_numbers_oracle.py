"""Beside PyTorch: quantize per tensor and per channel, fake quantization, float8."""

import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.quantization import Level, QParams, QuantScheme

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning"),
]
torch = pytest.importorskip("torch")
X = np.random.default_rng(0).normal(0.3, 2, (6, 5, 4)).astype(np.float32)


def test_per_tensor():
    scheme = QuantScheme("q8f", "affine")
    made = scheme.pack(X)
    theirs = torch.quantize_per_tensor(
        torch.tensor(X), float(made.scales[0]), int(made.zero_points[0]), torch.qint8
    )
    np.testing.assert_array_equal(made.codes, theirs.int_repr())
    np.testing.assert_allclose(made.unpack(), theirs.dequantize(), 1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_channel(axis):
    scheme = QuantScheme("q8f", "affine", Level.channel(axis))
    made = scheme.pack(X)
    theirs = torch.quantize_per_channel(
        torch.tensor(X),
        torch.tensor(made.scales.reshape(-1)),
        torch.tensor(made.zero_points.reshape(-1)),
        axis,
        torch.qint8,
    )
    np.testing.assert_array_equal(made.codes, theirs.int_repr())
    np.testing.assert_allclose(made.unpack(), theirs.dequantize(), 1e-6)


@pytest.mark.parametrize("share", [0.99, 0.4])
@pytest.mark.parametrize("mode", ["symmetric", "affine"])
@pytest.mark.parametrize("value", ["q8s", "q8f", "q4f", "q2s"])
def test_fake_quantize_with_both_gradients(value, mode, share):
    scheme = QuantScheme(value, mode)
    scales, zeros = scheme.params(*(share * e for e in (X.min()[None], X.max()[None])))
    x = torch.tensor(X, requires_grad=True)
    s = torch.tensor(scales, requires_grad=True)
    z = torch.tensor(np.float32([0]) if zeros is None else zeros.astype("f4"))
    low, high = int(scheme.kind.low), int(scheme.kind.high)
    theirs = torch._fake_quantize_learnable_per_tensor_affine(x, s, z, low, high, 1.0)
    incoming = np.random.default_rng(1).normal(size=X.shape).astype(np.float32)
    theirs.backward(torch.tensor(incoming))
    ours_x, ours_s = Tensor(X).require_grad(), Tensor(scales).require_grad()
    blocks = (X.size,)
    y = ops.fake_quantize(ours_x, ours_s, zeros, value=value, blocks=blocks)
    found = y.backward(incoming)
    np.testing.assert_allclose(y.numpy(), theirs.detach(), 1e-6, 1e-6)
    np.testing.assert_allclose(ours_x.grad(found).numpy(), x.grad, 1e-6)
    np.testing.assert_allclose(ours_s.grad(found).numpy(), s.grad, 1e-3, 1e-3)


@pytest.mark.parametrize(
    ("value", "dtype"), [("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2")]
)
def test_float8(value, dtype):
    x = X.reshape(-1) * np.float32(20)
    one = QParams(np.ones(1, np.float32))
    made = QuantScheme(value).pack(x, one)
    theirs = torch.tensor(x).to(getattr(torch, dtype))
    np.testing.assert_array_equal(made.codes, theirs.view(torch.uint8))
    np.testing.assert_array_equal(made.unpack(), theirs.float())
