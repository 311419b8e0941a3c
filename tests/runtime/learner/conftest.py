"""A small run of a learner that every test can change."""

import numpy as np
import pytest

import burnish
from burnish import data, nn, optim
from burnish.learner import Accuracy, Learner, Loss, Renderer, Supervised

RNG = np.random.default_rng(0)
X = RNG.standard_normal((96, 6)).astype("float32")
Y = (X[:, 0] * X[:, 1] > 0).astype("int64")


class Network(nn.Module):
    def __init__(self):
        self.fc1, self.drop, self.fc2 = (
            nn.Linear(6, 8),
            nn.Dropout(0.3),
            nn.Linear(8, 2),
        )

    def forward(self, x):
        return self.fc2(self.drop(self.fc1(x).relu()))


def train_batches(size=16):
    return data.batches((X[:80], Y[:80]), size, shuffle=4)


def valid_batches():
    return data.batches((X[80:], Y[80:]), 16)


class StopAt(Renderer):
    """Does something after one batch."""

    def __init__(self, split, epoch, iteration, action):
        self.at, self.action = (split, epoch, iteration), action

    def step(self, progress):
        if (progress.split, progress.epoch, progress.iteration) == self.at:
            self.action()


@pytest.fixture
def learner(tmp_path):
    def make(name=None, **options):
        burnish.seed(1)
        options = {
            "step": Supervised(nn.CrossEntropyLoss()),
            "metrics": [Accuracy(), Loss()],
            "epochs": 4,
            "renderer": Renderer(),
        } | options
        directory = None if name is None else tmp_path / name
        rate = options.pop("rate", optim.Cosine(1e-2, 40))
        model = options.pop("model", None) or Network()
        return Learner(model, optim.Adam(), rate, directory=directory, **options)

    return make


def same(a, b):
    """Whether two modules hold the same bits."""
    b = b.state_dict()
    return all((value == b[key]).all() for key, value in a.state_dict().items())
