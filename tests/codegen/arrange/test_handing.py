"""Lists whose first part makes something for the others, attentions of two kinds."""

from __future__ import annotations

import numpy as np
import pytest

from burnish import Tensor
from burnish.codegen.pipeline import generate
from tests.harness.imported import imported

torch = pytest.importorskip("torch")

from tests.harness.torch_exports import exported  # noqa: E402

pytestmark = pytest.mark.oracle
DIM, HEADS = 12, 3


class Attention(torch.nn.Module):
    """Rows that see each other, by how far they are apart; causal or not."""

    def __init__(self, has_table=False, causal=False):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(DIM, DIM) for _ in range(3))
        self.table = torch.nn.Embedding(9, HEADS) if has_table else None
        self.causal = causal
        self.out = torch.nn.Linear(DIM, DIM)

    def split(self, x):
        return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)

    def forward(self, x, mask=None):
        if self.table is not None:
            places = torch.arange(x.shape[1])
            apart = (places[:, None] - places).abs().clamp(max=8)
            mask = mask + self.table(apart).permute(2, 0, 1)[None]
        q, k, v = (self.split(part(x)) for part in (self.q, self.k, self.v))
        scores = q @ k.transpose(-1, -2) * (DIM // HEADS) ** -0.5
        if mask is not None:
            scores = scores + mask
        if self.causal:
            keep = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
            scores = scores.masked_fill(~keep, -torch.inf)
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(*x.shape[:2], -1)), mask


class Block(torch.nn.Module):
    def __init__(self, has_table):
        super().__init__()
        self.norm = torch.nn.LayerNorm(DIM)
        self.attention = Attention(has_table)
        self.fc = torch.nn.Linear(DIM, DIM)

    def forward(self, x, mask):
        y, mask = self.attention(self.norm(x), mask)
        return self.fc(x + y), mask


class Handing(torch.nn.Module):
    """The first of the blocks adds a table of distances to the mask of all."""

    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(i == 0) for i in range(3))

    def forward(self, rows, keep):
        mask = torch.where(keep[:, None, None], 0.0, -1e9)
        for block in self.blocks:
            rows, mask = block(rows, mask)
        return rows


class Tower(torch.nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.attention = Attention(causal=causal)
        self.fc = torch.nn.Linear(DIM, DIM)

    def forward(self, x):
        return self.fc(x + self.attention(x)[0])


class Towers(torch.nn.Module):
    """Two towers that differ in what their rows see, and how many rows there are."""

    def __init__(self):
        super().__init__()
        self.images, self.words = Tower(causal=False), Tower(causal=True)

    def forward(self, x, y):
        return self.images(x).mean(1) + self.words(y).mean(1)


ROWS = torch.linspace(-2, 2, 2 * 7 * DIM).sin().view(2, 7, DIM)
KEEP = torch.arange(14).view(2, 7) % 7 > torch.tensor([[-1], [1]])
BOTH = {0: "batch", 1: "time"}
CASES = {
    "handing": (
        Handing,
        (ROWS, KEEP),
        [BOTH, BOTH],
        [
            "i == 0",
            "for i in range(depth)",
            "for block in self.blocks:",
            "mask, x = block(x, mask",
        ],
        1,
    ),
    "towers": (
        Towers,
        (ROWS, ROWS[:, 1:].contiguous()),
        [{0: "batch"}, BOTH],
        ["is_causal=self.causal", "batch, time, _ = x.shape", "causal=True)"],
        1,
    ),
}


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_one_class_of_attention(tmp_path, name, dynamo):
    kind, inputs, axes, lines, count = CASES[name]
    torch.manual_seed(0)
    model = kind().eval()
    path = exported(model, inputs, tmp_path / "model.onnx", dynamo, axes)
    made = generate(path)
    text = made.text
    for line in lines:
        assert line in text, text
    assert text.count("scaled_dot_product_attention(") == count
    y = imported(made, tmp_path)(*(Tensor(x.numpy()) for x in inputs)).numpy()
    np.testing.assert_allclose(y, model(*inputs).detach().numpy(), atol=1e-5)
