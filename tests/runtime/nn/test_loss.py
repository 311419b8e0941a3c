"""Losses on a plain machine: their formulas, and what they refuse."""

import numpy as np
import pytest

from burnish import Tensor, nn
from burnish.autodiff import backward
from burnish.errors import InputError

LOGITS = np.array([[2.0, 0.0, -1.0], [0.5, 1.5, 0.0]])
CLASSES = np.array([0, 2])
SHARES = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
X, Y = np.array([0.5, -2.0, 3.0]), np.array([0.0, 1.0, 2.8])

ROWS = [
    (nn.cross_entropy, LOGITS, CLASSES, -np.log(SHARES[[0, 1], CLASSES]).mean()),
    (nn.cross_entropy, LOGITS, SHARES, -(SHARES * np.log(SHARES)).sum(axis=1).mean()),
    (nn.mse_loss, X, Y, ((X - Y) ** 2).mean()),
    (nn.l1_loss, X, Y, abs(X - Y).mean()),
    (nn.huber_loss, X, Y, (0.125 + 2.5 + 0.02) / 3),
    (nn.binary_cross_entropy, np.array([0.0, 1.0]), np.array([0.0, 0.0]), 50.0),
    (nn.kl_div, np.log(SHARES), SHARES, 0.0),
]


@pytest.mark.parametrize(("loss", "x", "target", "want"), ROWS)
def test_value(loss, x, target, want):
    np.testing.assert_allclose(loss(Tensor(x), target).item(), want, atol=1e-12)


@pytest.mark.parametrize(
    "loss", [nn.mse_loss, nn.huber_loss, nn.l1_loss, nn.soft_margin_loss]
)
def test_means_of_half_precision_have_sums_beyond_it(loss):
    near, far = (np.full(200_000, value, np.float16) for value in (1, -1))
    x, wide = Tensor(near).require_grad(), Tensor(near.astype("f8")).require_grad()
    found, want = loss(x, far), loss(wide, far.astype("f8"))
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.item(), want.item(), rtol=1e-3)
    slopes = [a.grad((b * 1024.0).backward()) for a, b in ((x, found), (wide, want))]
    np.testing.assert_allclose(*(each.numpy() for each in slopes), rtol=5e-3)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_cross_entropy_has_the_dtype_of_the_logits(dtype, reduction, smoothing):
    found = nn.cross_entropy(
        Tensor(LOGITS.astype(dtype)),
        CLASSES,
        np.array([1.0, 2.0, 0.5]),
        reduction=reduction,
        label_smoothing=smoothing,
    )
    assert found.dtype == dtype


@pytest.mark.parametrize("shape", [(0, 3), (5, 3, 0), (0, 3, 2)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_of_no_targets(shape, smoothing):
    x = Tensor(np.zeros(shape)).require_grad()
    classes = np.zeros((shape[0], *shape[2:]), int)
    mean, total, each = (
        nn.cross_entropy(x, classes, reduction=kind, label_smoothing=smoothing)
        for kind in ("mean", "sum", "none")
    )
    assert np.isnan(mean.item())
    assert total.item() == 0
    assert each.shape == classes.shape
    assert x.grad(total.backward()).shape == shape


def test_the_gradient_of_cross_entropy_is_shares_less_targets():
    logits = Tensor(LOGITS).require_grad()
    loss = nn.CrossEntropyLoss()(logits, CLASSES)
    want = (SHARES - np.eye(3)[CLASSES]) / 2
    np.testing.assert_allclose(logits.grad(loss.backward()).numpy(), want)


def test_cross_entropy_can_be_differentiated_twice():
    logits = Tensor(LOGITS).require_grad()
    loss = nn.cross_entropy(logits, CLASSES, reduction="sum")
    slope = logits.grad(backward(loss, create_graph=True))
    towards = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    bend = logits.grad((slope * Tensor(towards)).sum().backward()).numpy()
    inner = (SHARES * towards).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(bend, SHARES * (towards - inner))


def test_far_logits_stay_finite():
    logits = Tensor(np.array([1000.0, -1000.0])).require_grad()
    loss = nn.binary_cross_entropy_with_logits(logits, np.array([0.0, 1.0]))
    assert loss.item() == 1000.0
    assert logits.grad(loss.backward()).numpy().tolist() == [0.5, -0.5]


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match=r"expected targets \(2,\) of classes"):
        nn.cross_entropy(Tensor(LOGITS), np.array([[0], [1]]))
    with pytest.raises(InputError, match="classes from 0 to 2 or -100, got 0 to 3"):
        nn.cross_entropy(Tensor(LOGITS), np.array([0, 3]))
    with pytest.raises(InputError, match="mse_loss: expected targets with the shape"):
        nn.mse_loss(Tensor(X), Y[:2])
    with pytest.raises(InputError, match="reduction"):
        nn.mse_loss(Tensor(X), Y, reduction="median")
    with pytest.raises(InputError, match=r"CrossEntropyLoss: expected a weight \(3,\)"):
        nn.CrossEntropyLoss(np.ones(4))(Tensor(LOGITS), CLASSES)
    with pytest.raises(
        TypeError, match=r"^MSELoss: .*'beta'; write MSELoss\(reduction"
    ):
        nn.MSELoss(beta=1.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss, nn.NLLLoss])
@pytest.mark.parametrize("options", [{}, {"weight": np.ones(3)}])
def test_the_mean_where_all_are_ignored_moves_nothing(loss, options):
    logits = Tensor(LOGITS).require_grad()
    found = loss(ignore_index=1, **options)(logits, np.array([1, 1]))
    assert np.isnan(found.item())
    assert not logits.grad(found.backward()).numpy().any()
