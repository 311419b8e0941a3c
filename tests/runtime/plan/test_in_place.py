"""Sums behind convolutions, written over the value that is added."""

from __future__ import annotations

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from tests.runtime.plan.checks import check

RANDOM = np.random.default_rng(6)


def convolution(channels: int = 32, kernel: int = 1, **options: int) -> nn.Conv2d:
    return nn.Conv2d(channels, channels, kernel, padding=kernel // 2, **options)


def maps(channels: int = 32, size: int = 9) -> Tensor:
    shape = (2, channels, size, size)
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


def in_place(fast, x) -> list[bool]:
    """Of every record with a sum behind it: is it written over what is added?"""
    return [
        step.fields["residual"].reference == step.fields["out"].reference
        for step in fast.planned(x).steps
        if step.fields.get("residual") is not None
    ]


def test_a_row_of_blocks_has_one_place_for_its_sums():
    first, *layers = [convolution(kernel=k) for k in (1, 3, 1, 3, 1)]

    def blocks(x):
        x = ops.relu(first(x))
        for inner, outer in zip(layers[::2], layers[1::2], strict=True):
            x = ops.relu(x + outer(ops.relu(inner(x))))
        return ops.tanh(x * x)

    fast = check(blocks, maps())
    assert in_place(fast, maps()) == [True, True]


def test_a_value_that_is_read_later_or_beside_stays():
    first, inner, wide = convolution(), convolution(), convolution(kernel=3)

    def read_later(x):
        h = first(x)
        return (inner(ops.relu(h)) + h) * h

    def own_input(x):
        h = first(x)
        return ops.tanh(wide(h) + h)

    for function in (read_later, own_input):
        assert in_place(check(function, maps()), maps()) == [False]


def test_an_argument_keeps_its_numbers():
    layer = convolution()

    def function(x):
        return layer(ops.relu(x)) + x

    x = maps()
    before = np.array(x.numpy())
    assert in_place(check(function, x), x) == [True]  # over its copy in blocks
    np.testing.assert_array_equal(x.numpy(), before)


@pytest.mark.parametrize("groups", [2, 4])
def test_groups_within_blocks(groups):
    first, inner = convolution(48), convolution(48, 3, groups=groups)

    def function(x):
        h = first(x)
        return ops.tanh(inner(ops.relu(h)) + h)

    check(function, maps(48))


def test_rows_of_a_product():
    first, inner = nn.Linear(24, 40), nn.Linear(40, 40)

    def function(x):
        h = first(x)
        return ops.tanh(h + inner(ops.relu(h)))

    check(function, Tensor(RANDOM.standard_normal((70, 24)).astype(np.float32)))


def test_winograd():
    first, inner = convolution(64), convolution(64, 3)

    def function(x):
        h = first(x)
        return ops.tanh(inner(ops.relu(h)) + h)

    x = maps(64, 28)
    fast = burnish.compile(function, tolerance=1e-4)
    wanted = function(x).numpy()
    np.testing.assert_allclose(fast(x).numpy(), wanted, atol=1e-4)
    assert "winograd" in [step.kind for step in fast.planned(x).steps]
    assert in_place(fast, x) == [True]
