"""Layers and losses on a GPU against the same on the CPU: outputs and gradients."""

import numpy as np
import pytest

from burnish import Tensor, nn, seed
from tests.harness.waiting import waits
from tests.runtime.nn.oracle import flat, is_array

pytest.importorskip("torch")  # the tables need it
from tests.runtime.nn import (
    test_activation_oracle,
    test_attention_oracle,
    test_layers_oracle,
    test_loss_oracle,
    test_norm_oracle,
    test_recurrent_oracle,
    test_window_oracle,
)

pytestmark = pytest.mark.oracle
ROWS = [
    row
    for page in (
        test_activation_oracle,
        test_attention_oracle,
        test_layers_oracle,
        test_norm_oracle,
        test_recurrent_oracle,
        test_window_oracle,
    )
    for row in page.LAYERS
]
LOSSES = [
    *test_loss_oracle.ROWS,
    *(
        (
            "CTCLoss",
            (np.zeros((7, 4, 5)), targets, test_loss_oracle.FRAMES, labels),
            more,
        )
        for targets, labels, more in test_loss_oracle.CTC
    ),
    (
        "RNNTLoss",
        (np.zeros((2, 4, 3, 5)), np.array([[1, 2], [3, 0]]), [4, 3], [2, 1]),
        {},
    ),
]


def outcome(call, arrays, device):
    """Everything that a call gives on a device, and the gradients of its inputs."""
    places = [Tensor(np.asarray(a)).to(device) for a in arrays]
    leaves = [p.require_grad() if p.dtype.kind == "f" else p for p in places]
    results = flat(call(*leaves))
    learned = [r for r in results if r.requires_grad]
    found = [r.numpy() for r in results]
    if learned:
        weights = (np.cos(np.arange(r.size)).reshape(r.shape) for r in learned)
        total = sum(
            (r * Tensor(w).to(device)).sum()
            for r, w in zip(learned, weights, strict=True)
        )
        gradients = total.backward()
        found += [leaf.grad(gradients) for leaf in leaves]
    return [x.numpy() if isinstance(x, Tensor) else x for x in found]


def agree(one, other):
    for a, b in zip(one, other, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_layer(row):
    seed(0)
    kind = getattr(nn, row.name)
    layer = kind(*row.args, **row.options)
    if layer.parameters():
        layer = kind(*row.args, **row.options, dtype="float64")
    found = []
    for device in ("cpu", "cuda"):
        here = layer.fork(f"{device}:autodiff")
        more = {
            k: Tensor(v).to(device) if is_array(v) else v for k, v in row.call.items()
        }
        found.append(
            outcome(
                lambda *x, h=here, m=more: h(*x, **m), row.arrays("float64"), device
            )
        )
    agree(*found)


@pytest.mark.parametrize(("name", "inputs", "options"), LOSSES)
def test_loss(name, inputs, options):
    loss = getattr(nn, name)(**options)
    agree(*(outcome(loss.fork(place), inputs, place) for place in ("cpu", "cuda")))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "inputs", "options"), LOSSES)
def test_no_loss_waits(name, inputs, options, reduction):
    loss = getattr(nn, name)(**{"reduction": reduction} | options).fork("cuda")
    given = [Tensor(np.asarray(a)).to("cuda:autodiff") for a in inputs]
    given[0] = given[0].require_grad()

    def call():
        losses = loss(*given)
        return losses.backward(Tensor(np.ones(losses.shape)).to("cuda"))

    assert not waits(call)


def test_every_loss_is_in_the_table():
    named = {name for name in nn.__all__ if name.endswith("Loss")}
    assert {name for name, *_ in LOSSES} >= named - {"GramMatrixLoss"}
