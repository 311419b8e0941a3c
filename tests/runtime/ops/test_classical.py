import math

import numpy as np
import pytest

from burnish import Tensor, nn, ops
from burnish.errors import GradientError, InputError
from tests.harness.operators import case

NAN = math.nan
TREES = {
    "roots": np.array([0, -3]),
    "features": np.array([0, 1]),
    "thresholds": np.array([0.5, 0.0]),
    "yes": np.array([1, -1]),
    "no": np.array([-2, -4]),
    "targets": np.array([[0], [1], [2], [1]]),
    "weights": np.array([[1.0], [2.0], [4.0], [8.0]], np.float32),
}
"""One tree of two nodes and three leaves, and one that is a leaf alone."""
X = np.array([[0.0, -1.0], [0.0, 1.0], [9.0, 0.0], [NAN, NAN]])
PAIRS = np.array([[1.0, -1.0, 2.0], [-1.0, 1.0, 1.0]])


def tree_ensemble(x, **changes):
    arrays = {**TREES, **{n: a for n, a in changes.items() if n in TREES}}
    others = {n: a for n, a in changes.items() if n not in TREES}
    return ops.tree_ensemble(x, *arrays.values(), outputs=3, **others)


def labels(values):
    return lambda *_: np.array(values)


HOST = {"grad": False, "gpu": False}
CASES = [
    case(
        ops.label_encoder,
        np.array([3, 1, 8]),
        [1, 3, 1],
        [4, 5, 6],
        default=-1,
        dtypes=("int64",),
        expect=labels([5, 4, -1]),
        grad=False,
    ),
    case(
        ops.label_encoder,
        np.array([0.5, NAN, 2.0]),
        [NAN, 0.5, NAN, 0.5],
        [1.5, 2.5, 3.5, 4.5],
        default=0.0,
        expect=lambda *_: np.array([2.5, 1.5, 0], np.float32),
        grad=False,
    ),
    case(
        ops.label_encoder,
        np.array([["a", "b"]], object),
        ["b", "b"],
        [7, 8],
        default=-1,
        dtype="int16",
        dtypes=("int64",),
        expect=lambda *_: np.array([[-1, 7]], np.int16),
        **HOST,
    ),
    case(
        ops.label_encoder,
        np.array([2, 5]),
        [5],
        ["five"],
        default="?",
        dtypes=("int64",),
        expect=lambda *_: np.array(["?", "five"], object),
        **HOST,
    ),
    case(
        ops.tree_ensemble,
        X,
        *TREES.values(),
        outputs=3,
        expect=lambda x, *_: np.array(
            [[1, 0, 4], [0, 8, 4], [0, 2, 4], [0, 2, 4]], x.dtype
        ),
        grad=False,
    ),
    case(
        ops.pairwise_votes,
        PAIRS,
        classes=3,
        expect=labels([[1, 1, 1], [1, 2, 0]]),
        grad=False,
    ),
    case(
        ops.pairwise_coupling,
        np.array([[0.7], [0.2]]),
        classes=2,
        rtol=1e-3,
        expect=lambda *_: np.float32([[0.7, 0.3], [0.2, 0.8]]),
        grad=False,
    ),
    case(
        ops.softmax_zero,
        np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]),
        grad=False,
        expect=lambda x: np.array(
            [[1 / (1 + math.e), 0, math.e / (1 + math.e)], [0.5] * 3], x.dtype
        ),
    ),
    case(ops.softmax_zero, (3, 4), low=0.5),
    case(
        ops.probit,
        np.array([0.2, 0.5, 0.9]),
        atol=3e-3,
        grad=False,
        expect=lambda x: np.array([-0.8416, 0, 1.2816], x.dtype),
    ),
    case(ops.probit, (5,), low=0.1, high=0.9),
    case(ops.svm_kernel, (3, 4), (2, 4), expect=lambda x, v: x @ v.T),
    case(
        ops.svm_kernel,
        (3, 4),
        (2, 4),
        kernel="POLY",
        gamma=0.5,
        coef0=1.0,
        degree=3,
        expect=lambda x, v: (x @ v.T * x.dtype.type(0.5) + 1) ** 3,
        rtol=1e-5,
    ),
    case(
        ops.svm_kernel,
        (3, 4),
        (2, 4),
        kernel="RBF",
        gamma=0.5,
        expect=lambda x, v: np.exp(-0.5 * ((x[:, None] - v) ** 2).sum(-1)).astype(
            x.dtype
        ),
        rtol=1e-5,
    ),
    case(ops.svm_kernel, (3, 4), (2, 4), kernel="SIGMOID", gamma=0.1, coef0=0.2),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_missing_values_may_answer_yes():
    got = tree_ensemble(X[3:], missing=np.array([True, True]))
    np.testing.assert_array_equal(got, [[1, 0, 4]])


def test_sets_of_members():
    got = tree_ensemble(
        X[:3],
        modes=np.array([6, 0], np.uint8),
        members=np.array([[9.0, 3.0, NAN]]),
        thresholds=np.array([0.0, 0.0]),
    )
    np.testing.assert_array_equal(got, [[0, 2, 4], [0, 2, 4], [1, 0, 4]])


@pytest.mark.parametrize(
    ("aggregate", "want"),
    [("average", [0.5, 0, 2]), ("min", [1, 0, 4]), ("max", [1, 0, 4])],
)
def test_aggregates(aggregate, want):
    np.testing.assert_array_equal(tree_ensemble(X[:1], aggregate=aggregate), [want])


