"""PyTorch's side of docs/from-pytorch.md: what its tables say that PyTorch does."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle


@pytest.fixture
def x():
    return torch.tensor([[1.0, 2.0], [3.0, 5.0]])


def test_memory_is_shared_and_written_to(x):
    row = x[0]
    x[0, 0] = 5.0
    assert row[0] == 5.0


def test_gradients_add_up():
    w = torch.tensor([3.0], requires_grad=True)
    for _ in range(2):
        (w * w).sum().backward()
    assert w.grad.item() == 12.0


def test_numbers(x):
    whole = torch.tensor([1, 2], dtype=torch.int32)
    assert (whole * 0.5).dtype == torch.float32
    assert whole.sum().dtype == torch.int64
    assert x.var().item() == pytest.approx(2.1875 * 4 / 3)
    values, indices = x.max(dim=1)
    assert (values.tolist(), indices.tolist()) == ([2.0, 5.0], [1, 1])
    with pytest.raises(ValueError, match="step must be greater than zero"):
        x[::-1]


def test_dropout_follows_the_mode(x):
    assert torch.equal(torch.nn.Dropout(0.5).eval()(x), x)
    kept = torch.nn.Dropout(0.5)(x) / x
    assert set(kept.ravel().tolist()) <= {0.0, 2.0}


def test_a_weight_of_another_shape_is_taken():
    layer = torch.nn.Linear(4, 8)
    layer.weight = torch.nn.Parameter(torch.zeros(4, 8))
    assert layer.weight.shape == (4, 8)
