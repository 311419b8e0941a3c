"""Tree ensembles by kernels of the C library, as the plain form votes."""

from __future__ import annotations

import numpy as np
import pytest

from burnish.errors import InputError
from burnish.ops import tree_ensemble
from tests.harness.forest import forest
from tests.runtime.ops.kernels import (
    same_for_any_threads,
    values,
)

pytestmark = pytest.mark.usefixtures("launched")


@pytest.mark.parametrize("aggregate", ["sum", "average", "min", "max"])
@pytest.mark.parametrize("bare", [(), ("modes",), ("missing",), ("modes", "missing")])
@pytest.mark.parametrize("rows", [1, 9, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trees(dtype, rows, bare, aggregate, launched):
    x = np.rint(values(rows, 5)).astype(dtype)
    x[::4, 1] = np.nan
    trees = forest(rows, dtype=dtype) | dict.fromkeys(bare)
    ours = tree_ensemble(x, *trees.values(), outputs=3, aggregate=aggregate)
    plain = tree_ensemble.value(x, *trees.values(), outputs=3, aggregate=aggregate)
    np.testing.assert_array_equal(ours, plain)
    assert launched == ["trees"]


def test_modes_that_are_no_bytes_are_left_to_the_plain_form(launched):
    x, trees = values(7, 5), forest(7)
    wider = trees | {"modes": trees["modes"].astype(np.int64)}
    found = (tree_ensemble(x, *each.values(), outputs=3) for each in (wider, trees))
    np.testing.assert_allclose(*found, 1e-5, 1e-6)
    assert launched == ["trees"]


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_trees_by_threads(rows, launched):
    x, trees = values(rows, 5), forest(1, trees=1100)
    wanted = tree_ensemble.value(x, *trees.values(), outputs=3)
    ours = same_for_any_threads(lambda: [tree_ensemble(x, *trees.values(), outputs=3)])
    np.testing.assert_allclose(ours[0], wanted, 1e-6, 1e-6)
    assert set(launched) == {"trees"} | ({"votes"} if rows < 16 else set())


def test_prepared_trees_read_their_arrays_and_go_with_them(launched):
    """Weights that change in place count; trees of a freed array's place are others."""
    from burnish.ops._cpu import trees as prepared

    x, before = values(7, 5), len(prepared._prepared)
    for seed in range(4):
        trees = forest(seed)
        for factor in (1, 2):
            trees["weights"] *= factor
            ours = tree_ensemble(x, *trees.values(), outputs=3)
            plain = tree_ensemble.value(x, *trees.values(), outputs=3)
            np.testing.assert_allclose(ours, plain, 1e-5, 1e-6)
        assert len(prepared._prepared) == before + 1
        del trees
        assert len(prepared._prepared) == before
    assert launched == ["trees"] * 8


def test_trees_of_broken_arrays_are_refused_as_without_a_kernel():
    trees = forest(0)
    for name, place in (("features", 5), ("yes", 10**6), ("no", -(10**6))):
        broken = trees | {name: np.full_like(trees[name], place)}
        with pytest.raises(Exception, match=r"out of bounds|index"):
            tree_ensemble(values(3, 5), *broken.values(), outputs=3)
    circle = trees | {
        "yes": np.zeros_like(trees["yes"]),
        "no": np.zeros_like(trees["no"]),
    }
    with pytest.raises(InputError, match="lead back to themselves"):
        tree_ensemble(values(3, 5), *circle.values(), outputs=3)
