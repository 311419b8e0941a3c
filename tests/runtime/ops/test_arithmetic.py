import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.errors import InputError
from tests.harness.operators import case

INTEGERS = ("int32", "int64")
CASES = [
    case(ops.add, (3, 1, 4), (2, 4), expect=np.add),
    case(ops.sub, (3, 1, 4), (2, 4), expect=np.subtract),
    case(ops.sub, 2.0, (3,), expect=np.subtract),
    case(ops.mul, (3, 1, 4), (2, 4), expect=np.multiply),
    case(ops.mul, (3,), 3, expect=np.multiply),
    case(ops.div, (3, 1, 4), (2, 4), low=0.5, expect=np.divide),
    case(ops.div, 1.0, (2, 4), low=0.5, expect=np.divide),
    case(
        ops.int_div,
        (50,),
        np.array(3),
        dtypes=INTEGERS,
        expect=lambda a, b: np.trunc(a / b).astype(np.result_type(a, b)),
    ),
    case(
        ops.int_div,
        (50,),
        np.array(-3),
        dtypes=INTEGERS,
        expect=lambda a, b: np.trunc(a / b).astype(np.result_type(a, b)),
    ),
    case(ops.floor_div, (5, 4), (4,), low=0.5, expect=np.floor_divide),
    case(ops.mod, (5, 4), (4,), low=0.7, high=3, expect=np.mod),
    case(ops.mod, (5, 4), np.array([1.3, -0.8, -2.1, 3.3]), expect=np.mod),
    case(ops.mod, (5, 4), np.array([1.3, -0.8, -2.1, 3.3]), fmod=True, expect=np.fmod),
    case(ops.mod, (5, 4), 3, dtypes=INTEGERS, expect=np.mod),
    case(ops.pow, (3, 4), (4,), low=0.3, expect=np.power),
    case(ops.pow, (3, 4), 2, expect=lambda a, b: a * a),
    case(ops.pow, (3, 4), 0, expect=lambda a, b: np.ones_like(a)),
    case(ops.pow, 3.0, (4,), expect=np.power),
    case(ops.pow, (3, 4), np.array([0.0, 1.0, 2.0, 3.0]), low=0.2, expect=np.power),
    case(ops.maximum, (3, 1, 4), (2, 4), expect=np.maximum),
    case(ops.minimum, (3, 1, 4), (2, 4), expect=np.minimum),
    case(
        ops.max_of,
        (4,),
        (3, 4),
        (3, 1),
        expect=lambda a, b, c: np.maximum(np.maximum(a, b), c),
    ),
    case(
        ops.min_of,
        (4,),
        (3, 4),
        (3, 1),
        expect=lambda a, b, c: np.minimum(np.minimum(a, b), c),
    ),
    case(ops.sum_of, (4,), (3, 4), (3, 1), expect=lambda a, b, c: a + b + c),
    case(ops.mean_of, (4,), (3, 4), (3, 1), expect=lambda a, b, c: (a + b + c) / 3),
    case(ops.clip, (5, 4), -0.9, 0.8, expect=np.clip),
    case(ops.clip, (5, 4), None, 0.8, expect=lambda x, a, b: np.minimum(x, b)),
    case(ops.clip, (5, 4), -0.9, expect=np.maximum),
    case(
        ops.clip,
        (5, 4),
        np.array(-0.9),
        np.array([0.2, 0.4, -1.5, 1.0]),
        expect=np.clip,
    ),
    case(ops.neg, (3, 4), expect=np.negative),
    case(ops.abs, (3, 4), expect=np.abs),
    case(ops.sign, (3, 4), expect=np.sign),
    case(ops.trunc, (3, 4), expect=np.trunc),
    case(ops.trunc, (3, 4), dtypes=INTEGERS, expect=lambda x: x),
    case(ops.floor, (3, 4), expect=np.floor),
    case(ops.floor, (3, 4), dtypes=INTEGERS, expect=lambda x: x),
    case(ops.ceil, (3, 4), expect=np.ceil),
    case(ops.round, (3, 4), expect=np.rint),
    case(ops.rint, (3, 4), expect=np.rint),
    case(ops.rint, (3, 4), dtypes=INTEGERS, expect=lambda x: x),
    case(
        ops.round,
        np.array([-1.5, -0.5, 0.5, 1.5, 2.5]),
        expect=lambda x: x.dtype.type([-2, 0, 0, 2, 2]),
        grad=False,
    ),
    case(ops.square, (3, 4), expect=np.square),
    case(ops.reciprocal, (3, 4), low=0.4, expect=lambda x: 1 / x),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def gradient(f, *values):
    leaves = [Tensor(np.array(v)).require_grad() for v in values]
    gradients = f(*leaves).sum().backward()
    return [leaf.grad(gradients).tolist() for leaf in leaves]


def test_gradients_at_kinks_are_numbers():
    assert gradient(ops.pow, [0.0, 0.0], [0.0, 2.0]) == [[0, 0], [0, 0]]
    assert gradient(ops.abs, [0.0]) == [[0]]
    assert gradient(ops.maximum, [1.0], [1.0]) == [[0.5], [0.5]]
    assert gradient(lambda x: ops.clip(x, 0, 1), [0.0, 1.0, 2.0]) == [[1, 1, 0]]


def test_gradients_have_the_dtype_of_their_argument():
    x = Tensor(np.ones(3, np.float32)).require_grad()
    y = x * np.arange(6.0).reshape(2, 3)
    assert y.dtype == np.float64
    assert x.grad(y.sum().backward()).dtype == np.float32


def test_shapes_that_do_not_broadcast_are_named():
    with pytest.raises(InputError, match=r"add: got \(3,\), \(4,\)"):
        ops.add(Tensor.zeros(3), Tensor.zeros(4))


@pytest.mark.parametrize("decimals", [2, 1, 0, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_rounding_to_decimals_is_numpys(dtype, decimals):
    x = np.linspace(-123, 123, 77).astype(dtype)
    made = Tensor(x).round(decimals)
    assert made.dtype == dtype
    np.testing.assert_allclose(made.numpy(), np.round(x, decimals), 1e-6)
    assert round(Tensor(x), decimals).all_close(made)
