import numpy as np
import pytest

from burnish import ops
from burnish.errors import InputError
from tests.harness.operators import case

WIDE = np.random.default_rng(0).normal(size=(2, 3, 5))
TALL = np.random.default_rng(1).normal(size=(2, 5, 3))
SQUARE = np.random.default_rng(2).normal(size=(4, 4))
LARGE = np.random.default_rng(3).normal(size=(70, 70))


def product(op):
    """The factors' product, which has x's value and gradient."""

    def multiplied(x):
        first, *rest = op(x)
        for factor in rest:
            first = first @ factor
        return first

    multiplied.__name__ = op.__name__
    return multiplied


def upper(op):
    """The last factor alone."""

    def last(x):
        return op(x)[-1]

    last.__name__ = op.__name__
    return last


def numpy_r(x):
    return np.linalg.qr(x)[1]


LOOSE = {"dtypes": ("float64",), "rtol": 1e-9}

CASES = [
    *(
        case(product(op), x, expect=lambda x: x, **LOOSE)
        for op in (ops.lu, ops.qr)
        for x in (SQUARE, WIDE, TALL)
    ),
    *(case(upper(ops.lu), x, **LOOSE) for x in (SQUARE, WIDE, TALL)),
    *(case(upper(ops.qr), x, expect=numpy_r, **LOOSE) for x in (SQUARE, WIDE, TALL)),
    case(lambda x: ops.qr(x)[0], WIDE, expect=lambda x: np.linalg.qr(x)[0], **LOOSE),
    case(lambda x: ops.lu(x)[1], WIDE, **LOOSE),
    case(lambda x: ops.lu(x)[1], TALL, **LOOSE),
    case(lambda x: ops.lu_factor(x)[0], SQUARE, **LOOSE),
    case(product(ops.lu), LARGE, expect=lambda x: x, grad=False, **LOOSE),
    case(product(ops.lu), np.arange(9).reshape(3, 3), expect=lambda x: 1.0 * x),
    case(product(ops.lu), np.zeros((2, 3, 3)), expect=lambda x: x, grad=False),
    case(product(ops.lu), np.zeros((0, 3, 3)), expect=lambda x: x, grad=False),
    case(ops.solve, SQUARE, (4, 2), expect=np.linalg.solve, rtol=1e-4),
    case(ops.solve, SQUARE, (3, 4, 2), expect=np.linalg.solve, rtol=1e-4),
    case(ops.diagonal, (3, 4), expect=np.diagonal),
    case(ops.diagonal, (3, 4), offset=1, expect=lambda x: np.diagonal(x, 1)),
    case(ops.diagonal, (4, 2), offset=-2, expect=lambda x: np.diagonal(x, -2)),
    case(
        ops.diagonal,
        (2, 3, 4),
        axis1=-1,
        axis2=0,
        expect=lambda x: np.diagonal(x, 0, -1, 0),
    ),
    case(ops.diag, (3,), expect=np.diag),
    case(ops.diag, (3,), k=-1, expect=lambda x: np.diag(x, -1)),
    case(ops.diag, (3, 4), k=2, expect=lambda x: np.diag(x, 2)),
    case(
        ops.diag_embed, (2, 3), expect=lambda x: x[..., None] * np.eye(3, dtype=x.dtype)
    ),
    case(ops.trace, (2, 3, 4), expect=lambda x: np.trace(x, 0, -2, -1)),
    case(ops.dot, (4,), (4,), expect=np.dot),
    case(ops.cross, (2, 3), (2, 3), expect=np.cross),
    case(ops.cross, (3, 2), (3, 1), axis=0, expect=lambda a, b: np.cross(a, b, axis=0)),
    case(ops.normalize, (3, 4), expect=lambda x: x / np.linalg.norm(x, 2, 1, True)),
    case(
        ops.normalize,
        (3, 4),
        p=3,
        axis=0,
        expect=lambda x: x / np.linalg.norm(x, 3, 0, True),
    ),
    case(
        ops.cosine_similarity,
        (3, 4),
        (3, 4),
        expect=lambda a, b: (
            (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        ),
    ),
    case(ops.cov, (3, 5), expect=np.cov, dtypes=("float64",)),
    case(
        ops.cov,
        (5, 3),
        axis=0,
        correction=0,
        expect=lambda x: np.cov(x, rowvar=False, ddof=0),
        dtypes=("float64",),
    ),
    case(ops.cov, (5,), expect=np.cov, dtypes=("float64",)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_pivots_are_the_greatest_of_their_column():
    _, lower, _ = ops.lu(LARGE)
    assert np.abs(lower).max() == 1
    p, _, _ = ops.lu(TALL)
    assert (p.sum(-1) == 1).all()
    assert (p.sum(-2) == 1).all()


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: ops.dot(np.ones(2), np.ones(3)), "dot: expected two vectors"),
        (lambda: ops.cross(np.ones(2), np.ones(2)), "cross: expected length 3"),
        (lambda: ops.diag(np.ones((1, 1, 1))), "diag: expected a vector or a matrix"),
        (lambda: ops.diagonal(np.ones((2, 2)), axis2=0), "diagonal: expected two axes"),
        (lambda: ops.cov(np.ones((1, 1, 1))), "cov: expected a vector or a matrix"),
        (lambda: ops.solve(np.zeros((2, 2)), np.ones((2, 1))), "solve: .* Singular"),
    ],
)
def test_mistakes_are_explained(call, what):
    with pytest.raises(InputError, match=what):
        call()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_one_observation_has_no_covariance():
    assert np.isnan(ops.cov(np.ones((3, 1)))).all()
    assert np.isnan(ops.cov(np.ones(1)))
