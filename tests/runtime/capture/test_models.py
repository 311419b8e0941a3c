"""Gallery models and steps of training, captured."""

import importlib

import numpy as np
import pytest

from burnish import Tensor, nn, seed
from burnish.capture import capture
from burnish.errors import CaptureError
from burnish.optim import Adam
from tests.runtime.capture.harness import check, equal

RNG = np.random.default_rng(0)
IDS = RNG.integers(0, 1000, (2, 9))
MODELS = {
    "mnist.mnist": [RNG.normal(size=(4, 28, 28)).astype("f4")],
    "squeezenet.squeezenet_dynamo": [RNG.normal(size=(1, 3, 224, 224)).astype("f4")],
    "resnet18.resnet18_torchscript": [RNG.normal(size=(1, 3, 224, 224)).astype("f4")],
    "minilm.minilm": [IDS, np.ones_like(IDS), np.zeros_like(IDS)],
    "attacut.attacut": [RNG.integers(0, 100, (1, 2, 12))],
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_the_gallery(name):
    seed(0)
    model = importlib.import_module(f"burnish.models.{name}").Model()
    arrays = MODELS[name]
    check(model, arrays, [a[::-1].copy() if a.ndim else a for a in arrays])


def test_a_model_that_decides_by_a_value_is_captured_with_that_value():
    model = importlib.import_module("burnish.models.silero_vad.silero_vad").Model()
    rate = Tensor(np.array(16000))
    sound, state = (
        Tensor(RNG.normal(size=s).astype("f4")) for s in ((2, 576), (2, 2, 128))
    )
    with pytest.raises(
        CaptureError, match=r"silero_vad.py:\d+, in Model.forward: .*bool"
    ):
        capture(model, sound, rate, state)
    program = capture(lambda x, h: model(x, rate, h), sound, state)
    for one, other in zip(
        program(sound * 2, state + 1), model(sound * 2, rate, state + 1), strict=True
    ):
        equal(one, other)


def test_training_steps_of_a_captured_loss():
    """Parameters move between runs; the program reads them as they are."""
    images = RNG.normal(size=(3, 4, 1, 6, 6)).astype("f4")
    labels = RNG.integers(0, 5, (3, 4))

    def fitted(captured):
        seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 3, 3),
            nn.BatchNorm2d(3),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Flatten(),
            nn.Linear(48, 5),
        ).to("cpu:autodiff")

        def loss_of(x, y):
            return nn.cross_entropy(model(x), y)

        step = loss_of
        if captured:
            step = capture(loss_of, Tensor(images[0]), Tensor(labels[0]))
        optimizer, losses = Adam(), []
        for x, y in zip(images, labels, strict=True):
            loss = step(Tensor(x), Tensor(y))
            losses.append(loss.item())
            optimizer.step(1e-2, model, loss.backward())
        return losses, model.state_dict()

    (mine, state), (its, direct) = fitted(True), fitted(False)
    assert mine == its
    for name, array in direct.items():
        np.testing.assert_array_equal(state[name], array, err_msg=name)
