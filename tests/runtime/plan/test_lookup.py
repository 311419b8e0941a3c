"""Tables of keys, the best of a line, running sums, products: as in the plain call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from burnish import Tensor, ops
from tests.runtime.plan.checks import check

pytestmark = pytest.mark.usefixtures("canaries")

INF, NAN = np.inf, np.nan
ODD = np.array([[1, NAN, -INF, 2, 2, INF, -0.0, 0.0, NAN], [3] * 9], np.float32)


def drawn(*shape: int, dtype: str = "float32", seed: int = 0) -> Tensor:
    """Whole numbers, so that many are equal."""
    random = np.random.default_rng(seed)
    return Tensor(random.integers(-3, 4, shape).astype(dtype))


def planned(function: Any, *args: Tensor) -> Any:
    """The compiled function, which runs nothing eagerly and gives the same numbers."""
    fast = check(function, *args)
    assert not fast.planned(*args).eager
    return fast


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_best_of_each_line(axis: int, dtype: str, largest: bool) -> None:
    x = drawn(4, 7, 33, dtype=dtype)
    for k in (1, 3, x.shape[axis]):
        planned(
            lambda x, k=k: ops.top_k(x, k, axis=axis, largest=largest),
            x,
        )


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_best_of_lines_that_go_up_or_down(
    axis: int, dtype: str, largest: bool
) -> None:
    up = np.arange(1003) // 3  # equal ones too, and in more than one block
    wave = np.concatenate((up[::2], up[::-2]))[:1003]
    lines = np.stack((up, up[::-1], wave, np.roll(up, 500))).astype(dtype)
    x = Tensor(np.ascontiguousarray(lines if axis else lines.T))
    for k in (1, 40, 250):
        planned(
            lambda x, k=k: ops.top_k_places(x, k=k, axis=axis, largest=largest),
            x,
        )


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("width", [257, 600, 1031])
def test_the_best_are_those_of_a_stable_order(width: int, largest: bool) -> None:
    random = np.random.default_rng(width)
    few = random.choice([0.0, -0.0, 1, -1, 7, INF, -INF, NAN], (6, width))
    few[1:3] = random.integers(-3, 4, (2, width))
    few[2:4] = np.sort(few[2:4])
    few[4:] = np.sort(few[4:])[:, ::-1]
    few[5, -1] = NAN if largest else -INF
    x = few.astype(np.float32)
    known = np.where(np.isnan(x), 0, x)
    order = (-known if largest else known, np.isnan(x) != largest)
    rank = np.lexsort(order)  # by the last key first, and stable
    for k in (1, 2, 17, width // 4):
        fast = planned(
            lambda x, k=k: ops.top_k_places(x, k=k, largest=largest), Tensor(x)
        )
        np.testing.assert_array_equal(fast(Tensor(x)).numpy(), rank[:, :k])


@pytest.mark.parametrize("largest", [True, False])
def test_the_best_among_nan_and_infinities(largest: bool) -> None:
    planned(lambda x: ops.top_k_places(x, k=9, largest=largest), Tensor(ODD))
    wide = np.random.default_rng(1).standard_normal((3, 400)).astype(np.float32)
    wide[0, ::7], wide[1], wide[2, 300] = np.inf, 0, np.nan
    for x in (wide, -wide, np.sort(wide), np.sort(wide)[:, ::-1].copy()):
        planned(lambda x: ops.top_k_places(x, k=5, largest=largest), Tensor(x))


def test_most_of_a_long_line_are_sorted_eagerly() -> None:
    x = drawn(2, 4000)
    planned(lambda x: ops.top_k_places(x, k=1000), x)
    assert check(lambda x: ops.top_k_places(x, k=1001), x).planned(x).eager


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("shape", [(7,), (3, 5, 6), (40, 3)])
def test_running_sums(shape: Any, exclusive: bool, reverse: bool) -> None:
    options = {"axis": -1, "exclusive": exclusive, "reverse": reverse}
    planned(lambda x: ops.cum_sum(x, **options), drawn(*shape))


FOLDS = ["reduce_min", "reduce_prod", "reduce_log_sum_exp"]


@pytest.mark.parametrize("axes", [0, 1, -1, (1, 2), None])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", FOLDS)
def test_folds(name: str, keepdims: bool, axes: Any) -> None:
    options = {"axes": axes, "keepdims": keepdims}
    planned(lambda x: getattr(ops, name)(x, **options), drawn(3, 4, 21))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", FOLDS)
def test_folds_of_long_lines(name: str, axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((5000, 3)).astype(np.float32)
    x = 1 + x / 1000 if name == "reduce_prod" else x
    fast = planned(
        lambda x: getattr(ops, name)(x, axes=axis), Tensor(x.swapaxes(0, axis).copy())
    )
    wanted = getattr(ops, name).value(x.astype(np.float64), axes=0)
    made = fast(Tensor(x.swapaxes(0, axis).copy())).data
    np.testing.assert_allclose(
        made, wanted, rtol=1e-4 if name == "reduce_prod" else 1e-6
    )


@pytest.mark.parametrize("name", FOLDS)
def test_folds_of_nan_and_infinities(name: str) -> None:
    rows = np.array([[INF, 1], [-INF, -INF], [-INF, 2], [NAN, 1], [1, NAN]], np.float32)
    large = np.array([[1000, 999], [-1000, -1001]], np.float32)
    for x in (rows, rows.T, large):
        planned(lambda x: getattr(ops, name)(x, axes=1), Tensor(x.copy()))


KEYS: dict[str, tuple[Any, Any]] = {
    "float32": ([2.0, NAN, -1.0, 0.0, 2.0], [1, 2, 3, 4, 5]),
    "int64": ([7, -1, 3, 7], [0.5, NAN, 1.5, 2.5]),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("values", ["float32", "int64", "float64"])
def test_labels(kind: str, values: str) -> None:
    keys, made = KEYS[kind]
    made = np.nan_to_num(np.array(made)).astype(values)
    x = np.array([[-1, 0, 7, 2, 3], [4, -7, 2, 0, 1]], kind)
    if kind == "float32":
        x[0, 2], x[1, 3] = np.nan, -0.0
    for given in (keys, np.array(keys, kind)):
        planned(
            lambda x, given=given: ops.label_encoder(x, given, made, default=-5),
            Tensor(x),
        )


def test_is_nan() -> None:
    planned(ops.is_nan, Tensor(ODD))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((5,), (5,)),
        ((700,), (700,)),
        ((4, 5), (5,)),
        ((37, 70), (70,)),
        ((5,), (5, 3)),
        ((70,), (70, 37)),
        ((2, 4, 5), (5,)),
        ((2, 1, 2, 2, 4, 5), (5,)),
        ((5,), (2, 5, 3)),
    ],
    ids=str,
)
def test_products_with_vectors(a: Any, b: Any) -> None:
    x, y = drawn(*a), drawn(*b, seed=1)
    planned(ops.matmul, x, y)
    planned(lambda x: ops.matmul(x, y), x)
    planned(lambda y: ops.matmul(x, y), y)
    far = (..., slice(None, None, -2))
    planned(
        lambda x, y: ops.matmul(x[far], y[::-2] if y.ndim == 1 else y[..., ::-2, :]),
        x, y,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("a", "b"), [((0,), (0, 3)), ((2, 0), (0, 3)), ((0,), (0,))], ids=str
)
def test_products_that_sum_nothing(a: Any, b: Any) -> None:
    x, y = drawn(*a), drawn(*b)
    check(ops.matmul, x, y)
    check(lambda x: ops.matmul(x, y), x)
