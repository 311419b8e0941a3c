"""Operators, losses and layers that planned steps compute without an eager call."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.kernels import library
from tests.runtime.plan.gradients import exact, normal

pytestmark = [
    pytest.mark.usefixtures("canaries"),
    pytest.mark.skipif(library() is None, reason="there is no compiler"),
]

MAP = (2, 5, 6, 7)
PIXELS = Tensor(np.arange(2 * 6 * 7).reshape(2, 6, 7) % 5)


def between(x):
    """Numbers between 0 and 1."""
    return ops.sigmoid(x)


OF_ONE = {
    "softmax of channels": lambda x: ops.softmax(x, 1),
    "softmax of the last axis": lambda x: ops.softmax(x, -1),
    "log softmax of rows": lambda x: ops.log_softmax(x, 2),
    "log softmax of the batch": lambda x: ops.log_softmax(x, 0),
    "cross entropy of pixels": lambda x: nn.cross_entropy(x, PIXELS),
    "cross entropy of each pixel": lambda x: nn.cross_entropy(
        x, PIXELS, reduction="none"
    ),
    "cross entropy, smoothed": lambda x: nn.cross_entropy(
        x, PIXELS, label_smoothing=0.1
    ),
    "negative log likelihood": lambda x: nn.nll_loss(ops.log_softmax(x, 1), PIXELS),
    "detached": lambda x: x * (x * 2.0).detach() + x[:, 1:2].detach(),
    "threshold": lambda x: ops.threshold(x, 0.2, -3.0),
    "erf": lambda x: ops.erf(x * 1.5),
    "sine and cosine": lambda x: ops.sin(x) * ops.cos(2.0 * x),
    "flip": lambda x: ops.flip(x * 2.0, (1, 3)),
    "roll": lambda x: ops.roll(x * 2.0, (1, -2), (1, 2)),
    "reflected": lambda x: ops.pad(x, [(0, 0), (0, 0), (2, 1), (1, 3)], mode="reflect"),
    "edges": lambda x: ops.pad(x, [(0, 0), (1, 0), (2, 1), (1, 3)], mode="edge"),
    "wrapped": lambda x: ops.pad(x, [(0, 0), (0, 0), (2, 1), (1, 3)], mode="wrap"),
    "variance of maps": lambda x: ops.var(x, (2, 3)),
    "variance of channels": lambda x: ops.var(x, 1, keepdims=True, correction=1),
    "standard deviation": lambda x: ops.std(x, -1),
    "minimum": lambda x: ops.reduce_min(x, axes=(2, 3)),
    "norm": lambda x: ops.reduce_l2(x, axes=1),
    "unit length": lambda x: x / ops.reduce_l2(x, axes=1, keepdims=True),
    "cross entropy of shares": lambda x: nn.binary_cross_entropy(
        between(x), between(x * 2.0).detach()
    ),
    "trace of a product": lambda x: ops.einsum("nchw,nkhw->nck", x, x * 2.0),
}


@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_one_value(name):
    function, random = OF_ONE[name], np.random.default_rng(13)
    report = exact(lambda x: function(x * 1.0), normal(random, *MAP))
    assert "nothing eagerly" in report


@pytest.mark.parametrize("channels", [16, 20])
@pytest.mark.parametrize("name", ["softmax of channels", "cross entropy of pixels"])
def test_lines_along_channels_in_blocks(name, channels):
    random, function = np.random.default_rng(4), OF_ONE[name]
    x, weight = normal(random, 2, 3, 6, 7), normal(random, channels, 3, 1, 1)
    report = exact(lambda x, w: function(ops.conv(x * 1.0, w)), x, weight)
    assert "nothing eagerly" in report


OF_TWO = {
    "huber": nn.huber_loss,
    "huber, each": lambda a, b: nn.huber_loss(a, b, reduction="none", delta=0.7),
    "smooth L1": lambda a, b: nn.smooth_l1_loss(a, b, beta=0.5),
    "cross entropy of logits": lambda a, b: nn.binary_cross_entropy_with_logits(
        a, between(b)
    ),
    "squared error": nn.mse_loss,
    "absolute error": nn.l1_loss,
    "ranking": lambda a, b: nn.margin_ranking_loss(a, b, Tensor(1.0), margin=0.3),
}


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_values(name):
    function, random = OF_TWO[name], np.random.default_rng(5)
    pair = normal(random, *MAP), normal(random, *MAP)
    report = exact(lambda a, b: function(a * 1.0, b * 1.0), *pair)
    assert "nothing eagerly" in report


EQUATIONS = {
    "bhid,bhjd->bhij": ((2, 3, 5, 4), (2, 3, 6, 4)),
    "bhij,bhjd->bihd": ((2, 3, 5, 6), (2, 3, 6, 4)),
    "bihd,bjhd->bhij": ((2, 5, 3, 4), (2, 6, 3, 4)),
    "ij,jk": ((5, 6), (6, 7)),
    "btd,dhk->bthk": ((2, 5, 6), (6, 3, 4)),
    "bthk,hkd->btd": ((2, 5, 3, 4), (3, 4, 6)),
    "...ij,...kj->...ik": ((2, 3, 5, 4), (2, 3, 6, 4)),
    "i,j->ij": ((5,), (6,)),
    "abc,cd->dab": ((3, 4, 5), (5, 6)),
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einstein_sums(equation):
    random = np.random.default_rng(6)
    a, b = (normal(random, *shape) for shape in EQUATIONS[equation])
    report = exact(lambda a, b: ops.einsum(equation, a * 1.0, b * 1.0), a, b)
    assert "nothing eagerly" in report


@pytest.mark.parametrize("equation", ["ii->i", "ij->i", "ij,kj,k->i", "ij,ij->i"])
def test_other_einstein_sums_are_in_the_plan_too(equation):
    """Where no product computes one, it is called between records."""
    random = np.random.default_rng(6)
    terms = equation.split("->")[0].split(",")
    arrays = [normal(random, *[5] * len(term)) for term in terms]
    exact(lambda *a: ops.einsum(equation, *(each * 1.0 for each in a)), *arrays)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 2, "stride": 1, "dilation": 2},
        {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    ],
)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_largest_of_windows(rank, options):
    random = np.random.default_rng(7)
    weight = normal(random, 20, 3, *[1] * rank)
    x = normal(random, 2, 3, *(8, 7, 6)[:rank])
    report = exact(
        lambda x, w: ops.max_pool(ops.conv(x * 1.0, w), **options), x, weight
    )
    assert "nothing eagerly" in report


EAGER = [(1, 5, 1, 7), (2, 1, 6, 1)]  # sums of axes that lie apart


@pytest.mark.parametrize("shape", [(2, 1, 6, 1), (2, 1, 6, 7), (1, 5, 1, 7), (5, 6, 1)])
def test_sums_for_what_broadcasts(shape):
    random = np.random.default_rng(8)
    report = exact(
        lambda x, y: x * (y * 1.0), normal(random, *MAP), normal(random, *shape)
    )
    assert "sum_to" not in report or shape in EAGER


ODD = {
    "huber": lambda x: nn.huber_loss(x, ops.flip(x, 1), reduction="none"),
    "minimum": lambda x: ops.reduce_min(x, axes=1),
    "norm": lambda x: ops.reduce_l2(x, axes=1),
    "deviation": lambda x: ops.std(x, 1),
    "threshold": lambda x: ops.threshold(x, 0.2, -3.0),
    "softmax": lambda x: ops.softmax(x, 0),
    "einsum": lambda x: ops.einsum("ij,kj->ki", x, x),
}


@pytest.mark.parametrize("name", ODD)
def test_nan_and_infinity_travel_as_in_the_plain_call(name):
    model = nn.Linear(6, 6).to("cpu:autodiff")
    function, optimizer = ODD[name], optim.SGD()

    def step(x, finite):
        found = function(x * 1.0)
        optimizer.step(0.0, model, model(finite).sum().backward())
        return found

    x = np.random.default_rng(9).normal(size=(5, 6)).astype(np.float32)
    x[0, 1], x[1, 2], x[2, 3], x[3] = np.nan, np.inf, -np.inf, 0
    fast = burnish.compile(step)
    with np.errstate(invalid="ignore"):
        made = fast(Tensor(x), Tensor(np.ones((5, 6), np.float32))).numpy()
        plain = function(Tensor(x)).numpy()
    assert "nothing eagerly" in fast.explain()
    np.testing.assert_allclose(made, plain, rtol=1e-5, atol=1e-6)
