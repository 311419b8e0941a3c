import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.errors import InputError
from tests.harness.operators import case

BOOLS = np.array([[True, False], [True, True]])
AXES = [(None, False), (1, True), ((0, -1), False), ((), False)]


def over_axes(op, function, word="axes", **settings):
    return [
        case(
            op,
            (2, 3, 4),
            keepdims=keepdims,
            expect=lambda x, a=axes, k=keepdims: function(x, axis=a, keepdims=k),
            **{word: axes},
            **settings,
        )
        for axes, keepdims in AXES
    ]


def log_sum_exp(x, axis, keepdims):
    return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))


CASES = [
    case(ops.norm, (3, 4), axis=1, expect=lambda x: np.linalg.norm(x, axis=1)),
    case(ops.norm, (3, 4), p=3, axis=1, expect=lambda x: np.linalg.norm(x, 3, 1)),
    *(
        case(
            ops.norm,
            (3, 4),
            p=p,
            axis=1,
            keepdims=True,
            expect=lambda x, p=p: np.linalg.norm(x, p, 1, True),
        )
        for p in (0.5, 1, 1.5, -1, -3, -np.inf)
    ),
    case(
        ops.norm,
        np.array([[0.0, 2.0], [3.0, -1.0]]),
        p=0,
        axis=1,
        expect=lambda x: np.linalg.norm(x, 0, 1),
        grad=False,
    ),
    case(ops.norm, (3, 4), p=np.inf, axis=1, expect=lambda x: abs(x).max(1)),
    *over_axes(ops.reduce_sum, np.sum),
    *over_axes(ops.reduce_mean, np.mean),
    *over_axes(ops.reduce_max, np.max),
    *over_axes(ops.reduce_min, np.min),
    *over_axes(ops.reduce_prod, np.prod),
    *over_axes(ops.reduce_l1, lambda x, **o: abs(x).sum(**o)),
    *over_axes(ops.reduce_l2, lambda x, **o: np.sqrt((x * x).sum(**o))),
    *over_axes(ops.reduce_sum_square, lambda x, **o: (x * x).sum(**o)),
    *over_axes(ops.reduce_log_sum, lambda x, **o: np.log(x.sum(**o)), low=0.5),
    *over_axes(ops.reduce_log_sum_exp, log_sum_exp, atol=1e-6),
    *over_axes(ops.var, np.var, "axis"),
    *over_axes(ops.std, np.std, "axis", grad=False),
    *(
        case(op, (), axes=axis, keepdims=axis == 0, expect=lambda x: x)
        for op in (
            ops.reduce_sum,
            ops.reduce_mean,
            ops.reduce_max,
            ops.reduce_prod,
            ops.reduce_log_sum_exp,
        )
        for axis in (0, -1)
    ),
    case(ops.std, (3, 4), axis=1, expect=lambda x: x.std(1)),
    case(ops.var, (3, 4), axis=1, correction=1, expect=lambda x: x.var(1, ddof=1)),
    case(
        ops.reduce_sum,
        (3, 4),
        axes=0,
        dtypes=("int32", "uint8"),
        expect=lambda x: x.sum(0, dtype=x.dtype),
    ),
    case(ops.reduce_sum, BOOLS, axes=0, expect=lambda x: x.sum(0)),
    case(ops.reduce_max, BOOLS, axes=0, expect=lambda x: x.max(0)),
    case(ops.reduce_max, (3, 4), axes=0, dtypes=("int32",), expect=lambda x: x.max(0)),
    case(ops.reduce_any, BOOLS, axes=1, expect=lambda x: x.any(1)),
    case(
        ops.reduce_all,
        BOOLS,
        axes=1,
        keepdims=True,
        expect=lambda x: x.all(1, keepdims=True),
    ),
    case(ops.arg_max, (3, 4), expect=np.argmax, grad=False),
    case(
        ops.arg_max,
        (3, 4),
        axis=0,
        keepdims=True,
        expect=lambda x: x.argmax(0)[None],
        grad=False,
    ),
    case(ops.arg_min, (3, 4), axis=-1, expect=lambda x: x.argmin(1), grad=False),
    case(
        ops.arg_max,
        np.array([[1, 2, 2, 0]]),
        axis=1,
        select_last_index=True,
        expect=lambda x: np.array([2]),
    ),
    case(ops.arg_min, np.array([[0, 2, 2, 0]]), axis=1, expect=lambda x: np.array([0])),
    case(
        ops.reduce_prod,
        np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 4.0]]),
        axes=1,
        expect=lambda x: x.prod(1),
    ),
    case(ops.cum_sum, (3, 4), axis=1, expect=lambda x: x.cumsum(1)),
    case(
        ops.cum_sum,
        (3, 4),
        axis=0,
        reverse=True,
        expect=lambda x: x[::-1].cumsum(0)[::-1],
    ),
    case(
        ops.cum_sum,
        (3, 4),
        axis=-1,
        exclusive=True,
        expect=lambda x: x.cumsum(1) - x,
        atol=1e-6,
    ),
    case(
        ops.cum_sum,
        (3, 4),
        axis=0,
        dtypes=("int32",),
        expect=lambda x: x.cumsum(0, dtype=x.dtype),
    ),
    case(ops.cum_prod, (3, 4), axis=1, expect=lambda x: x.cumprod(1)),
    case(
        ops.cum_prod,
        (3, 4),
        axis=0,
        reverse=True,
        exclusive=True,
        expect=lambda x: np.stack([x[1] * x[2], x[2], np.ones_like(x[0])]),
    ),
    case(ops.reduce_prod, (0, 3), axes=0, expect=lambda x: x.prod(0)),
    case(ops.reduce_prod, (0, 3), axes=1, expect=lambda x: x.prod(1)),
    case(ops.cum_prod, (3, 0), axis=1, exclusive=True, expect=lambda x: x),
    case(
        ops.cum_prod,
        np.array([[2.0, 0.0, 3.0, 4.0], [0.0, 5.0, 0.0, 2.0]]),
        axis=1,
        expect=lambda x: x.cumprod(1),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def test_equal_greatest_share_the_gradient():
    x = Tensor([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]]).require_grad()
    got = x.grad(x.max(axis=1).sum().backward())
    assert got.tolist() == [[0, 0.5, 0.5], [1, 0, 0]]


