"""Gathers and scatters by numbers of the call: plans have the plain call's results."""

from __future__ import annotations

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.errors import InputError
from tests.runtime.plan.checks import check

pytestmark = pytest.mark.usefixtures("canaries")

COLUMN = Tensor(np.array([[0, 1]]))


def drawn(*shape, dtype="float32"):
    return Tensor((np.random.default_rng(0).standard_normal(shape) * 50).astype(dtype))


def ids(size, *shape, seed=0, dtype="int64"):
    """Numbers along an axis of `size`, counted from its end as well."""
    random = np.random.default_rng(seed)
    return Tensor(random.integers(-size, size, shape).astype(dtype))


def planned(function, *args):
    """The compiled function, which runs nothing eagerly and gives the same numbers."""
    fast = check(function, *args)
    assert not fast.planned(*args).eager
    return fast


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("kind", ["float32", "int64", "int32"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_slices(axis, kind, dtype):
    x = drawn(3, 4, 6, dtype=kind)
    picked = ids(x.shape[axis], 2, 5, dtype=dtype)
    planned(lambda x, i: ops.take_slices(x, i, axis=axis), x, picked)


@pytest.mark.parametrize("kind", ["float32", "int64", "bool"])
@pytest.mark.parametrize("repeats", [(2,), (3, 1), (2, 1, 3, 2), (1, 1, 1), (2, 2, 2)])
def test_repetitions(repeats, kind):
    x = drawn(3, 1, 5, dtype=kind)
    planned(lambda x: ops.tile(x, repeats=repeats), x)
    planned(lambda x: ops.tile(x.mT, repeats=repeats), x)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_rows_of_an_embedding(dtype):
    planned(nn.Embedding(9, 5), ids(9, 4, 3, dtype=dtype))


@pytest.mark.parametrize(
    "index",
    [lambda i: i, lambda i: (i,), lambda i: (slice(None), i), lambda i: i[0, 0]],
    ids=["x[i]", "x[i,]", "x[:, i]", "x[i[0, 0]]"],
)
def test_indexing_with_a_tensor(index):
    planned(lambda x, i: x[index(i)], drawn(4, 4, 6), ids(4, 2, 5))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements(axis):
    x = drawn(3, 4, 6)
    planned(
        lambda x, i: ops.gather_elements(x, i, axis=axis),
        x, ids(x.shape[axis], 2, 4, 5),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize(("lead", "depth"), [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)])
def test_positions(lead, depth, dtype):
    x = drawn(3, 4, 5, 2)
    picked = ids(3, *x.shape[:lead], 6, depth, dtype=dtype)
    planned(lambda x, i: ops.gather_nd(x, i, batch_dims=lead), x, picked)


def test_elements_of_a_vector_by_numbers_of_32_bits():
    planned(lambda x, i: ops.gather_elements(x, i), drawn(9), ids(9, 5, dtype="int32"))


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scatters(reduction):
    x, repeated = drawn(5, 3), Tensor(np.array([1, -4, 4, 1, 0]))
    planned(
        lambda x, i, u: ops.scatter_rows(x, i, u, reduction=reduction),
        x, repeated, drawn(5, 3) * 2,
    )  # fmt: skip
    planned(
        lambda x, i, u: ops.scatter_nd(x, i, u, reduction=reduction),
        x, ids(3, 7, 2), drawn(7),
    )  # fmt: skip
    planned(
        lambda x, i, u: ops.scatter_elements(x, i, u, axis=1, reduction=reduction),
        x, ids(3, 4, 6), drawn(4, 6),
    )  # fmt: skip


def test_other_reductions_run_eagerly():
    fast = check(
        lambda x, i, u: ops.scatter_rows(x, i, u, reduction="max"),
        drawn(5, 3), ids(5, 4), drawn(4, 3),
    )  # fmt: skip
    assert "its reduction is max" in fast.explain()


def test_rows_of_a_step_by_numbers_of_the_call():
    """A number that is of no row changes nothing."""
    found = []
    for planned in (True, False):
        model, rule = nn.Linear(3, 4).to("cpu:autodiff"), optim.SGD()
        model.weight.assign(np.arange(12, dtype=np.float32).reshape(4, 3) / 12)
        model.bias.assign(np.zeros(4, np.float32))

        def step(x, rows, model=model, rule=rule):
            picked = ops.take(model(x), rows, axis=0)
            rule.step(0.1, model, picked.square().sum().backward())

        call = burnish.compile(step) if planned else step
        x = Tensor(np.linspace(-1, 2, 15, dtype=np.float32).reshape(5, 3))
        for rows in ([0, 4, 4], [-1, 0, 2]):
            call(x, Tensor(np.array(rows)))
        found.append(np.array(model.weight.data))
        with pytest.raises(InputError):
            call(x, Tensor(np.array([0, 5, 1])))
        np.testing.assert_array_equal(model.weight.data, found[-1])
        if planned:
            assert "nothing eagerly" in call.explain()
    np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.parametrize("place", [-5, 4])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: ops.take_slices(x, i),
        lambda x, i: ops.gather_elements(x, i.reshape(3, 1)),
        lambda x, i: ops.gather_nd(x, i.reshape(3, 1)),
        lambda x, i: ops.gather_nd(x.reshape(2, 4), i.reshape(3, 1) * COLUMN),
        lambda x, i: ops.scatter_rows(x, i, x[:3] + 1),
    ],
    ids=["slices", "elements", "positions", "columns", "rows"],
)
def test_numbers_out_of_range(function, place):
    x, fast = drawn(4, 2), burnish.compile(function)

    def result(run, given):
        """Its numbers, or the kind of error: the plan's is the plain call's."""
        try:
            return run(x, given).data.tolist()
        except (InputError, IndexError) as error:
            return type(error)

    outcomes = []
    for last in (3, place, 0):
        given = Tensor(np.array([0, 2, last]))
        outcomes.append(result(fast, given))
        assert outcomes[-1] == result(function, given)
    assert not fast.planned(x, given).eager
    assert isinstance(outcomes[0], list)
    assert isinstance(outcomes[2], list)
