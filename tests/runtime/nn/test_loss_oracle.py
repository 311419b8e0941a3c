"""Losses against torch's: values and gradients."""

import numpy as np
import pytest

from burnish import Tensor, nn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
REDUCTIONS = ["mean", "sum", "none"]
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(4, 3, 5))
CLASSES = RNG.integers(0, 3, (4, 5))
IGNORED = np.where(RNG.random((4, 5)) < 0.3, -100, CLASSES)
SHARES = RNG.dirichlet(np.ones(3), (4, 5)).transpose(0, 2, 1)
WEIGHT = np.array([0.5, 2.0, 1.0])
X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
P, T = RNG.random((4, 3)), RNG.random((4, 3))
POS = np.array([1.0, 2.0, 3.0])

ROWS = [
    ("cross_entropy", LOGITS, CLASSES, {}),
    ("cross_entropy", LOGITS, IGNORED, {"weight": WEIGHT}),
    ("cross_entropy", LOGITS, IGNORED, {"weight": WEIGHT, "label_smoothing": 0.1}),
    ("cross_entropy", LOGITS, CLASSES, {"ignore_index": 1, "label_smoothing": 0.2}),
    ("cross_entropy", LOGITS, SHARES, {}),
    ("cross_entropy", LOGITS, SHARES, {"weight": WEIGHT, "label_smoothing": 0.1}),
    ("cross_entropy", LOGITS[0, :, 0], CLASSES[0, 0], {}),
    ("nll_loss", LOGITS, IGNORED, {"weight": WEIGHT}),
    ("mse_loss", X, Y, {}),
    ("l1_loss", X, Y, {}),
    ("smooth_l1_loss", X, Y, {"beta": 0.7}),
    ("huber_loss", X, Y, {"delta": 0.7}),
    ("binary_cross_entropy", P, T, {"weight": POS}),
    ("binary_cross_entropy", np.array([0.0, 1, 0, 1]), np.array([0.0, 1, 1, 0]), {}),
    ("binary_cross_entropy_with_logits", 9 * X, T, {}),
    ("binary_cross_entropy_with_logits", X, T, {"pos_weight": POS, "weight": WEIGHT}),
    ("kl_div", X, T, {}),
    ("kl_div", X, Y, {"log_target": True}),
    ("kl_div", X, np.array([[0.0, 1, 0]] * 4), {"reduction": "batchmean"}),
]
LAYERS = {
    "cross_entropy": "CrossEntropyLoss",
    "nll_loss": "NLLLoss",
    "mse_loss": "MSELoss",
    "l1_loss": "L1Loss",
    "smooth_l1_loss": "SmoothL1Loss",
    "huber_loss": "HuberLoss",
    "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
    "kl_div": "KLDivLoss",
}


@pytest.mark.filterwarnings("ignore:reduction. .mean.")
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("name", "x", "target", "options"), ROWS)
def test_loss(name, x, target, options, reduction):
    options = {"reduction": reduction} | options
    tensors = {
        k: torch.tensor(v) if isinstance(v, np.ndarray) else v
        for k, v in options.items()
    }
    given = torch.tensor(x, requires_grad=True)
    want = getattr(torch.nn.functional, name)(given, torch.tensor(target), **tensors)
    leaf = Tensor(x).require_grad()
    got = getattr(nn, name)(leaf, Tensor(target), **options)
    close(got, want)
    close(getattr(nn, LAYERS[name])(**options)(leaf, target), want)
    g = np.random.default_rng(0).normal(size=want.shape)
    want.backward(torch.tensor(g))
    close(leaf.grad(got.backward(g)), given.grad)


def close(ours, theirs):
    theirs = theirs.detach().numpy()
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-7, atol=1e-12)
