"""Imported models train: the right tensors, with the right statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnish import nn, optim, seed
from burnish.models.mnist.mnist import Model
from burnish.models.mnist.train import digits, fine_tune, normalised
from burnish.serialize import load_file
from burnish.training import train
from tests.harness.imported import imported

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'


def changed(model: nn.Module, *inputs: Any) -> set[str]:
    """The paths of the tensors that a step on `inputs` changes."""
    before = {path: np.array(value) for path, value in model.state_dict().items()}
    tuned = model.train()
    output = tuned(*inputs)
    gradients = (output * output).mean().backward()
    optim.SGD().step(0.1, tuned, gradients)
    after = tuned.state_dict()
    assert after.keys() == before.keys()
    return {
        path for path, old in before.items() if not np.array_equal(after[path], old)
    }


def parameters(model: nn.Module) -> set[str]:
    return {path for path, _ in model.named_parameters()}


# --- the digit classifier ---


@pytest.fixture(scope="module")
def tuned() -> tuple[nn.Module, list[float]]:
    seed(0)
    model = Model.from_file().train()
    images, labels = digits("train")
    return model, [step.loss for step in fine_tune(model, 1 - images, labels, 1)]


def test_the_loss_falls(tuned: tuple[nn.Module, list[float]]) -> None:
    losses = tuned[1]
    assert np.mean(losses[-5:]) < 0.3 * np.mean(losses[:3])


def test_the_saved_file_gives_the_same_numbers(
    tuned: tuple[nn.Module, list[float]], tmp_path: Path
) -> None:
    model = tuned[0].valid()
    model.save_file(tmp_path / "tuned.safetensors")
    again = Model.from_file(tmp_path / "tuned.safetensors")
    x = normalised(digits("test")[0][:8])
    np.testing.assert_array_equal(np.asarray(model(x)), np.asarray(again(x)))


def test_the_saved_file_opens_elsewhere(
    tuned: tuple[nn.Module, list[float]], tmp_path: Path
) -> None:
    from safetensors.numpy import load_file as theirs

    path = tmp_path / "tuned.safetensors"
    tuned[0].save_file(path)
    ours = load_file(path)
    opened = theirs(path)
    assert opened.keys() == ours.keys()
    for name, array in opened.items():
        np.testing.assert_array_equal(array, ours[name])


@pytest.mark.oracle
def test_the_saved_file_opens_in_pytorch(
    tuned: tuple[nn.Module, list[float]], tmp_path: Path
) -> None:
    import torch
    from safetensors.torch import load_file as theirs

    from burnish.models.mnist.train_original import Model as Original

    path = tmp_path / "tuned.safetensors"
    tuned[0].save_file(path)
    original = Original().eval()
    original.load_state_dict(theirs(path))
    x = normalised(digits("test")[0][:8])
    with torch.no_grad():
        expected = original(torch.tensor(x)).numpy()
    found = np.asarray(tuned[0].valid()(x))
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_dropout_acts_in_training_alone() -> None:
    model = Model.from_file()
    x = normalised(digits("test")[0][:4])
    still = [np.asarray(model(x)) for _ in range(2)]
    np.testing.assert_array_equal(*still)
    trained = model.train()
    moving = [np.asarray(trained(x)) for _ in range(2)]
    assert not np.array_equal(*moving)
    np.testing.assert_array_equal(np.asarray(trained.valid()(x)), still[0])


# --- which tensors train ---


def test_a_shared_weight_is_one_parameter(tmp_path: Path) -> None:
    model = imported(
        f"""{HEAD}
        g (float[2, 3] x) => (float[2, 3] y)
        <float[3, 3] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}>
        {{
            a = MatMul(x, w)
            b = Relu(a)
            y = MatMul(b, w)
        }}
        """,
        tmp_path,
    )
    assert model.num_params == 9
    x = np.ones((2, 3), np.float32)
    w = np.arange(1.0, 10, dtype=np.float32).reshape(3, 3)
    np.testing.assert_allclose(np.asarray(model(x)), np.maximum(x @ w, 0) @ w)
    (path,) = parameters(model)
    assert changed(model, x) == {path}
    for _ in train(model, nn.mse_loss, [(x, np.zeros((2, 3)))] * 3, optim.SGD(), 1e-5):
        pass
    (w,) = (np.asarray(p) for p in model.parameters())
    tuned = [x @ w @ w, x @ w.T @ w.T]  # a Linear keeps it the other way round
    found = np.asarray(model.valid()(x))
    assert any(np.allclose(found, y, rtol=1e-5) for y in tuned)


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "MatMul", "PRelu"])
def test_a_weight_of_any_operator_trains(operator: str, tmp_path: Path) -> None:
    model = imported(
        f"""{HEAD}
        g (float[2, 3] x) => (float[2, 3] y)
        <float[3, 3] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, float[3] b = {{0.5, 2, 3}}>
        {{
            a = MatMul(x, w)
            y = {operator}(a, {"w" if operator == "MatMul" else "b"})
        }}
        """,
        tmp_path,
    )
    x = -np.ones((2, 3), np.float32)
    assert changed(model, x) == parameters(model)
    assert model.num_params == (9 if operator == "MatMul" else 12)


CONTROL_FLOW = {
    "If": """
        g (float[2, 3] x, bool c) => (float[2, 3] y)
        <float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}>
        {
            a = MatMul(x, w)
            y = If (c) <
                then_branch = t () => (float[2, 3] p) <float[3] b = {1, 2, 3}>
                { p = Add(a, b) },
                else_branch = e () => (float[2, 3] q) { q = Neg(a) }
            >
        }""",
    "Loop": """
        g (float[2, 3] x, bool c) => (float[2, 3] y)
        <int64 n = {3}, float[3, 3] w = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9},
         float[3] b = {1, 2, 3}>
        {
            y = Loop (n, c, x) <
                body = l (int64 i, bool on, float[2, 3] s) => (bool on2, float[2, 3] s2)
                {
                    on2 = Identity(on)
                    m = MatMul(s, w)
                    s2 = Add(m, b)
                }
            >
        }""",
}


@pytest.mark.parametrize("name", CONTROL_FLOW)
def test_weights_inside_control_flow_train(name: str, tmp_path: Path) -> None:
    model = imported(HEAD + CONTROL_FLOW[name], tmp_path)
    assert model.num_params == 12
    x, on = np.ones((2, 3), np.float32), np.array(True)
    assert changed(model, x, on) == parameters(model)


def test_integers_and_shapes_are_no_parameters(tmp_path: Path) -> None:
    model = imported(
        f"""{HEAD}
        g (float[batch, 6] x, int64[batch] i) => (float[batch, 2, 3] y)
        <int64[3] shape = {{0, 2, 3}}, int64[4] order = {{3, 2, 1, 0}},
         float[4, 6] table = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6,
                              5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8}},
         float two = {{2}}>
        {{
            k = Gather(order, i)
            row = Gather(table, k)
            a = Mul(x, row)
            scaled = Div(a, two)
            y = Reshape(scaled, shape)
        }}
        """,
        tmp_path,
    )
    x, i = np.ones((2, 6), np.float32), np.array([0, 3])
    assert changed(model, x, i) == parameters(model)
    assert model.num_params in (24, 25)  # a scalar may be a weight
    for _, buffer in model.named_buffers():
        assert buffer.dtype == np.int64


def test_batch_statistics_follow_with_pytorchs_share(tmp_path: Path) -> None:
    model = imported(
        f"""{HEAD}
        g (float[8, 2, 3] x) => (float[8, 2, 3] y)
        <float[2] s = {{1, 2}}, float[2] b = {{0, 1}}, float[2] m = {{1, -1}},
         float[2] v = {{1, 4}}>
        {{
            y = BatchNormalization <momentum = 0.8> (x, s, b, m, v)
        }}
        """,
        tmp_path,
    )
    x = np.random.default_rng(0).normal(3, 2, (8, 2, 3)).astype(np.float32)
    assert changed(model, x) == set(model.state_dict())  # two learn, two follow
    trained = model.train()
    trained(x)
    state = {path.rpartition(".")[2]: v for path, v in trained.state_dict().items()}
    mean, variance = x.mean((0, 2)), x.var((0, 2), ddof=1)
    np.testing.assert_allclose(
        state["running_mean"], 0.8 * np.array([1, -1]) + 0.2 * mean, rtol=1e-5
    )
    np.testing.assert_allclose(
        state["running_var"], 0.8 * np.array([1, 4]) + 0.2 * variance, rtol=1e-5
    )
