"""Gallery models give the same numbers and gradients on a GPU, where there is one."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from burnish import Device, Tensor, seed
from burnish.errors import DeviceError

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.standard_normal((2, 3, 224, 224), np.float32)
TOKENS = RANDOM.integers(0, 1000, (2, 9))

INPUTS: dict[str, tuple[Any, ...]] = {
    "mnist.mnist": (RANDOM.standard_normal((4, 28, 28), np.float32),),
    "squeezenet.squeezenet_dynamo": (IMAGES,),
    "resnet18.resnet18_torchscript": (IMAGES,),
    "open_nsfw.open_nsfw": (IMAGES.transpose(0, 2, 3, 1),),
    "minilm.minilm": (TOKENS, np.ones_like(TOKENS), np.zeros_like(TOKENS)),
    "attacut.attacut": (RANDOM.integers(0, 100, (1, 2, 12)),),
    "silero_vad.silero_vad": (
        RANDOM.standard_normal((2, 576), np.float32),
        np.int64(16000),
        np.zeros((2, 2, 128), np.float32),
    ),
}


@pytest.fixture(scope="session")
def cuda() -> Device:
    """The first GPU, or a skipped test."""
    device = Device("cuda")
    try:
        device.put(np.zeros(1))
    except DeviceError as error:
        pytest.skip(str(error))
    return device


@pytest.mark.parametrize("name", INPUTS)
def test_a_model_on_the_gpu(name: str, cuda: Device) -> None:
    seed(0)
    module = importlib.import_module(f"burnish.models.{name}")
    near = module.Model().to("cpu")
    inputs = INPUTS[name]
    expected = outputs(near(*inputs))
    far = near.fork(cuda)
    for mine, theirs in zip(outputs(far(*inputs)), expected, strict=True):
        assert mine.device is cuda
        close(mine.numpy(), theirs.numpy())

    near, far = near.fork("cpu:autodiff"), near.fork(cuda.autodiff())
    for part in (
        *dict(near.named_modules()).values(),
        *dict(far.named_modules()).values(),
    ):
        if type(part).__name__ == "Dropout":
            part.p = 0.0  # masks are drawn anew each time
    wanted, found = gradients(near, inputs), gradients(far, inputs)
    assert found.keys() == wanted.keys()
    # As one vector: some gradients are 0 but for rounding (a key's bias under softmax),
    # and a value on a ReLU's kink may fall to either side.
    size = sum(float((g.numpy() ** 2).sum()) for g in wanted.values())
    off = sum(
        float(((found[path].numpy() - g.numpy()) ** 2).sum())
        for path, g in wanted.items()
    )
    assert off < 1e-3 * size


def outputs(result: Any) -> tuple[Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)


def gradients(model: Any, inputs: tuple[Any, ...]) -> dict[str, Tensor]:
    """Gradients of a weighted sum of the outputs; unused parameters are left out."""
    draw = np.random.default_rng(1)
    first, *others = [
        (y * Tensor(draw.standard_normal(y.shape, np.float32), device=y.device)).sum()
        for y in outputs(model(*inputs))
    ]
    found = sum(others, first).backward()
    by_path = {path: param.grad(found) for path, param in model.named_parameters()}
    return {path: g for path, g in by_path.items() if g is not None}


def close(mine: np.ndarray, theirs: np.ndarray) -> None:
    scale = float(np.abs(theirs).max()) or 1.0
    np.testing.assert_allclose(mine / scale, theirs / scale, atol=1e-5)
