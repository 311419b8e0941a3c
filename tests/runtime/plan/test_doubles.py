"""Values in float64: plans hold and move them, and round none."""

import importlib
import pkgutil

import numpy as np
import pytest

import burnish
import tests.runtime.ops
from burnish import Tensor, ops
from burnish._engine.pytree import leaves
from burnish.kernels import library
from tests.runtime.plan.checks import records

pytestmark = [
    pytest.mark.usefixtures("canaries"),
    pytest.mark.skipif(library() is None, reason="there is no compiler"),
]
FAMILIES = [module.name for module in pkgutil.iter_modules(tests.runtime.ops.__path__)]


def rows(name):
    """The operators' rows of a table that have float64."""
    table = importlib.import_module(f"tests.runtime.ops.{name}")
    every = getattr(table, "CASES", ())
    return [row for row in every if np.float64 in map(np.dtype, row.dtypes)]


@pytest.mark.parametrize("name", [name for name in FAMILIES if rows(name)])
def test_operators_give_what_they_give_eagerly(name):
    for row in rows(name):
        arrays = row.arrays(np.dtype(np.float64))
        given = [Tensor(a) if isinstance(a, np.ndarray) else a for a in arrays]

        def called(*args, row=row):
            return row.op(*args, **row.options)

        fast = burnish.compile(called)
        for ours, wanted in zip(
            leaves(fast(*given)), leaves(called(*given)), strict=True
        ):
            a, b = (np.asarray(getattr(each, "data", each)) for each in (ours, wanted))
            assert a.dtype == b.dtype
            if a.dtype != object:
                np.testing.assert_allclose(a, b, 1e-12, 1e-12, err_msg=str(row))


def test_they_are_moved_by_records():
    def moved(x):
        return ops.concat([x.reshape(6, 4).T, x.reshape(4, 6)[:, 1:3]], axis=1)

    x = Tensor(np.random.default_rng(0).standard_normal((2, 3, 4)))
    fast = burnish.compile(moved)
    np.testing.assert_array_equal(fast(x).data, moved(x).data)
    assert records(fast)
    assert not fast.planned(x).eager
