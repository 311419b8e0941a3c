"""Gradients of a step in bfloat16 are as near as those of PyTorch's autocast."""

import ml_dtypes
import numpy as np
import pytest

from burnish import Tensor, nn, ops
from burnish.backend.cuda import layout
from burnish.backend.cuda.elementwise import fused
from burnish.optim.core import rounded
from burnish.plan.cuda.stepping import attended, mixed, summed
from burnish.plan.cuda.stepping.following import Following
from burnish.plan.cuda.stepping.mixed import Mixed
from tests.runtime.plan.test_mixed_steps import add_norm, cast_all

pytestmark = pytest.mark.oracle
SIZE, HEADS = 32, 4


def encoder(nn, gelu, attend):
    """A transformer's layers and a head: (N, T) -> (N, 3)"""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
            self.value, self.out = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
            self.norm1, self.norm2 = nn.LayerNorm(SIZE), nn.LayerNorm(SIZE)
            self.up, self.down = nn.Linear(SIZE, 64), nn.Linear(64, SIZE)

        def forward(self, x):
            n, t, _ = x.shape
            q, k, v = (
                part(x).reshape(n, t, HEADS, SIZE // HEADS).swapaxes(1, 2)
                for part in (self.query, self.key, self.value)
            )
            y = attend(q, k, v).swapaxes(1, 2).reshape(n, t, SIZE)
            x = self.norm1(x + self.out(y))
            return self.norm2(x + self.down(gelu(self.up(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.head = nn.Embedding(40, SIZE), nn.Linear(SIZE, 3)
            self.one, self.two = Layer(), Layer()

        def forward(self, words):
            return self.head(self.two(self.one(self.words(words)))[:, 0])

    return Model()


def test_gradients_are_as_near_as_those_of_autocast(monkeypatch):
    import torch

    monkeypatch.setattr(fused, "cast", lambda x, dtype: x.astype(dtype))
    monkeypatch.setattr(layout, "last", lambda x: x)
    monkeypatch.setattr(mixed, "cast_all", cast_all)
    monkeypatch.setattr(attended, "attended_for_gradient", lambda *given: None)
    monkeypatch.setattr(summed, "add_norm", add_norm)
    monkeypatch.setattr(rounded, "cast_all", cast_all)
    functional, ratios = torch.nn.functional, []
    for seed in range(8):
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        words, classes = rng.integers(0, 40, (6, 12)), rng.integers(0, 3, 6)
        attend = functional.scaled_dot_product_attention
        theirs = encoder(torch.nn, functional.gelu, attend)
        ours = encoder(nn, ops.gelu, ops.scaled_dot_product_attention)
        ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
        ours = ours.to("cpu:autodiff")

        def slopes(half, theirs=theirs, words=words, classes=classes):
            theirs.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                made = theirs(torch.from_numpy(words))
                loss = torch.nn.functional.cross_entropy(
                    made, torch.from_numpy(classes)
                )
            loss.backward()
            return {k: p.grad.numpy().copy() for k, p in theirs.named_parameters()}

        exact, other = slopes(False), slopes(True)
        follow = Following(False, Mixed(np.dtype(ml_dtypes.bfloat16)))
        with follow.running():
            loss = nn.cross_entropy(ours(Tensor(words)), Tensor(classes))
            found = loss.backward()
        own = {k: found.get(p).numpy() for k, p in ours.named_parameters()}

        def apart(made, exact=exact):
            return sum(((made[k] - v) ** 2).sum() for k, v in exact.items())

        ratios.append(np.sqrt(apart(own) / apart(other)))
    assert np.exp(np.mean(np.log(ratios))) < 1.15, ratios
