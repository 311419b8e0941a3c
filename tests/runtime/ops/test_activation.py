import math

import numpy as np
import pytest

import burnish
from burnish import Tensor, ops
from tests.harness.operators import case

erf = np.vectorize(math.erf)


def sigmoid(x):
    return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(x.dtype)


def softplus(x):
    return np.logaddexp(x, x.dtype.type(0))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(x))


CASES = [
    case(ops.softmin, (3, 4), expect=lambda x: softmax(-x)),
    case(
        ops.quiet_softmax,
        (3, 4),
        expect=lambda x: np.exp(x) / (1 + np.exp(x).sum(-1, keepdims=True)),
    ),
    case(ops.relu, (3, 4), expect=lambda x: np.maximum(x, 0)),
    case(ops.relu6, (3, 4), low=-9, high=9, expect=lambda x: np.clip(x, 0, 6)),
    case(
        ops.leaky_relu,
        (3, 4),
        negative_slope=0.2,
        expect=lambda x: np.where(x > 0, x, 0.2 * x),
    ),
    case(
        ops.prelu,
        (2, 3, 2),
        (3,),
        expect=lambda x, w: np.where(x > 0, x, w[:, None] * x),
    ),
    case(ops.prelu_of, (3, 4), (4,), expect=lambda x, s: np.where(x > 0, x, s * x)),
    case(
        ops.thresholded_relu,
        (3, 4),
        alpha=0.6,
        expect=lambda x: np.where(x > 0.6, x, 0),
    ),
    case(ops.hard_tanh, (3, 4), low=-0.4, expect=lambda x: np.clip(x, -0.4, 1)),
    case(
        ops.threshold,
        (3, 4),
        threshold=0.6,
        value=-2.0,
        expect=lambda x: np.where(x > 0.6, x, -2.0),
    ),
    case(
        ops.shrink,
        (3, 4),
        bias=0.1,
        lambd=0.7,
        expect=lambda x: np.sign(x) * np.where(abs(x) > 0.7, abs(x) - 0.1, 0),
    ),
    case(ops.elu, (3, 4), alpha=1.3, expect=lambda x: elu(x, 1.3)),
    case(
        ops.selu,
        (3, 4),
        expect=lambda x: 1.05070102214813232421875 * elu(x, 1.67326319217681884765625),
    ),
    case(
        ops.celu,
        (3, 4),
        alpha=1.3,
        expect=lambda x: np.where(x > 0, x, 1.3 * np.expm1(x / 1.3)),
    ),
    case(
        ops.gelu,
        (3, 4),
        expect=lambda x: (x * (1 + erf(x / 2**0.5)) / 2).astype(x.dtype),
    ),
    case(
        ops.gelu,
        (3, 4),
        approximate="tanh",
        expect=lambda x: (
            0.5 * x * (1 + np.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3)))
        ),
    ),
    case(ops.sigmoid, (3, 4), low=-9, high=9, expect=sigmoid),
    case(ops.swish, (3, 4), alpha=1.5, expect=lambda x: x * sigmoid(x * 1.5)),
    case(ops.silu, (3, 4), expect=lambda x: x * sigmoid(x)),
    case(ops.softplus, (3, 4), low=-9, high=9, expect=softplus),
    case(ops.log_sigmoid, (3, 4), low=-9, high=9, expect=lambda x: -softplus(-x)),
    case(ops.mish, (3, 4), expect=lambda x: x * np.tanh(softplus(x))),
    case(ops.softsign, (3, 4), expect=lambda x: x / (1 + abs(x))),
    case(
        ops.hard_sigmoid,
        (3, 4),
        low=-4,
        high=4,
        expect=lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    ),
    case(
        ops.hard_swish,
        (3, 5),
        low=-5,
        high=5,
        expect=lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    ),
    case(ops.glu, (3, 4), expect=lambda x: x[:, :2] * sigmoid(x[:, 2:])),
    case(ops.glu, (4, 3), axis=0, expect=lambda x: x[:2] * sigmoid(x[2:])),
    case(ops.softmax, (3, 4), expect=softmax),
    case(ops.softmax, (2, 3, 4), axis=1, expect=lambda x: softmax(x, 1)),
    case(ops.log_softmax, (3, 4), expect=lambda x: np.log(softmax(x))),
    case(ops.log_softmax, (2, 3, 4), axis=1, expect=lambda x: np.log(softmax(x, 1))),
    case(
        ops.hardmax,
        (3, 4),
        expect=lambda x: (x == x.max(-1, keepdims=True)).astype(x.dtype),
    ),
    case(ops.hardmax, (3, 4), axis=0, expect=lambda x: (x == x.max(0)).astype(x.dtype)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


@pytest.mark.parametrize(
    "op", [ops.sigmoid, ops.softplus, ops.softmax, ops.log_softmax]
)
def test_large_values_do_not_overflow(op):
    assert np.isfinite(op(np.float32([-1000, 0, 1000]))).all()


def test_dropout_keeps_the_mean_and_masks_the_gradient():
    burnish.seed(0)
    x = Tensor(np.ones((200, 200), np.float32)).require_grad()
    y = ops.dropout(x, p=0.25)
    assert y.dtype == np.float32
    assert set(np.unique(y.numpy())) == {0, np.float32(1 / 0.75)}
    assert abs(y.mean().item() - 1) < 0.02
    np.testing.assert_array_equal(x.grad(y.sum().backward()).numpy(), y.numpy())


def test_dropout_at_its_ends():
    x = np.ones(4)
    assert ops.dropout(x, p=0) is x
    assert ops.dropout(x, p=1).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("op", [ops.softmax, ops.log_softmax])
def test_softmax_of_nothing_says_nothing(op, shape):
    with np.errstate(all="raise"):
        assert op(np.zeros(shape, np.float32)).shape == shape


def test_softmax_of_half_precision_is_rounded_as_onnx_rounds_it():
    x = np.float16([[0.1, 2.3, -1.7], [11.5, 12.5, 60000]])
    y = np.exp(x - x.max(-1, keepdims=True))
    y /= y.sum(-1, keepdims=True)
    np.testing.assert_array_equal(ops.softmax(x), y)
