"""What runs between the records of a plan: called on arrays, with the same results."""

from __future__ import annotations

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.errors import BurnishError
from burnish.operator import Operator
from tests.runtime.plan.checks import check, same

RANDOM = np.random.default_rng(0)


def tensor(*shape):
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


def labels(x):
    keys, values = [2.0, float("nan"), 1.0, 2.0], ["two", "none", "one", "other"]
    return ops.label_encoder(ops.relu(x) + 1.0, keys, values, default="?")


def test_an_operator_without_a_kernel_meets_arrays(monkeypatch):
    fast, x = burnish.compile(labels), Tensor(np.float32([0, 1, np.nan, 3, -1]))
    assert fast(x).data.tolist() == ["one", "two", "none", "?", "one"]
    assert [why for _, why in fast.planned(x).eager] == ["it gives object"]

    def refuse(self, args, options):
        raise AssertionError(self.name)

    monkeypatch.setattr(Operator, "_on_variables", refuse)
    assert fast(x).data.tolist() == ["one", "two", "none", "?", "one"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_labels_of_numbers_are_those_of_the_first_equal_key(dtype):
    keys = RANDOM.integers(-20, 20, 30).tolist()
    x = Tensor(RANDOM.integers(-30, 30, (5, 7)).astype(dtype))
    made = ops.label_encoder(x, keys, list(range(30)), default=-1)
    expected = [keys.index(k) if k in keys else -1 for k in x.data.ravel().tolist()]
    assert made.dtype == np.int64
    assert made.data.ravel().tolist() == expected


@pytest.mark.parametrize("x", [1.0, 2.0])
@pytest.mark.parametrize("values", [["one"], [7]])
def test_a_label_of_one_number_is_an_array(x, values):
    made = ops.label_encoder(Tensor(np.float32(x)), [1.0], values, default=values[0])
    assert isinstance(made.data, np.ndarray)
    assert made.data.tolist() == values[0]


def test_bfloat16_between_records_is_rounded_once():
    pytest.importorskip("ml_dtypes")

    def halves(x):
        y = ops.gelu(x).to("bfloat16")
        label = ops.label_encoder(ops.sign(y), [1.001], [2.0], default=0.0)
        return ops.relu(y) * 0.1, y @ y.mT, y.mean(axis=-1), label

    fast = check(halves, tensor(5, 40))
    assert len(fast.planned(tensor(5, 40)).eager) > 1


def test_an_error_is_that_of_the_plain_call():
    def rows(x, places):
        return ops.take(x.to("float64"), places, axis=0) * 2.0

    fast, x = burnish.compile(rows), tensor(3, 4)
    same(fast(x, Tensor(np.array([2, 0]))).data, x.data[[2, 0]] * np.float64(2))
    outside = Tensor(np.array([2, 9]))
    with pytest.raises((BurnishError, IndexError)) as plain:
        rows(x, outside)
    with pytest.raises(type(plain.value)) as compiled:
        fast(x, outside)
    assert str(compiled.value) == str(plain.value)


class Empty(nn.Module):
    """What a model does with rows that it has none of."""

    def __init__(self):
        self.fc = nn.Linear(4, 3)

    def forward(self, x, none):
        y = self.fc(x)
        rest = ops.top_k(ops.sqrt(none), 2)[0]
        return ops.concat([y, self.fc(none)], axis=0), rest.sum() + y.sum()


def test_results_without_elements_are_constants():
    given = tensor(5, 4), Tensor(np.zeros((0, 4), np.float32))
    fast = check(Empty(), *given)
    assert not fast.planned(*given).eager, fast.explain()
