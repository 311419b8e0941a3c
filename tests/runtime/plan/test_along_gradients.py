"""Gradients along axes, of groups and of tables, against those in double precision."""

import numpy as np
import pytest

import burnish
from burnish import nn, ops, optim
from burnish.kernels import library
from tests.runtime.plan.test_gradients import exact, normal

pytestmark = [
    pytest.mark.usefixtures("canaries"),
    pytest.mark.skipif(library() is None, reason="there is no compiler"),
]


def planned(function, *arrays):
    """The gradients are exact, and no call of the step runs eagerly."""
    report = exact(function, *arrays)
    assert "nothing eagerly" in report, report


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(), (1,), (5, 7), (16, 4)])
def test_group_norm(groups, sizes):
    random = np.random.default_rng(0)
    x = normal(random, 4, 12, *sizes)
    planned(
        lambda x, w, b: ops.group_norm(x, groups, w, b),
        x, normal(random, 12), normal(random, 12),
    )  # fmt: skip
    planned(lambda x: ops.group_norm(x, groups), x)


INDEXES = {
    "a row": (slice(None), -1),
    "every other": (slice(None), slice(None, None, 2)),
    "backwards": (slice(None), slice(None, None, -1), 0),
    "a new axis": (None, slice(1, 3)),
    "an element": (0, 0, 0, 0),
    "channels": (slice(None), slice(16, 40)),
}


@pytest.mark.parametrize("name", INDEXES)
@pytest.mark.parametrize("shape", [(3, 40, 5, 6)])
def test_parts_of_an_array(name, shape):
    x = normal(np.random.default_rng(1), *shape)
    planned(lambda x: ops.getitem(x * 2, index=INDEXES[name]), x)


def test_parts_of_maps_in_blocks():
    random = np.random.default_rng(2)

    def function(x, weight):
        y = ops.conv(x, weight, padding=1)
        return ops.concat([y[:, :16] * ops.sigmoid(y[:, 16:]), y[:, 3:5]], axis=1)

    x, weight = normal(random, 2, 3, 7, 5), normal(random, 32, 3, 3, 3)
    planned(function, x, weight)


def test_first_channels_with_lanes_of_others_that_give_nan():
    random = np.random.default_rng(5)

    def function(x, weight, bias, other):
        y = ops.conv(x, weight, bias, padding=1)
        return ops.conv(ops.sqrt(y[:, :20]), other)

    planned(
        function,
        0.1 * normal(random, 2, 3, 7, 5), normal(random, 48, 3, 3, 3),
        np.where(np.arange(48) < 20, 10.0, -10.0), normal(random, 24, 20, 1, 1),
    )  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_joined_and_split(axis):
    random = np.random.default_rng(3)
    shapes = [[3, 4, 5] for _ in range(3)]
    for n, shape in zip((1, 6, 2), shapes, strict=True):
        shape[axis] = n

    def function(*arrays):
        whole = ops.concat(list(arrays), axis=axis)
        first, *_, last = ops.split(ops.tanh(whole), 2, axis=axis)
        return first.sum(axis=axis) + last.sum(axis=axis)

    planned(function, *(normal(random, *shape) for shape in shapes))


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": (3, 2), "stride": 1},
        {"kernel_size": 3, "stride": 2, "ceil_mode": True},
        {"kernel_size": 2, "stride": 3},
    ],
)
def test_means_of_windows(options):
    x = normal(np.random.default_rng(4), 2, 20, 8, 11)
    planned(lambda x: ops.avg_pool(x, **options), x)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(10, 14), (3, 4), (7, 13)])
def test_resized_maps(mode, size):
    x = normal(np.random.default_rng(5), 2, 3, 5, 7)
    planned(lambda x: ops.interpolate(x, size=size, mode=mode), x)


def test_taken_by_known_numbers():
    x = normal(np.random.default_rng(6), 4, 6, 3)
    for numbers in ([0, 5, 5, -1], [[2, 2], [0, 1]]):
        planned(lambda x, n=numbers: ops.take_slices(x, np.array(n), axis=1), x)


@pytest.mark.parametrize("kernel", [2, 3])
def test_the_greatest_of_stretches(kernel):
    x = normal(np.random.default_rng(7), 3, 20, 17)
    planned(lambda x: ops.max_pool(x, kernel_size=kernel, padding=1), x)


FORMULAS = {
    "elu": lambda x: ops.elu(x, alpha=0.7),
    "selu": ops.selu,
    "celu": lambda x: ops.celu(x, alpha=0.7),
    "softsign": ops.softsign,
    "log_sigmoid": ops.log_sigmoid,
    "glu": lambda x: ops.glu(x, axis=0),
    "hard_sigmoid": ops.hard_sigmoid,
    "clip": lambda x: ops.clip(x, -0.5, 0.5),
    "clip below": lambda x: ops.clip(x, None, 0.5),
    "greatest": lambda x: ops.maximum(x, 0.25 * x + 0.1),
    "least": lambda x: ops.minimum(x, 0.3),
    "absolute": ops.abs,
    "cube": lambda x: x**3,
    "logarithm": lambda x: ops.log(x * x + 1),
    "maximum of rows": lambda x: x.max(axis=1),
    "minimum of all": lambda x: x.min(),
    "pads": lambda x: ops.pad(x, ((1, 2), (0, 3))),
    "spread": lambda x: ops.broadcast_to(x[:1], (6, 21)) * 2,
    "softplus of a mean": lambda x: ops.softplus(x).mean(),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name):
    exact(FORMULAS[name], normal(np.random.default_rng(8), 6, 21))


def test_a_slope_for_each_channel():
    random = np.random.default_rng(9)
    exact(ops.prelu, normal(random, 3, 5, 4), normal(random, 5))


@pytest.mark.parametrize("padding_idx", [None, 3, -1])
def test_rows_of_a_table(padding_idx):
    random = np.random.default_rng(10)
    table = random.normal(size=(9, 21)).astype(np.float32)
    ids = burnish.Tensor(np.array([[0, 3, 3, 8], [-1, 0, 5, 3]]))
    factor = burnish.Tensor(random.normal(size=(2, 4, 21)).astype(np.float32))
    found = []
    for is_planned in (True, False):
        layer = nn.Embedding(9, 21)
        layer.weight.assign(table)
        layer = layer.to("cpu:autodiff")

        def step(ids, factor, layer=layer):
            y = ops.embedding(ids, layer.weight, padding_idx=padding_idx)
            found = (y * factor).sum().backward()
            optim.SGD().step(0.0, layer, found)
            return layer.weight.grad(found)

        fast = burnish.compile(step) if is_planned else step
        found.append(fast(ids, factor).numpy())
        assert not is_planned or "gradient" not in fast.explain(), fast.explain()
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-6)
