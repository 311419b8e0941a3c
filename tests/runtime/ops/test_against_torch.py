"""Values and gradients next to PyTorch's, ties and kinks included."""

import numpy as np
import pytest

from burnish import Tensor, ops

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = pytest.mark.oracle

X = np.random.default_rng(0).normal(size=(3, 4))
X[0, 0] = 0  # a kink
X[1, 1:3] = 1.5  # a tie
POSITIVE = np.abs(X) + 0.1
SQUARE = X[:, :3]
ROWS = np.array([2, 0, 2, 1])
SELU = {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}  # not in float32

TABLE = [
    (ops.abs, torch.abs, X),
    (ops.sign, torch.sign, X),
    (ops.sqrt, torch.sqrt, POSITIVE),
    (ops.log, torch.log, POSITIVE),
    (ops.expm1, torch.expm1, X),
    (ops.erf, torch.erf, X),
    (ops.tanh, torch.tanh, X),
    (ops.atan2, torch.atan2, POSITIVE, X),
    (ops.div, torch.div, X, POSITIVE),
    (ops.mod, torch.remainder, X, POSITIVE),
    (ops.pow, torch.pow, POSITIVE, X),
    (lambda x: x**2, lambda x: x**2, X),
    (ops.maximum, torch.maximum, X, X[::-1].copy()),
    (ops.minimum, torch.minimum, X, X[1]),
    (lambda x: ops.clip(x, -0.5, 1.5), lambda x: torch.clamp(x, -0.5, 1.5), X),
    (ops.relu, torch.relu, X),
    (ops.relu6, F.relu6, 4 * X),
    (ops.leaky_relu, F.leaky_relu, X),
    (ops.elu, F.elu, X),
    (lambda x: ops.selu(x, **SELU), F.selu, X),
    (ops.celu, F.celu, X),
    (ops.gelu, F.gelu, X),
    (
        lambda x: ops.gelu(x, approximate="tanh"),
        lambda x: F.gelu(x, approximate="tanh"),
        X,
    ),
    (ops.silu, F.silu, X),
    (ops.mish, F.mish, X),
    (ops.sigmoid, torch.sigmoid, X),
    (ops.hard_swish, F.hardswish, 3 * X),
    (ops.softplus, F.softplus, X),
    (ops.softsign, F.softsign, X),
    (ops.log_sigmoid, F.logsigmoid, X),
    (ops.glu, F.glu, X),
    (ops.softmax, lambda x: x.softmax(-1), X),
    (ops.log_softmax, lambda x: x.log_softmax(-1), X),
    (lambda x: ops.reduce_max(x, axes=1), lambda x: x.amax(1), X),
    (lambda x: ops.reduce_min(x, axes=0), lambda x: x.amin(0), X),
    (lambda x: ops.reduce_prod(x, axes=1), lambda x: x.prod(1), X),
    (lambda x: ops.reduce_l2(x, axes=1), lambda x: x.norm(dim=1), 0 * X),
    (lambda x: ops.var(x, axis=1, correction=1), lambda x: x.var(1), X),
    (lambda x: ops.reduce_log_sum_exp(x, axes=0), lambda x: x.logsumexp(0), X),
    (lambda x: ops.cum_sum(x, axis=1), lambda x: x.cumsum(1), X),
    (lambda x: ops.cum_prod(x, axis=1), lambda x: x.cumprod(1), X),
    (lambda x: x[ROWS], lambda x: x[torch.tensor(ROWS)], X),
    (lambda x: ops.top_k(x, 2)[0], lambda x: x.topk(2)[0], X[[0, 2]]),
    (lambda x: ops.tril(x, k=1), lambda x: x.tril(1), X),
    *(
        (
            lambda x, ours=ours: ops.pad(
                x[None], pad_width=((0, 0), (0, 0), (2, 3)), mode=ours
            ),
            lambda x, theirs=theirs: F.pad(x[None], (2, 3), theirs),
            X,
        )
        for ours, theirs in zip(
            ("reflect", "edge", "wrap"),
            ("reflect", "replicate", "circular"),
            strict=True,
        )
    ),
    (ops.matmul, torch.matmul, X, X.T.copy()),
    (ops.linear, F.linear, X, X, X[:, 0]),
    (ops.det, torch.det, SQUARE),
    (ops.inverse, torch.inverse, SQUARE),
    (
        lambda a, b: ops.einsum("ij,kj->ik", a, b),
        lambda a, b: torch.einsum("ij,kj->ik", a, b),
        X,
        X,
    ),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: getattr(row[1], "__name__", ""))
def test_value_and_gradients(row):
    ours, theirs, *arrays = row
    tensors = [Tensor(a).require_grad() for a in arrays]
    peers = [torch.tensor(a, requires_grad=True) for a in arrays]
    y, z = ours(*tensors), theirs(*peers)
    np.testing.assert_allclose(y.numpy(), z.detach().numpy(), 1e-12, 1e-14)
    weight = np.random.default_rng(1).normal(size=y.shape)
    z.backward(torch.tensor(weight))
    gradients = y.backward(weight) if y.node else None
    for tensor, peer in zip(tensors, peers, strict=True):
        got = tensor.grad(gradients)
        got = np.zeros(tensor.shape) if got is None else got.numpy()
        np.testing.assert_allclose(got, peer.grad.numpy(), 1e-11, 1e-13)
