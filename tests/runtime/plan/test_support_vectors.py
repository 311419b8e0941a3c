"""Kernels of support vector machines against the plain operators, in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import burnish
from burnish import Tensor, ops
from tests.runtime.plan.checks import check, records

pytestmark = pytest.mark.usefixtures("canaries")

KERNELS = {
    "linear": {"kernel": "LINEAR"},
    "squares": {"kernel": "POLY", "gamma": 0.1, "coef0": 1.0, "degree": 2},
    "cubes": {"kernel": "POLY", "gamma": 0.1, "coef0": 1.0, "degree": 3},
    "a root": {"kernel": "POLY", "gamma": 0.01, "coef0": 4.0, "degree": 0.5},
    "a power": {"kernel": "POLY", "gamma": 0.01, "coef0": 4.0, "degree": 1.5},
    "sigmoid": {"kernel": "SIGMOID", "gamma": 0.1, "coef0": -0.2},
    "rbf": {"kernel": "RBF", "gamma": 0.004},
}
SIZES = [(1, 5, 60), (9, 1, 1), (13, 33, 16), (100, 300, 47), (3, 784, 40)]


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_rows_and_vectors(name, size):
    rows, width, count = size
    x, vectors = normal(1, rows, width), normal(2, count, width)
    fast = check(
        lambda x: ops.svm_kernel(x, Tensor(vectors), **KERNELS[name]), Tensor(x)
    )
    assert records(fast) == 1
    wide = x.astype(np.float64), vectors.astype(np.float64)
    wanted = ops.svm_kernel.value(*wide, **KERNELS[name])
    got = fast(Tensor(x)).data
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=3e-6 * abs(wanted).max())


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_not_finite_goes_through_as_in_the_plain_call(name):
    x = normal(1, 5, 4)
    x[0, 1], x[1, 0], x[2, 2], x[3, :2] = np.nan, np.inf, -np.inf, (np.nan, np.inf)
    vectors = abs(normal(2, 19, 4))
    check(lambda x: ops.svm_kernel(x, Tensor(vectors), **KERNELS[name]), Tensor(x))


def test_no_rows_no_vectors_and_other_dtypes_run_eagerly():
    for x, vectors in (
        (normal(1, 0, 4), normal(2, 3, 4)),
        (normal(1, 3, 4), normal(2, 0, 4)),
        (normal(1, 3, 4).astype(np.float64), normal(2, 2, 4).astype(np.float64)),
    ):
        fast = check(
            lambda x, v=vectors: ops.svm_kernel(x, Tensor(v), kernel="RBF", gamma=0.1),
            Tensor(x),
        )
        assert records(fast) == 0


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_votes_of_pairs_and_the_class_that_most_are_for(classes):
    scores = normal(classes, 33, classes * (classes - 1) // 2)
    scores[:5], scores[5:8, :1] = 0, np.nan

    def voted(scores):
        votes = ops.pairwise_votes(scores, classes=classes)
        return votes, ops.arg_max(votes, axis=1), ops.arg_min(votes, axis=1)

    fast = check(voted, Tensor(scores))
    assert records(fast) == 3
    pairs = [*itertools.combinations(range(classes), 2)]
    for row, votes in zip(scores, fast(Tensor(scores))[0].data, strict=True):
        winners = [i if s > 0 else j for s, (i, j) in zip(row, pairs, strict=True)]
        assert votes.tolist() == [winners.count(i) for i in range(classes)]


@pytest.mark.parametrize("last", [False, True])
def test_places_of_extrema_of_integers(last):
    x = np.random.default_rng(0).integers(-2, 3, (7, 5, 6)) + (1 << 60)
    for axis, name in itertools.product((0, 1, -1), ("arg_max", "arg_min")):
        options = {"axis": axis, "select_last_index": last}
        fast = check(lambda x, n=name, o=options: getattr(ops, n)(x, **o), Tensor(x))
        assert records(fast) == 1


@pytest.mark.parametrize("classes", [2, 3, 10, 120])
def test_shares_of_pairs(classes):
    draw = np.random.default_rng(classes)
    wins = draw.uniform(size=(40, classes * (classes - 1) // 2)).astype(np.float32)
    wins[:3], wins[3:6], wins[6, 0] = 0, 1, np.nan
    fast = check(lambda w: ops.pairwise_coupling(w, classes=classes), Tensor(wins))
    assert records(fast) == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_are_shared_out(threads):
    before = burnish.num_threads()
    x, vectors = normal(1, 501, 20), normal(2, 301, 20)
    wins = 1 / (1 + np.exp(-normal(3, 501, 6)))

    def function(x, wins):
        near = ops.svm_kernel(x, Tensor(vectors), kernel="RBF", gamma=0.02)
        return near, ops.pairwise_coupling(wins, classes=4)

    burnish.set_num_threads(threads)
    try:
        check(function, Tensor(x), Tensor(wins))
    finally:
        burnish.set_num_threads(before)
