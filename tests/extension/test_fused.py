"""A user's operator: its forms agree, its gradients are right, the page shows it.

The cases run on a GPU too, where there is one.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from burnish import Device, Tensor, nn, optim
from burnish.errors import DeviceError, InputError
from tests.harness import operators

from . import fused
from .fused import matmul_add_relu, reference

case = operators.case
HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "extension.md"


def expected(lhs, rhs, bias):
    return np.maximum(lhs @ rhs + bias, 0)


CASES = [
    case(matmul_add_relu, (3, 4), (4, 5), (5,), expect=expected),
    case(matmul_add_relu, (3, 4), (4, 5), (3, 1), expect=expected),
    case(matmul_add_relu, (2, 3, 4), (2, 4, 5), (2, 3, 5), expect=expected),
    case(matmul_add_relu, (2, 3, 4), (4, 5), (1, 5), expect=expected),
    case(matmul_add_relu, (2, 1, 3, 4), (3, 4, 2), (), expect=expected),
    case(matmul_add_relu, (1, 1), (1, 1), (1,), expect=expected),
    case(matmul_add_relu, (3, 0), (0, 5), (5,), expect=expected),
    case(matmul_add_relu, (2, 0, 3), (2, 3, 4), (4,), expect=expected),
    case(matmul_add_relu, (33, 40), (40, 17), (17,), expect=expected, grad=False),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_operator(case):
    case.check()


@pytest.mark.parametrize("name", ["value", "numpy"])
@pytest.mark.parametrize("dtypes", [("f4", "f4", "f8"), ("f2", "f2", "f2")])
def test_forms_give_what_the_reference_gives(name, dtypes):
    rng = np.random.default_rng(0)
    shapes = ((2, 3, 4), (4, 5), (5,))
    arrays = [rng.normal(size=s).astype(d) for s, d in zip(shapes, dtypes, strict=True)]
    form = matmul_add_relu.kernels.get(name, matmul_add_relu.value)
    got, want = form(*arrays), reference(*arrays)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, 2e-3 if dtypes[0] == "f2" else 1e-6, 1e-3)


@pytest.mark.oracle
def test_gradients_are_pytorch_s(torch):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) for s in ((2, 3, 4), (4, 5), (3, 5))]
    ours = [Tensor(array).require_grad() for array in arrays]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    found = (matmul_add_relu(*ours) ** 2).sum().backward()
    lhs, rhs, bias = theirs
    (torch.relu(lhs @ rhs + bias) ** 2).sum().backward()
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.grad(found).numpy(), other.grad.numpy())


class Layer(nn.Module):
    def __init__(self):
        self.weight = nn.Param(nn.init.xavier_uniform(), (4, 3))
        self.bias = nn.Param(nn.init.zeros, (3,))

    def forward(self, x):
        return matmul_add_relu(x, self.weight, self.bias)


def test_a_layer_trains_with_it():
    x = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    wanted = abs(x[:, :3])
    model, optimizer, losses = Layer().train(), optim.Adam(), []
    for _ in range(60):
        loss = nn.mse_loss(model(x), wanted)
        optimizer.step(0.05, model, loss.backward())
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("tile", [4, 16, 32])
def test_a_gpu_computes_the_same_with_every_tile(tile, monkeypatch):
    device = Device("cuda")
    try:
        device.put(np.zeros(1))
    except DeviceError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(fused, "TILE", tile)
    rng = np.random.default_rng(0)
    for dtype, close in (("float32", 1e-4), ("float64", 1e-12), ("float16", 2e-2)):
        arrays = [
            rng.normal(size=shape).astype(dtype)
            for shape in ((3, 1, 35, 50), (2, 50, 19), (35, 1))
        ]
        got = matmul_add_relu(*map(device.put, arrays)).get()
        assert got.dtype == dtype
        np.testing.assert_allclose(got, reference(*arrays), close, close)


def test_the_kernel_s_text_has_the_tile_in_it():
    text = fused.source(tile=8, element="double")
    assert "typedef double element;" in text
    assert "left[8][8]" in text
    assert "{{" not in text


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(InputError, match=r"got \(2, 3\) and \(4, 5\)"):
        matmul_add_relu(np.ones((2, 3)), np.ones((4, 5)), np.ones(5))


def test_the_page_shows_these_files():
    shown = re.findall(
        r"<!-- from: tests/extension/(\S+) -->\n+```\w+\n(.*?)^```$",
        PAGE.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert len(shown) > 5
    for name, text in shown:
        assert text.strip() in (HERE / name).read_text("utf-8"), text
