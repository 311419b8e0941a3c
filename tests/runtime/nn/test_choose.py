"""Layers by name, noise in training, losses and layers that PyTorch lacks."""

import numpy as np
import pytest

from burnish import Tensor, nn, ops, seed
from burnish.errors import InputError

X = np.random.default_rng(0).normal(size=(2, 6, 5))
ONES = np.ones((300, 200))


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("relu", {}, "ReLU()"),
        ("LeakyReLU", {"negative_slope": 0.2}, "LeakyReLU(negative_slope=0.2)"),
        ("leaky_relu", {}, "LeakyReLU()"),
        ("soft_shrink", {"lambd": 1.0}, "Softshrink(lambd=1.0)"),
        ("thresholded_relu", {}, "ThresholdedReLU()"),
    ],
)
def test_an_activation_by_name(name, options, text):
    assert repr(nn.activation(name, **options)) == text


def test_every_activation_has_its_name():
    layers = [
        layer
        for layer in (getattr(nn, name) for name in nn.__all__)
        if isinstance(layer, type)
        and layer.__module__.startswith("burnish.nn.activations.")
    ]
    assert layers
    options = {"Threshold": {"threshold": 0.0, "value": 0.0}}
    for layer in layers:
        name = layer.__name__
        assert type(nn.activation(name, **options.get(name, {}))) is layer


def test_an_activation_that_is_one_already():
    assert nn.activation(ops.tanh) is ops.tanh


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("batch2d", {"momentum": None}, "BatchNorm2d(4, momentum=None)  # 8 params"),
        ("group", {"num_groups": 2}, "GroupNorm(2, 4)  # 8 params"),
        ("instance1d", {}, "InstanceNorm1d(4)"),
        ("layer", {}, "LayerNorm(4)  # 8 params"),
        ("RMS", {}, "RMSNorm(4)  # 4 params"),
        ("identity", {}, "Identity()"),
    ],
)
def test_a_normalization_by_name(name, options, text):
    assert repr(nn.normalization(name, 4, **options)) == text


@pytest.mark.parametrize("choose", [nn.activation, lambda n: nn.normalization(n, 3)])
def test_an_unknown_name_is_reported(choose):
    with pytest.raises(InputError, match=r"expected one of \[.*\], got 'best'"):
        choose("best")


def trained(layer, x):
    seed(0)
    assert (layer(Tensor(x)).numpy() == x).all()
    return layer.to("cpu:autodiff")(Tensor(x)).numpy()


def test_alpha_dropout_keeps_mean_and_variance():
    x = np.random.default_rng(0).normal(size=ONES.shape)
    y = trained(nn.AlphaDropout(0.3), x)
    np.testing.assert_allclose([y.mean(), y.std()], [0, 1], atol=0.02)
    values, counts = np.unique(y, return_counts=True)
    np.testing.assert_allclose(counts.max() / y.size, 0.3, atol=0.01)
    assert values[counts.argmax()] < -1
    channels = trained(nn.FeatureAlphaDropout(), X)
    dropped = (channels == channels[:, :, :1]).all(axis=2)
    assert 0 < dropped.sum() < dropped.size


def test_channels_are_dropped_as_a_whole():
    for layer, x in ((nn.Dropout1d(), X), (nn.Dropout3d(), X[:, None, None])):
        y = trained(layer, x)
        assert set(np.unique((y / x).round(9)).tolist()) <= {0.0, 2.0}
    alone = trained(nn.Dropout1d(), X[0])
    assert len(np.unique((alone / X[0]).round(9), axis=1).T) == 1


def test_noise_has_its_deviation():
    y = trained(nn.GaussianNoise(0.5), ONES)
    np.testing.assert_allclose([y.mean(), y.std()], [1, 0.5], atol=0.01)
    assert (trained(nn.GaussianNoise(0.0), ONES) == ONES).all()