def test_norm_of_zero_has_gradient_zero():
    x = Tensor(np.zeros((2, 3))).require_grad()
    assert not x.grad(x.norm(axis=1).sum().backward()).numpy().any()


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, np.inf, -1])
def test_every_norm_of_zero_has_gradient_zero(p):
    x = Tensor(np.zeros(2)).require_grad()
    y = ops.norm(x, p=p)
    assert y.item() == 0
    assert not x.grad(y.backward()).numpy().any()


def test_log_sum_exp_is_stable():
    rows = [[1000.0, 1000.0], [-np.inf, -np.inf], [-1000.0, -np.inf]]
    x = Tensor(rows, dtype="float64").require_grad()
    y = x.logsumexp(axis=1)
    np.testing.assert_allclose(y.numpy(), [1000 + np.log(2), -np.inf, -1000])
    got = x.grad(y[::2].sum().backward()).numpy()
    np.testing.assert_allclose(got, [[0.5, 0.5], [0, 0], [1, 0]])


def test_extremes_of_nothing_are_the_ends_of_the_dtype():
    assert ops.reduce_max(np.zeros((2, 0)), axes=1).tolist() == [-np.inf] * 2
    assert ops.reduce_min(np.zeros((0,), np.int8)).tolist() == 127


def test_an_axis_that_is_not_there_is_named():
    with pytest.raises(InputError, match="expected -2 to 1 for 2 axes, got 2"):
        ops.reduce_sum(np.zeros((2, 2)), axes=2)


@pytest.mark.parametrize("op", [ops.reduce_mean, ops.reduce_l2, ops.var, ops.std])
def test_half_precision_is_reduced_in_single_precision(op):
    """Where neither the sum nor the number of elements is below 65504."""
    values = np.random.default_rng(0).normal(1, 1, 200_000).astype(np.float16)
    x, wide = (Tensor(values.astype(t)).require_grad() for t in ("f2", "f8"))
    y, want = op(x), op(wide)
    assert y.dtype == np.float16
    np.testing.assert_allclose(y.item(), want.item(), rtol=2e-3)
    got, slopes = x.grad((y * 64.0).backward()), wide.grad((want * 64.0).backward())
    bound = 2e-3 * abs(slopes.numpy()).max()
    np.testing.assert_allclose(got.numpy(), slopes.numpy(), rtol=2e-3, atol=bound)
