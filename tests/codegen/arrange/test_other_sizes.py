"""Generated classes with other sizes than the file's run and learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from burnish import Tensor
from burnish.codegen.pipeline import generate, write
from burnish.optim import Adam
from tests.harness.imported import load_class

torch = pytest.importorskip("torch", reason="pip install 'burnish[oracle]'")

from tests.harness.torch_exports import export  # noqa: E402

nn = torch.nn

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

DIM, HEADS, VOCAB = 16, 2, 30


WAYS = ("apart", "in a row", "in each head", "one of each in a head")


class Attention(nn.Module):
    """way: where queries, keys and values are in what the layers make."""

    def __init__(self, way: str):
        super().__init__()
        self.way = way
        if way == "apart":
            self.q, self.k, self.v = (nn.Linear(DIM, DIM) for _ in range(3))
        else:
            self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, _ = x.shape
        q, k, v = (part.transpose(1, 2) for part in self.parts(x, batch))
        x = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(x.transpose(1, 2).reshape(batch, time, DIM))

    def parts(self, x: torch.Tensor, batch: int) -> tuple[torch.Tensor, ...]:
        size = DIM // HEADS
        if self.way == "apart":
            made = (self.q(x), self.k(x), self.v(x))
            return tuple(part.view(batch, -1, HEADS, size) for part in made)
        x = self.qkv(x)
        if self.way == "in a row":
            made = x.split(DIM, 2)
            return tuple(part.view(batch, -1, HEADS, size) for part in made)
        if self.way == "in each head":
            return x.view(batch, -1, HEADS, 3 * size).split(size, -1)
        x = x.view(batch, -1, HEADS, 3, size)
        return x[..., 0, :], x[..., 1, :], x[..., 2, :]


class Layer(nn.Module):
    def __init__(self, way: str):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attention = Attention(way)
        self.fc1, self.fc2 = nn.Linear(DIM, 40), nn.Linear(40, DIM)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(nn.functional.gelu(self.fc1(self.norm2(x))))


class Pictures(nn.Module):
    """As many patches as features: equal numbers that are not one size."""

    def __init__(self, way: str):
        super().__init__()
        self.patches = nn.Conv2d(3, DIM, 2, 2)
        self.token = nn.Parameter(torch.randn(DIM))
        self.position = nn.Parameter(torch.randn(1, 17, DIM))
        self.layers = nn.ModuleList(Layer(way) for _ in range(3))
        self.head = nn.Linear(DIM, 5)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], 1, -1), x], 1) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, 0])


class Words(nn.Module):
    def __init__(self, way: str):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(Layer(way) for _ in range(3))
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Mixing(Layer):
    """With a depthwise convolution along time: as many groups as features."""

    def __init__(self, way: str):
        super().__init__(way)
        self.conv = nn.Conv1d(40, 40, 3, padding=1, groups=40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        y = self.conv(self.fc1(self.norm2(x)).transpose(1, 2)).transpose(1, 2)
        return x + self.fc2(nn.functional.gelu(y))


class Sounds(nn.Module):
    def __init__(self, way: str):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(Mixing(way) for _ in range(3))
        self.head = nn.Linear(DIM, VOCAB)

    forward = Words.forward


SMALLER = {"dim": 12, "depth": 2, "heads": 3, "hidden": 20}
IDS, FEWER_IDS = torch.arange(10).view(2, 5), SMALLER | {"vocab": 11}
CASES = {
    "pictures": (Pictures, torch.randn(2, 3, 8, 8), SMALLER | {"classes": 4}, (2, 4)),
    "words": (Words, IDS, FEWER_IDS, (2, 5, 11)),
    "sounds": (Sounds, IDS, FEWER_IDS, (2, 5, 11)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_other_sizes_run_and_learn(tmp_path: Path, case: str, way: str) -> None:
    make, given, sizes, shape = CASES[case]
    path = tmp_path / "model.onnx"
    torch.manual_seed(0)
    export(
        make(way).eval(),
        (given,),
        path,
        input_names=["given"],
        output_names=["logits"],
        dynamic_axes={"given": {0: "batch"}},
        opset_version=17,
        dynamo=False,
    )
    source, _ = write(generate(path), tmp_path)
    model = load_class(source)(**sizes).to("cpu:autodiff")
    x = Tensor(given.numpy(), device="cpu:autodiff")
    optimizer, losses = Adam(), []
    for _ in range(12):
        y = model(x)
        assert y.shape == shape
        loss = (y - 1.0).square().mean()
        losses.append(float(loss))
        optimizer.step(1e-2, model, loss.backward())
    assert losses[-1] < losses[0] / 2
    assert np.isfinite(losses).all()