def test_random_slopes():
    layer = nn.RReLU(0.1, 0.3)
    np.testing.assert_allclose(layer(Tensor(-ONES)).numpy(), -0.2)
    seed(0)
    y = layer.to("cpu:autodiff")(Tensor(-ONES)).numpy()
    assert -0.3 <= y.min() < -0.295 < -0.105 < y.max() <= -0.1
    assert (layer(Tensor(ONES)).numpy() == 1).all()
    with pytest.raises(InputError, match="expected lower <= upper"):
        nn.RReLU(0.5, 0.1)


def weights(layer):
    return [p.numpy() for p in layer.parameters()]


def test_a_gated_layer():
    layer = nn.SwiGLU(5, 3, bias=True, dtype="float64")
    inner, inner_bias, outer, outer_bias = weights(layer)
    z = X @ inner.T + inner_bias
    want = z / (1 + np.exp(-z)) * (X @ outer.T + outer_bias)
    np.testing.assert_allclose(layer(Tensor(X)).numpy(), want)
    assert len(nn.SwiGLU(5, 3).parameters()) == 2


def test_a_network_at_each_place():
    layer = nn.PositionWiseFeedForward(5, 7, act="relu", dtype="float64")
    inner, inner_bias, outer, outer_bias = weights(layer)
    hidden = np.maximum(X @ inner.T + inner_bias, 0)
    np.testing.assert_allclose(layer(Tensor(X)).numpy(), hidden @ outer.T + outer_bias)


def test_shrinking_and_thresholds():
    x = np.array([-2.0, -0.4, 0.4, 2.0])
    rows = [
        (nn.Shrink(), [-2, 0, 0, 2]),
        (nn.Shrink(0.3, 0.1), [-1.9, -0.3, 0.3, 1.9]),
        (nn.ThresholdedReLU(), [0, 0, 0, 2]),
        (nn.ThresholdedReLU(-1.0), [0, -0.4, 0.4, 2]),
    ]
    for layer, want in rows:
        np.testing.assert_allclose(layer(Tensor(x)).numpy(), want)


def test_distances_as_functions():
    a, b = Tensor(X), Tensor(X[::-1])
    options = {"dim": 2, "eps": 0.1}
    got = nn.cosine_similarity(a, b, **options)
    assert (got == nn.CosineSimilarity(**options)(a, b)).all()
    options = {"p": 1.0, "eps": 0.1, "keepdim": True}
    got = nn.pairwise_distance(a, b, **options)
    assert (got == nn.PairwiseDistance(**options)(a, b)).all()


def test_smoothed_labels():
    targets = np.array([0.0, 1, 1, 0])
    near = np.array([0.1, 0.9, 0.9, 0.1])
    p = Tensor(np.array([0.2, 0.7, 0.4, 0.9]))
    for loss in (nn.BCELoss, nn.BCEWithLogitsLoss):
        got, want = loss(label_smoothing=0.2)(p, targets), loss()(p, near)
        np.testing.assert_allclose(got.item(), want.item())


