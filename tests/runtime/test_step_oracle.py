"""Gradients of whole steps: no further from float64 than PyTorch's float32."""

from __future__ import annotations

import numpy as np
import pytest

from burnish import Tensor, nn, ops
from burnish.kernels import library

pytestmark = pytest.mark.oracle

SEEDS = range(6)
FURTHER = 1.3  # times PyTorch's distance


@pytest.fixture(autouse=True)
def kernels():
    """The library, so that convolutions and norms have their kernels."""
    return library()


def residual(nn, functions, seen):
    """Residual blocks behind a strided stem: (N, 3, 48, 48) -> (N, 10)"""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 16, 7, 2, 3, bias=False)
            self.conv1 = nn.Conv2d(16, 32, 3, 2, 1, bias=False)
            self.conv2 = nn.Conv2d(32, 32, 3, 1, 1, bias=False)
            self.beside = nn.Conv2d(16, 32, 1, 2, bias=False)
            self.conv3 = nn.Conv2d(32, 32, 3, 1, 2, dilation=2, bias=False)
            self.bn0, self.bn1 = nn.BatchNorm2d(16), nn.BatchNorm2d(32)
            self.bn2, self.bn3 = nn.BatchNorm2d(32), nn.BatchNorm2d(32)
            self.pool = nn.MaxPool2d(3, 2, 1)
            self.head = nn.Linear(32, 10)

        def relu(self, x):
            seen.append(x)
            return functions.relu(x)

        def forward(self, x):
            x = self.pool(self.relu(self.bn0(self.stem(x))))
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            y = self.relu(y + self.beside(x))
            y = self.relu(y + self.bn3(self.conv3(y)))
            return self.head(y.mean((2, 3)))

    return Net()


def inverted(nn, functions, seen):
    """Inverted residuals with depthwise convolutions: (N, 3, 48, 48) -> (N, 10)"""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 16, 3, 2, 1, bias=False)
            self.wide1 = nn.Conv2d(16, 64, 1, bias=False)
            self.deep1 = nn.Conv2d(64, 64, 3, 1, 1, groups=64, bias=False)
            self.thin1 = nn.Conv2d(64, 16, 1, bias=False)
            self.wide2 = nn.Conv2d(16, 64, 1, bias=False)
            self.deep2 = nn.Conv2d(64, 64, 5, 2, 2, groups=64, bias=False)
            self.thin2 = nn.Conv2d(64, 24, 1, bias=False)
            sizes = (16, 64, 64, 16, 64, 64, 24)
            self.norms = nn.Sequential(*(nn.BatchNorm2d(n) for n in sizes))
            self.head = nn.Linear(24, 10)

        def relu6(self, x):
            seen.extend((x, x - 6))
            return functions.relu6(x)

        def forward(self, x):
            norms = list(self.norms)
            x = self.relu6(norms[0](self.stem(x)))
            y = self.relu6(norms[1](self.wide1(x)))
            y = self.relu6(norms[2](self.deep1(y)))
            x = x + norms[3](self.thin1(y))
            y = self.relu6(norms[4](self.wide2(x)))
            y = self.relu6(norms[5](self.deep2(y)))
            return self.head(norms[6](self.thin2(y)).mean((2, 3)))

    return Net()


def step_of_torch(torch, make, state, x, labels, dtype):
    """Gradients by name, and the signs of what activations saw."""
    seen = []
    model = make(torch.nn, torch.nn.functional, seen).to(dtype)
    model.load_state_dict(state)
    y = model(torch.from_numpy(x).to(dtype))
    torch.nn.functional.cross_entropy(y, torch.from_numpy(labels)).backward()
    grads = {name: p.grad.double().numpy() for name, p in model.named_parameters()}
    return grads, [(a > 0).numpy() for a in seen]


def step_of_ours(make, state, x, labels):
    seen = []
    model = make(nn, ops, seen).to("cpu:autodiff")
    model.load_state_dict({k: v.numpy().copy() for k, v in state.items()})
    loss = nn.cross_entropy(model(Tensor(x)), Tensor(labels))
    gradients = loss.backward()
    grads = {
        name: np.asarray(p.grad(gradients).data, np.float64)
        for name, p in model.named_parameters()
    }
    return grads, [np.asarray(a.data) > 0 for a in seen]


def squares(grads, wanted):
    """The mean square of relative distances, over parameters that have a gradient.

    One that a norm takes away again, such as a bias, has rounding alone.
    """
    sizes = {name: np.square(each).sum() for name, each in wanted.items()}
    least = 1e-16 * max(sizes.values())
    parts = [
        np.square(grads[name] - wanted[name]).sum() / size
        for name, size in sizes.items()
        if size > least
    ]
    return float(np.mean(parts))


@pytest.mark.parametrize("make", [residual, inverted])
def test_gradients_of_a_step_are_as_exact_as_those_of_torch(make, torch):
    """A step in which a ReLU's input changes its sign against float64 is not counted:
    that one element's gradient is there or not, in PyTorch as here."""
    ours, theirs = [], []
    for seed in SEEDS:
        torch.manual_seed(seed)
        d = np.random.default_rng(seed)
        state = make(torch.nn, torch.nn.functional, []).state_dict()
        x = d.standard_normal((8, 3, 48, 48)).astype(np.float32)
        labels = d.integers(0, 10, 8)
        given = make, state, x, labels
        wanted, signs = step_of_torch(torch, *given, torch.float64)
        peer, peer_signs = step_of_torch(torch, *given, torch.float32)
        found, own_signs = step_of_ours(*given)
        flips = [
            sum(int((a != b).sum()) for a, b in zip(signs, other, strict=True))
            for other in (peer_signs, own_signs)
        ]
        if any(flips):
            continue
        ours.append(squares(found, wanted))
        theirs.append(squares(peer, wanted))
    assert len(ours) > 1, "flipped ReLU masks in nearly every step"
    assert np.mean(ours) ** 0.5 <= FURTHER * np.mean(theirs) ** 0.5
