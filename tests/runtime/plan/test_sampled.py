"""Grid sampling is one record, in the layout that its input has."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from tests.runtime.plan.checks import check

RANDOM = np.random.default_rng(3)

SHAPES = {
    "signals": ((2, 3, 11), (2, 140, 1)),
    "images": ((2, 3, 7, 9), (2, 5, 31, 2)),
    "many images": ((70, 1, 6, 8), (70, 9, 9, 2)),
    "one row": ((1, 2, 1, 9), (1, 4, 4, 2)),
    "volumes": ((2, 2, 4, 5, 6), (2, 3, 4, 5, 3)),
}


def drawn(shape, beyond=1.0):
    return Tensor((beyond * RANDOM.standard_normal(shape)).astype(np.float32))


def kinds(fast, *args):
    return [step.kind for step in fast.planned(*args).steps]


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("canaries")
def test_values_are_those_of_the_plain_call(shape, mode, padding_mode, align_corners):
    x, grid = SHAPES[shape]
    options = {"padding_mode": padding_mode, "align_corners": align_corners}
    args = drawn(x), drawn(grid, beyond=1.3)
    fast = check(lambda x, grid: ops.grid_sample(x, grid, mode, **options), *args)
    is_planned = mode != "bicubic" or len(x) < 5
    assert (kinds(fast, *args) == ["grid_sample"]) is is_planned


@pytest.mark.usefixtures("canaries")
def test_maps_of_a_convolution_stay_in_blocks_of_channels():
    first, last = nn.Conv2d(3, 20, 3, padding=1), nn.Conv2d(20, 24, 1)
    args = drawn((2, 3, 9, 8)), drawn((2, 6, 7, 2))
    fast = check(lambda x, grid: last(ops.grid_sample(first(x), grid)), *args)
    found = kinds(fast, *args)
    found = found[found.index("conv_planes") :]
    assert found[:3] == ["conv_planes", "grid_sample", "conv"]


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_values_that_are_not_finite_are_those_of_the_plain_call(special):
    x, grid = drawn((1, 2, 8, 8)), drawn((1, 9, 9, 2))
    x.data[0, 1, 3, 4] = special
    with np.errstate(invalid="ignore"):
        check(ops.grid_sample, x, grid)


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_a_position_that_is_not_finite_runs_eagerly(special):
    x, grid = drawn((1, 2, 8, 8)), drawn((1, 9, 9, 2))
    fast = burnish.compile(ops.grid_sample)
    fast(x, grid)
    grid.data[0, 4, 4, 1] = special
    with np.errstate(invalid="ignore"):
        outcomes = [_outcome(each, x, grid) for each in (fast, ops.grid_sample)]
    np.testing.assert_array_equal(*outcomes)


def _outcome(function, *args):
    try:
        return function(*args).numpy()
    except IndexError as error:
        return str(error)


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_values_are_pytorchs(mode):
    import torch

    x, grid = drawn((2, 5, 9, 7)), drawn((2, 6, 11, 2))
    function = burnish.compile(lambda x, grid: ops.grid_sample(x, grid, mode))
    arrays = (torch.tensor(each.numpy()) for each in (x, grid))
    wanted = torch.nn.functional.grid_sample(*arrays, mode, align_corners=False)
    np.testing.assert_allclose(function(x, grid), wanted, rtol=0, atol=2e-5)