def test_whole_numbers_do_not_widen_a_loss():
    x = Tensor(np.array([0.5, 0.25], np.float32))
    targets = np.array([1, 0])
    for loss in (nn.mse_loss, nn.binary_cross_entropy, nn.poisson_nll_loss):
        assert loss(x, targets).dtype == np.float32
        assert loss(x, targets == 1).dtype == np.float32
    weighted = nn.CrossEntropyLoss([1.0, 2.0])
    assert weighted(Tensor(np.eye(2, dtype=np.float32)), targets).dtype == np.float32
    assert repr(weighted) == "CrossEntropyLoss()"


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_loss_of_style(reduction):
    def features(images):
        return [images, images[:, :2] * 2.0]

    one, other = (np.random.default_rng(i).normal(size=(2, 3, 4, 5)) for i in (0, 1))
    want = np.zeros(2)
    for n, (a, b) in enumerate(zip(one, other, strict=True)):
        for weight, scale, count in ((0.5, 1, 3), (2.0, 2, 2)):
            rows = [scale * x[:count].reshape(count, -1) for x in (a, b)]
            apart = rows[0] @ rows[0].T - rows[1] @ rows[1].T
            want[n] += weight * (apart**2).sum() / (4 * count**2 * 20**2)
    want = {"mean": want.mean(), "sum": want.sum(), "none": want}[reduction]
    loss = nn.GramMatrixLoss(features, [0.5, 2.0], reduction)
    np.testing.assert_allclose(loss(Tensor(one), Tensor(other)).numpy(), want)
    assert nn.gram_matrix(Tensor(one)).shape == (2, 3, 3)
    with pytest.raises(InputError, match="expected a map for each of 1 weights, got 2"):
        nn.GramMatrixLoss(features, [1.0])(Tensor(one), Tensor(other))
    with pytest.raises(InputError, match="expected no negative weights"):
        nn.GramMatrixLoss(features, [-1.0, 1.0])


REFUSED = [
    (lambda: nn.AlphaDropout(1.5), "AlphaDropout: expected p from 0 to 1, got 1.5"),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), "multiples of groups=2, got 3 and 4"),
    (lambda: nn.Conv1d(2, 2, 1, padding_mode="edge"), "expected padding_mode among"),
    (lambda: nn.ConvTranspose1d(2, 2, 1, padding_mode="reflect"), "'zeros', got"),
    (lambda: nn.EmbeddingBag(3, 2, mode="min"), "expected mode 'sum', 'mean' or 'max'"),
    (lambda: nn.EmbeddingBag(3, 2)(Tensor([1, 2])), r"expected ids \(N, length\)"),
    (
        lambda: nn.ConvTranspose1d(1, 1, 3, 2)(
            Tensor(np.ones((1, 1, 4), np.float32)), output_size=[8]
        ),
        r"expected output_size between \(9,\) and \(10,\), got \(8,\)",
    ),
    (
        lambda: nn.DeformConv2d(1, 1, 3)(Tensor(X[None]), Tensor(X[None])),
        "expected offset",
    ),
    (lambda: nn.ReflectionPad1d(5)(Tensor(X)), "expected padding up to 4 for an axis"),
    (lambda: nn.ZeroPad2d((1, 2))(Tensor(X)), "expected one padding or 4, got"),
    (lambda: nn.ZeroPad2d(1)(Tensor(X[0])), "expected x with 4 axes"),
    (lambda: nn.PixelShuffle(4)(Tensor(X)), "expected a multiple of 16, got 2"),
    (lambda: nn.ChannelShuffle(4)(Tensor(X)), "expected a multiple of 4, got 6"),
    (
        lambda: nn.Bilinear(5, 4, 2)(Tensor(X), Tensor(X)),
        r"Bilinear: expected \(\.\.\.",
    ),
    (
        lambda: nn.MaxUnpool1d(2)(Tensor(X), Tensor(np.full(X.shape, 10))),
        "expected indices from 0 to 9",
    ),
    (lambda: nn.LSTMCell(4, 2)(Tensor(X[0])), r"expected x \(N, 4\) or \(4,\)"),
    (
        lambda: nn.GRUCell(5, 2)(Tensor(X[0]), Tensor(X[0])),
        r"expected a state \(6, 2\) beside x \(6, 5\)",
    ),
    (lambda: nn.Softmax2d()(Tensor(X[0])), "Softmax2d: expected 3 or 4 axes"),
    (lambda: nn.LocalResponseNorm(3)(Tensor(X[0])), "LocalResponseNorm: expected x"),
    (lambda: nn.Transformer(8, 2, 1, 1, 4)(Tensor(X), Tensor(X)), "a last axis of 8"),
    (lambda: nn.RNNCell(3, 4, nonlinearity="elu"), "expected nonlinearity 'tanh'"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
