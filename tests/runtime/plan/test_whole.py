"""Element-wise steps on integers and truth values: the numbers of the plain call."""

from __future__ import annotations

from platform import machine

import numpy as np
import pytest

from burnish import Tensor, nn, ops
from tests.runtime.plan.checks import check, records

pytestmark = pytest.mark.usefixtures("canaries")

WHOLE = ("int64", "int32", "int16", "int8", "uint8")
BINARY = (
    *("add", "sub", "mul", "int_div", "floor_div", "mod", "maximum", "minimum"),
    *("equal", "not_equal", "greater", "greater_or_equal", "less", "less_or_equal"),
    *("logical_and", "logical_or", "logical_xor"),
    *("bitwise_and", "bitwise_or", "bitwise_xor"),
)


def drawn(shape, dtype="int64", seed=0):
    """Small numbers, those at the ends of the dtype among them."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return Tensor(random.integers(0, 2, shape).astype(bool))
    ends = np.iinfo(dtype)
    x = random.integers(max(-5, ends.min), 6, shape).astype(dtype)
    flat = x.reshape(-1)
    flat[1::7], flat[4::11] = ends.min, ends.max
    return Tensor(x)


def planned(function, *args):
    """The compiled function, which runs nothing eagerly and gives the same numbers."""
    with np.errstate(all="ignore"):
        fast = check(function, *args)
    assert not fast.planned(*args).eager
    return fast


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_two(name, dtype):
    function = getattr(ops, name)
    for shape, other in (((3, 4, 5), (4, 1)), ((300,), (300,)), ((2, 1), (1, 7))):
        planned(function, drawn(shape, dtype), drawn(other, dtype, 1))


@pytest.mark.parametrize("name", [n for n in BINARY if n not in ("sub", "mod")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_truth_and_integers(name):
    if name not in ("int_div", "floor_div"):
        planned(getattr(ops, name), drawn((3, 5), "bool"), drawn((5,), "bool", 1))
    planned(getattr(ops, name), drawn((3, 5), "bool"), drawn((5,)))


@pytest.mark.parametrize("dtype", [*WHOLE, "bool"])
@pytest.mark.parametrize("name", ["abs", "sign", "logical_not", "bitwise_not"])
def test_of_one(name, dtype):
    planned(getattr(ops, name), drawn((3, 70), dtype))
    if dtype != "bool":  # NumPy negates no truth
        planned(ops.neg, drawn((3, 70), dtype))


@pytest.mark.parametrize(("low", "high"), [(3, -4), (0, 7), (-1, 1), (True, 2)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_of_python(low, high):
    planned(lambda x: (x + low) * high, drawn((5, 6)))
    for function in (ops.int_div, ops.floor_div, ops.mod):
        planned(lambda x, f=function: f(x, high), drawn((40,)))
        planned(lambda x, f=function: f(low, x), drawn((40,)))
    planned(lambda x: ops.mod(x, high, fmod=True), drawn((40,)))


@pytest.mark.parametrize("dtype", WHOLE)
def test_where(dtype):
    mask = drawn((4, 1, 3), "bool")
    planned(ops.where, mask, drawn((5, 3), dtype), drawn((1,), dtype, 1))
    planned(lambda m, x: ops.where(m, x, 7), mask, drawn((3,), dtype))


@pytest.mark.parametrize("dtype", [*WHOLE, "bool"])
def test_casts(dtype):
    x = drawn((3, 100), dtype)
    for target in {*WHOLE, "bool", "float32"} - {dtype}:
        planned(lambda x, to=target: ops.cast(x, dtype=to), x)
        planned(lambda x, to=target: x.to(to), x)


def test_casts_of_single_precision():
    x = Tensor(np.array([0.0, -0.0, 0.5, -1.9, 3e9, -7.0, 1e30, np.nan], np.float32))
    planned(lambda x: ops.cast(x, dtype="bool"), x)
    planned(lambda x: ops.cast(x, dtype="int64"), Tensor(x.data[:6]))


@pytest.mark.skipif(machine() not in ("x86_64", "AMD64"), reason="other conversions")
@pytest.mark.parametrize("target", WHOLE)
def test_casts_of_what_fits_no_integer(target):
    numbers = [np.nan, np.inf, -np.inf, 3e9, -3e9, 2**31, -(2**31), 1e20, 300.7, -129.2]
    x = Tensor(np.array(numbers, np.float32))
    planned(lambda x: ops.cast(x, dtype=target), x)


@pytest.mark.parametrize("dtype", [*WHOLE, "bool"])
@pytest.mark.parametrize(
    "move",
    [
        lambda x: x.reshape(8, 5),
        lambda x: x.transpose(2, 0, 1),
        lambda x: x[1:, ::-1, 1::2],
        lambda x: ops.broadcast_to(x[:, :1], (2, 4, 5)),
        lambda x: ops.split(x, (1, 3), axis=1)[1],
        lambda x: x.transpose(2, 1, 0).reshape(-1),
    ],
    ids=["reshape", "transpose", "index", "broadcast", "split", "copied"],
)
def test_moves(move, dtype):
    x = drawn((2, 4, 5), dtype)
    planned(move, x)
    planned(lambda x: ops.equal(move(x), move(x)), x)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_joins(dtype):
    one, other = drawn((2, 3), dtype), drawn((2, 2), dtype, 1)
    planned(lambda a, b: ops.concat([a + 1, b.flip(1), a], axis=1), one, other)


def test_a_mask_of_lengths():
    """What audio front ends do: lengths become places, and places a mask."""

    def front(x, length):
        frames = ops.int_div(length + 80, 160).reshape(-1, 1, 1)
        mask = Tensor(np.arange(10)[None, :, None]) < frames
        return ops.where(mask, x, 0.0), frames.to("float32")

    x = Tensor(np.random.default_rng(0).standard_normal((2, 10, 4)).astype("float32"))
    fast = planned(front, x, Tensor(np.array([900, 160])))
    assert records(fast) == 5


def test_what_mixes_integers_and_floats_runs_eagerly():
    x, y = drawn((3,)), Tensor(np.ones(3, np.float32))
    for function in (lambda x, y: x * y, lambda x, y: (x + 0.5) * y):
        assert check(function, x, y).planned(x, y).eager


def test_masks_of_one_channel_are_applied_to_plain_values():
    """In blocks 15 of 16 lanes would hold none; the results end one segment."""
    conv = nn.Conv1d(1, 1, 5, padding=2)

    def front(x, length):
        mask = Tensor(np.arange(200)) < length.reshape(-1, 1, 1)
        return ops.where(mask, conv(x), 0.0)

    x = Tensor(np.random.default_rng(0).standard_normal((2, 1, 200)).astype("float32"))
    given = x, Tensor(np.array([150, 20]))
    plan = planned(front, *given).planned(*given)
    assert plan.steps[-1].kind == "program"
    assert len(plan.segments) == 1


def test_a_last_change_of_layout_is_in_the_same_segment():
    conv = nn.Conv2d(3, 20, 3)
    x = Tensor(np.random.default_rng(0).standard_normal((1, 3, 9, 9)).astype("float32"))
    assert len(planned(conv, x).planned(x).segments) == 1


def test_a_choice_of_two_numbers_and_its_cast_are_one_program():
    """NumPy makes the choice in float64."""
    bounds = (-1e9, 0.0), (0.1, 1), (3, 2), (True, 1e300)
    mask = Tensor(np.random.default_rng(0).random((3, 5)) < 0.5)
    for yes, no in bounds:

        def chosen(m, yes=yes, no=no):
            with np.errstate(over="ignore"):
                return ops.where(m, yes, no).to("float32")

        assert records(planned(chosen, mask)) == 1
