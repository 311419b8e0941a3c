"""The harness finds what is wrong with an operator."""

import numpy as np
import pytest

from burnish import ops
from burnish.operator import Operator
from tests.harness.operators import case, gpu_missing


def cube(x):
    return x * x * x


def made(value=cube, rule=lambda g, y, x: 3 * g * x * x):
    op = Operator(value)
    op.vjp(rule)
    return op


def test_a_right_operator_passes():
    case(made(), (2, 3), expect=lambda x: x**3).check()


def in_place(x):
    x += 1
    return x


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (made(lambda x: x * x), "Not equal to tolerance"),
        (made(lambda x: cube(x).astype("float64")), "float64, expected float32"),
        (made(lambda x: cube(x)[None]), r"\(1, 2, 3\), expected \(2, 3\)"),
        (made(rule=lambda g, y, x: 2 * g * x * x), "input 0"),
        (made(rule=lambda g, y, x: (3 * g * x * x).sum()), r"\(\), expected \(2, 3\)"),
        (made(rule=lambda g, y, x: 3 * g * np.square(_plain(x))), "second order"),
    ],
)
def test_wrong_ones_are_reported(op, words):
    with pytest.raises(AssertionError, match=words):
        case(op, (2, 3), expect=lambda x: x**3).check()


def test_a_change_in_place_is_reported():
    with pytest.raises(AssertionError, match="changed in place"):
        case(made(in_place), np.ones(3), expect=lambda x: x).check_value(np.dtype("f8"))


def test_a_better_kernel_is_compared_with_the_plain_form():
    op = made()
    op.on("numpy")(lambda x: x * x)
    with pytest.raises(AssertionError):
        case(op, (2, 3), expect=np.square).check()


@pytest.mark.skipif(gpu_missing() is not None, reason=str(gpu_missing()))
def test_a_gpu_is_compared():
    case(ops.exp, (2, 3), expect=np.exp).check_gpu()


def _plain(x):
    return getattr(x, "numpy", lambda: x)()