def test_void_votes_count_for_nothing():
    targets = np.array([[0, 3], [1, 3], [2, 0], [1, 3]])
    weights = np.array([[1.0, 0], [2, 0], [4, 5], [8, 0]])
    got = tree_ensemble(X[:1], targets=targets, weights=weights)
    np.testing.assert_array_equal(got, [[6, 0, 4]])


def test_many_rows_and_trees_agree_with_a_walk():
    """Against following each row through each tree by hand."""
    rng = np.random.default_rng(4)
    depth, trees = 5, 8
    inner = 2**depth - 1
    at = np.arange(inner)
    child = [2 * at + 1, 2 * at + 2]
    sides = [np.where(c < inner, c, -1 - (c - inner)) for c in child]
    offsets = np.arange(trees)[:, None]
    yes, no = (
        np.where(s >= 0, s + offsets * inner, s - offsets * (inner + 1)).ravel()
        for s in sides
    )
    features = rng.integers(0, 6, trees * inner)
    thresholds = rng.normal(size=trees * inner)
    weights = rng.normal(size=(trees * (inner + 1), 1))
    x = rng.normal(size=(40, 6))
    got = ops.tree_ensemble(
        x,
        np.arange(trees) * inner,
        features,
        thresholds,
        yes,
        no,
        np.zeros(weights.shape, int),
        weights,
        outputs=1,
    )
    want = np.zeros((40, 1))
    for i, row in enumerate(x):
        for tree in range(trees):
            node = tree * inner
            while node >= 0:
                below = row[features[node]] <= thresholds[node]
                node = (yes if below else no)[node]
            want[i] += weights[~node]
    np.testing.assert_allclose(got, want)


def test_trees_and_encoders_have_no_gradient():
    x = Tensor(X).require_grad()
    with pytest.raises(GradientError, match="tree_ensemble: no gradient"):
        tree_ensemble(x).sum().backward()
    with pytest.raises(GradientError, match="label_encoder: no gradient"):
        ops.label_encoder(x, [0.0], [1.0], default=0.0).sum().backward()


def test_a_tree_takes_a_matrix():
    with pytest.raises(InputError, match=r"expected x \(N, F\)"):
        tree_ensemble(X[0])


def test_a_layer_of_trees():
    layer = nn.TreeEnsemble(2, 2, 4, 3, dtype="float64")
    assert layer(Tensor(X)).numpy().tolist() == [[0, 0, 0]] * 4
    layer.load_state_dict({n: np.asarray(a) for n, a in TREES.items()}, strict=True)
    np.testing.assert_array_equal(layer(Tensor(X)).numpy(), tree_ensemble(X))
    assert layer.num_params == 0


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 20])
def test_rows_as_dictionaries(rows):
    x, keys = np.arange(2.0 * rows).reshape(rows, 2), ["no", "yes"]
    want = [{"no": 2.0 * i, "yes": 2.0 * i + 1} for i in range(rows)]
    for given in (x, Tensor(x)):
        assert ops.zip_map(given, keys) == want
        assert ops.zip_map(given.reshape(-1), range(x.size)) == [
            dict(enumerate(x.reshape(-1).tolist()))
        ]
        with pytest.raises(InputError, match=rf"\(N, 1\) for 1 keys, got \({rows}, 2"):
            ops.zip_map(given, keys[:1])


def _solved(wins: np.ndarray, classes: int) -> np.ndarray:
    """The shares of one row that the iteration approaches, from a linear system."""
    first, second = np.triu_indices(classes, 1)
    r = np.zeros((classes, classes))
    r[first, second], r[second, first] = wins, 1 - wins
    system = np.zeros((classes + 1, classes + 1))
    system[:classes, :classes] = -r.T * r + np.diag((r * r).sum(0))
    system[:classes, classes] = system[classes, :classes] = 1
    return np.linalg.solve(system, np.eye(classes + 1)[classes])[:classes]


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_shares_of_pairs_have_the_gradient_of_their_system(classes: int) -> None:
    rng = np.random.default_rng(classes)
    pairs = classes * (classes - 1) // 2
    wins, weight = rng.uniform(0.2, 0.8, (4, pairs)), rng.normal(size=(4, classes))
    given = Tensor(wins, device="cpu:autodiff").require_grad()
    y = ops.pairwise_coupling(given, classes=classes)
    gradients = (y * Tensor(weight, device="cpu:autodiff")).sum().backward()
    expected = np.zeros_like(wins)
    for row, pair in np.ndindex(wins.shape):
        step = np.zeros(pairs)
        step[pair] = 1e-6
        up, down = (_solved(wins[row] + d, classes) for d in (step, -step))
        expected[row, pair] = (up - down) @ weight[row] / 2e-6
    got = given.grad(gradients).numpy()
    np.testing.assert_allclose(got, expected, rtol=0.01, atol=0.01)


def test_shares_of_pairs_at_their_bounds_have_no_gradient() -> None:
    given = Tensor(np.array([[0.0, 0.5, 1.0]]), device="cpu:autodiff").require_grad()
    y = ops.pairwise_coupling(given, classes=3)
    got = given.grad(y[:, 0].sum().backward()).numpy()
    assert got[0, 0] == got[0, 2] == 0
    assert got[0, 1] != 0
