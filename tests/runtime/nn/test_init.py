"""Initializers: what is certain, and the statistics of what is drawn."""

import numpy as np
import pytest

from burnish import Device, nn, seed
from burnish.errors import InputError
from burnish.nn import init

CPU = Device("cpu")
WIDE, KERNEL = (300, 200), (64, 48, 3, 3)


def made(initializer, shape, dtype="float64"):
    seed(0)
    return initializer(shape, dtype, CPU)


# initializer, torch's name and arguments, shape
SAME = [
    (init.constant(0.3), "constant_", {"val": 0.3}, WIDE),
    (init.zeros, "zeros_", {}, WIDE),
    (init.ones, "ones_", {}, WIDE),
    (init.eye, "eye_", {}, (4, 6)),
    (init.dirac(), "dirac_", {}, (4, 3, 3, 4)),
    (init.dirac(2), "dirac_", {"groups": 2}, (6, 2, 5)),
    (init.dirac(), "dirac_", {}, (2, 3, 1, 2, 3)),
]
DRAWN = [
    (init.uniform(0.3), "uniform_", {"a": -0.3, "b": 0.3}, WIDE),
    (init.uniform(0.3, 0.1), "uniform_", {"a": 0.1, "b": 0.3}, WIDE),
    (init.normal(0.2, 1.0), "normal_", {"mean": 1.0, "std": 0.2}, WIDE),
    (init.trunc_normal(), "trunc_normal_", {}, WIDE),
    (
        init.trunc_normal(0.5, 0.2, -0.1, 3.0),
        "trunc_normal_",
        {"mean": 0.2, "std": 0.5, "a": -0.1, "b": 3.0},
        WIDE,
    ),
    (init.trunc_normal(1.0, 0.0, 1.5, 2.0), "trunc_normal_", {"a": 1.5}, WIDE),
    (init.kaiming_uniform(), "kaiming_uniform_", {}, KERNEL),
    (
        init.kaiming_uniform(0.3, "fan_out"),
        "kaiming_uniform_",
        {"a": 0.3, "mode": "fan_out"},
        KERNEL,
    ),
    (
        init.kaiming_normal(nonlinearity="tanh"),
        "kaiming_normal_",
        {"nonlinearity": "tanh"},
        KERNEL,
    ),
    (init.kaiming_normal(5**0.5), "kaiming_normal_", {"a": 5**0.5}, WIDE),
    (init.xavier_uniform(2.0), "xavier_uniform_", {"gain": 2.0}, KERNEL),
    (init.xavier_normal(), "xavier_normal_", {}, WIDE),
    (init.sparse(0.3, 2.0), "sparse_", {"sparsity": 0.3, "std": 2.0}, WIDE),
    (init.orthogonal(0.5), "orthogonal_", {"gain": 0.5}, WIDE),
]


def theirs(name, options, shape):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    empty = torch.empty(shape, dtype=torch.float64)
    return getattr(torch.nn.init, name)(empty, **options).numpy()


@pytest.mark.oracle
@pytest.mark.parametrize(("initializer", "name", "options", "shape"), SAME)
def test_certain_values_are_torchs(initializer, name, options, shape):
    want = theirs(name, options, shape)
    np.testing.assert_array_equal(made(initializer, shape), want)
    assert made(initializer, shape, "float32").dtype == np.float32


@pytest.mark.oracle
@pytest.mark.parametrize(("initializer", "name", "options", "shape"), DRAWN)
def test_drawn_values_are_spread_as_torchs(initializer, name, options, shape):
    mine, its = made(initializer, shape), theirs(name, options, shape)
    spread = its.std()
    np.testing.assert_allclose(mine.mean(), its.mean(), atol=0.03 * spread)
    np.testing.assert_allclose(mine.std(), spread, rtol=0.03)
    places = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99]
    got, want = np.quantile(mine, places), np.quantile(its, places)
    np.testing.assert_allclose(got, want, atol=0.08 * spread)
    assert not (made(initializer, (8, 8)) == initializer((8, 8), "float64", CPU)).all()


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name",
    ["linear", "conv2d", "conv_transpose3d", "sigmoid", "tanh", "relu", "selu"],
)
def test_gains_are_torchs(name):
    torch = pytest.importorskip("torch")
    assert init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    for slope in (None, 0.0, 0.3):
        want = torch.nn.init.calculate_gain("leaky_relu", slope)
        assert init.calculate_gain("leaky_relu", slope) == want


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (4, 3, 2), (4, 2, 1, 2)])
def test_rows_or_columns_are_orthonormal(shape):
    matrix = made(init.orthogonal(2.0), shape).reshape(shape[0], -1) / 2
    small = matrix @ matrix.T if len(matrix) <= len(matrix.T) else matrix.T @ matrix
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-12)


def test_every_column_has_its_zeros():
    matrix = made(init.sparse(0.25), (10, 7))
    assert ((matrix == 0).sum(axis=0) == 3).all()


@pytest.mark.parametrize(("low", "high"), [(-1, 2), (8, 9), (-90, -7), (0.1, 0.2)])
def test_truncated_values_stay_inside(low, high):
    values = made(init.trunc_normal(a=low, b=high), (50, 20))
    assert low <= values.min() < values.max() <= high
    assert made(init.trunc_normal(a=low, b=high), (0, 3)).shape == (0, 3)


def test_a_layer_takes_another_initializer():
    layer = nn.Linear(3, 4)
    layer.weight = nn.Param(init.orthogonal(), layer.weight.shape)
    assert layer.weight.is_lazy
    np.testing.assert_allclose(
        layer.weight.numpy().T @ layer.weight.numpy(), np.eye(3), atol=1e-6
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: init.trunc_normal(a=1, b=1), "trunc_normal: expected a < b"),
        (lambda: init.calculate_gain("gelu"), "calculate_gain: expected one of"),
        (lambda: init.kaiming_normal(mode="fan"), "kaiming: expected mode"),
        (lambda: made(init.xavier_normal(), (3,)), "with 2 or more axes, got"),
        (lambda: made(init.eye, (3, 3, 3)), "eye: expected a shape with 2 axes"),
        (lambda: made(init.dirac(), (3, 3)), "dirac: expected a shape with 3 to 5"),
        (lambda: made(init.dirac(2), (3, 3, 3)), "dirac: expected a multiple of 2"),
        (lambda: made(init.sparse(0.5), (3,)), "sparse: expected a shape with 2 axes"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("initializer", "shape", "want"),
    [
        (init.arange, (1, 3), [[0, 1, 2]]),
        (init.tril, (1, 2, 3), [[[1, 0, 0], [1, 1, 0]]]),
        (init.frequencies(), (4,), [1, 0.1, 0.01, 0.001]),
        (init.frequencies(100.0), (2, 2), [[1, 0.1], [1, 0.1]]),
        (init.frequencies(), (0,), []),
    ],
)
def test_tables_are_made(initializer, shape, want):
    np.testing.assert_allclose(made(initializer, shape), np.array(want), rtol=1e-12)
    assert made(initializer, shape, "int64").dtype == np.int64
