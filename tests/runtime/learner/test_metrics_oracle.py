"""Metrics against scikit-learn's and PyTorch's on random outputs."""

import numpy as np
import pytest

from burnish.learner import metric as m

from .test_metrics import value

pytestmark = pytest.mark.oracle
SEEDS = range(5)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("seed", SEEDS)
def test_confusion(seed, average):
    from sklearn import metrics

    rng = np.random.default_rng(seed)
    scores, targets = rng.standard_normal((40, 5)), rng.integers(0, 4, 40)
    labels = rng.integers(0, 2, (40, 5))
    cases = [
        ("multiclass", targets, targets, scores.argmax(-1)),
        ("multilabel", labels, labels, scores > 0.5),
    ]
    for kind, given, wanted, found in cases:
        options = {"average": average, "zero_division": 0}
        expected = {
            m.Precision: metrics.precision_score(wanted, found, **options),
            m.Recall: metrics.recall_score(wanted, found, **options),
            m.FBetaScore: metrics.fbeta_score(wanted, found, beta=2.0, **options),
        }
        for metric, score in expected.items():
            extra = {"beta": 2.0} if metric is m.FBetaScore else {}
            ours = value(metric(kind, average=average, **extra), scores, given)
            assert ours == pytest.approx(100 * score)


@pytest.mark.parametrize("seed", SEEDS)
def test_areas(seed):
    from sklearn import metrics

    rng = np.random.default_rng(seed)
    scores, targets = rng.integers(0, 9, 60) / 9, rng.integers(0, 2, 60)
    assert value(m.AUROC(), scores, targets) == pytest.approx(
        100 * metrics.roc_auc_score(targets, scores)
    )
    assert value(m.AUCPR(), scores, targets) == pytest.approx(
        100 * metrics.average_precision_score(targets, scores)
    )
    shares = rng.dirichlet(np.ones(4), 60)
    classes = rng.integers(0, 4, 60)
    assert value(m.AUROC(), shares, classes) == pytest.approx(
        100 * metrics.roc_auc_score(classes, shares, multi_class="ovr")
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_perplexity(seed):
    import torch

    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((3, 7, 11)) * 4
    targets = rng.integers(0, 11, (3, 7))
    expected = torch.nn.functional.cross_entropy(
        torch.tensor(logits).reshape(-1, 11),
        torch.tensor(targets).reshape(-1),
        ignore_index=2,
    ).exp()
    assert value(m.Perplexity(pad=2), logits, targets) == pytest.approx(expected.item())


@pytest.mark.parametrize("seed", SEEDS)
def test_similarity(seed):
    import torch

    rng = np.random.default_rng(seed)
    a, b = rng.random((2, 2, 3, 20, 24))
    places = torch.arange(11, dtype=torch.float64) - 5
    line = torch.exp(-(places**2) / (2 * 1.5**2))
    line = line / line.sum()
    kernel = torch.outer(line, line).expand(3, 1, 11, 11)

    def blurred(x):
        return torch.nn.functional.conv2d(x, kernel, groups=3)

    x, y = torch.tensor(a), torch.tensor(b)
    mx, my = blurred(x), blurred(y)
    vx, vy, both = (
        blurred(x * x) - mx**2,
        blurred(y * y) - my**2,
        blurred(x * y) - mx * my,
    )
    c1, c2 = 0.01**2, 0.03**2
    expected = (2 * mx * my + c1) * (2 * both + c2)
    expected = expected / ((mx**2 + my**2 + c1) * (vx + vy + c2))
    assert value(m.SSIM(), a, b) == pytest.approx(expected.mean().item())
