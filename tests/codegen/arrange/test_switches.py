"""Modules of one kind that lack some parts are one class with switches."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from burnish import Tensor
from burnish.codegen.pipeline import Options, generate, write
from tests.harness.imported import load_class

torch = pytest.importorskip("torch")
ort = pytest.importorskip("onnxruntime")

from tests.harness.torch_exports import exported  # noqa: E402

pytestmark = pytest.mark.oracle
nn = torch.nn


def stage(*parts):
    return nn.Sequential(*(part for part in parts if part is not None))


class Squeeze(nn.Module):
    def __init__(self, channels, squeeze):
        super().__init__()
        self.fc1 = nn.Conv2d(channels, squeeze, 1)
        self.fc2 = nn.Conv2d(squeeze, channels, 1)

    def forward(self, x):
        y = torch.relu(self.fc1(x.mean((2, 3), keepdim=True)))
        return torch.sigmoid(self.fc2(y)) * x


class Inverted(nn.Module):
    """A block as mobile networks have it: every part of it is there or not."""

    def __init__(self, before, hidden, after, kernel, stride, squeeze, act):
        super().__init__()
        self.residual = before == after
        wide = nn.Conv2d(before, hidden, 1)
        deep = nn.Conv2d(
            hidden, hidden, kernel, stride, kernel // 2, groups=hidden, bias=False
        )
        self.block = stage(
            stage(wide, act()) if hidden != before else None,
            stage(deep, act()),
            Squeeze(hidden, squeeze) if squeeze else None,
            stage(nn.Conv2d(hidden, after, 1)),
        )

    def forward(self, x):
        return x + self.block(x) if self.residual else self.block(x)


class Mobile(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = stage(
            Inverted(4, 4, 4, 3, 1, 0, nn.ReLU),
            Inverted(4, 12, 6, 3, 2, 0, nn.ReLU),
            Inverted(6, 18, 6, 5, 1, 5, nn.ReLU),
            Inverted(6, 20, 8, 3, 2, 0, nn.Hardswish),
            Inverted(8, 24, 8, 5, 1, 7, nn.Hardswish),
            Inverted(8, 16, 8, 3, 1, 0, nn.Hardswish),
        )
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Windows(nn.Module):
    """Attention in windows of 4, which every other block shifts by 2."""

    def __init__(self, dim, heads, windows, shift):
        super().__init__()
        self.dim, self.heads, self.windows, self.shift = dim, heads, windows, shift
        self.qkv = nn.Linear(dim, 3 * dim)
        self.bias = nn.Parameter(torch.randn(1, heads, 16, 16))
        self.proj = nn.Linear(dim, dim)
        if shift:
            low = torch.randint(0, 2, (1, windows**2, 1, 16, 16)) * -100.0
            self.register_buffer("mask", low)

    def forward(self, x):
        n, size = self.windows, 4 * self.windows
        if self.shift:
            x = torch.roll(x, (-2, -2), (1, 2))
        x = x.view(-1, n, 4, n, 4, self.dim).permute(0, 1, 3, 2, 4, 5)
        x = self.qkv(x.reshape(-1, 16, self.dim))
        x = x.reshape(-1, 16, 3, self.heads, self.dim // self.heads)
        q, k, v = x.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q * (self.dim // self.heads) ** -0.5 @ k.transpose(-2, -1) + self.bias
        if self.shift:
            scores = scores.view(-1, n * n, self.heads, 16, 16) + self.mask
            scores = scores.view(-1, self.heads, 16, 16)
        x = (scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, 16, self.dim)
        x = self.proj(x).view(-1, n, n, 4, 4, self.dim).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(-1, size, size, self.dim)
        return torch.roll(x, (2, 2), (1, 2)) if self.shift else x


class WindowBlock(nn.Module):
    def __init__(self, dim, heads, windows, shift):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attn = Windows(dim, heads, windows, shift)

    def forward(self, x):
        return x + self.attn(self.norm(x))


class Merge(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        batch, size, _, dim = x.shape
        x = x.reshape(batch, size // 2, 2, size // 2, 2, dim).transpose(2, 3)
        return self.reduction(x.reshape(batch, size // 2, size // 2, 4 * dim))


class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = stage(
            stage(WindowBlock(8, 2, 4, False), WindowBlock(8, 2, 4, True)),
            Merge(8),
            stage(WindowBlock(16, 4, 2, False), WindowBlock(16, 4, 2, True)),
            Merge(16),
            stage(WindowBlock(32, 8, 1, False), WindowBlock(32, 8, 1, False)),
        )

    def forward(self, x):
        return self.stages(x.permute(0, 2, 3, 1)).mean((1, 2))


class Apart(nn.Module):
    """Two classes of one name, of which neither is the other without some parts."""

    def __init__(self):
        super().__init__()
        self.blocks = stage(*(self.block(which) for which in (0, 1, 0, 1)))

    @staticmethod
    def block(which):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.one = nn.Conv2d(4, 4, 3, padding=1)
                self.two = nn.Conv2d(4, 4, 1)

            def forward(self, x):
                if which:
                    return torch.tanh(self.two(x) * self.one(torch.exp(-x * x)))
                return self.two(torch.relu(self.one(x))) - x

        return Block()

    def forward(self, x):
        return self.blocks(x)


class Branch(nn.Module):
    """Two layers or the first alone; its window lies or stands."""

    def __init__(self, kernel, padding, is_deep):
        super().__init__()
        self.one = nn.Conv2d(4, 4, kernel, padding=padding)
        self.two = nn.Conv2d(4, 4, 3, padding=1) if is_deep else None

    def forward(self, x):
        x = torch.relu(self.one(x))
        return x if self.two is None else torch.relu(self.two(x))


class Windowed(nn.Module):
    def __init__(self):
        super().__init__()
        rows = (((1, 3), (0, 1), True), ((3, 1), (1, 0), False)) * 2
        self.blocks = stage(*(Branch(*row) for row in rows))

    def forward(self, x):
        return self.blocks(x)


class Widening(nn.Module):
    """A block as BlazeFace has it: its shortcut gets the channels that it lacks."""

    def __init__(self, before, after):
        super().__init__()
        self.lacking = after - before
        self.conv = nn.Conv2d(before, after, 3, padding=1)
        self.mix = nn.Conv2d(after, after, 1)

    def forward(self, x):
        y = self.mix(torch.relu(self.conv(x)))
        if self.lacking:
            x = nn.functional.pad(x, (0, 0, 0, 0, 0, self.lacking))
        return torch.relu(y + x)


class Widened(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = stage(*(Widening(a, b) for a, b in ((4, 4), (4, 7), (7, 9))))

    def forward(self, x):
        return self.blocks(x)


MODELS = [
    *((Mobile, 4, 16), (Pyramid, 8, 16), (Apart, 4, 6), (Windowed, 4, 6)),
    (Widened, 4, 6),
]


def made(model, folder, dynamo, **options):
    """The file of a model whose weights differ, its source, and an input."""
    torch.manual_seed(0)
    model = model.eval()
    for parameter in model.parameters():  # no two alike, which exporters merge
        nn.init.normal_(parameter, std=0.3)
    _, channels, size = next(row for row in MODELS if row[0] is type(model))
    x = torch.randn(2, channels, size, size)
    path = folder / "model.onnx"
    exported(model, [x], path, dynamo)
    return path, generate(path, Options(name="generated", **options)), x.numpy()


def classes(text):
    return [each for each in ast.parse(text).body if isinstance(each, ast.ClassDef)]


@pytest.mark.parametrize(
    ("dynamo", "flat"), [(True, False), (False, False), (False, True)]
)
@pytest.mark.parametrize("kind", [row[0] for row in MODELS])
def test_the_numbers_and_keys_are_those_of_the_file(tmp_path, kind, dynamo, flat):
    model = kind()
    path, source, x = made(model, tmp_path, dynamo, flat=flat)
    (wanted,) = ort.InferenceSession(path).run(None, {"x": x})
    code, weights = write(source, tmp_path)[:2]
    found = load_class(code).from_file(weights)(Tensor(x))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-5)
    named = {name for name, _ in model.named_parameters()}
    if not flat and kind is not Pyramid:  # a mask of its own is no parameter
        assert {each.path for each in source.weights} == named


@pytest.mark.parametrize("dynamo", [True, False])
def test_blocks_that_lack_parts_are_one_class(tmp_path, dynamo):
    _, source, _ = made(Mobile(), tmp_path, dynamo)
    squeeze = "squeeze" if dynamo else "block"  # the older exporter tells no class
    assert len(classes(source.text)) == 3
    for line in (
        "self.residual = in_channels == out_channels",
        "if self.residual:",
        "if in_channels != hidden_channels",
        f"if {squeeze}_channels",
        "padding=kernel_size // 2,",
        "activation(),",
        f"(8, 24, 5, 8, nn.Hardswish, {squeeze}_channels=7)",
    ):
        assert line in source.text


@pytest.mark.parametrize("dynamo", [True, False])
def test_a_shift_is_a_switch(tmp_path, dynamo):
    _, source, _ = made(Pyramid(), tmp_path, dynamo)
    assert len(classes(source.text)) == 4
    assert "shift=False" in source.text
    assert "        if self.shift:\n            x = x.roll((-2, -2), (1, 2))\n" in (
        source.text
    )
    assert "if shift else None" in " ".join(source.text.split())
    assert "(16, 4, 2, shift=True)" in source.text


@pytest.mark.parametrize("dynamo", [True, False])
def test_a_size_that_a_condition_asks_for_is_held_once(tmp_path, dynamo):
    _, source, _ = made(Widened(), tmp_path, dynamo)
    assert len(classes(source.text)) == 2
    assert source.text.count("self.padding = ") == 1
    assert "        if self.padding:\n" in source.text


@pytest.mark.parametrize("dynamo", [True, False])
def test_what_is_not_alike_stays_apart(tmp_path, dynamo):
    _, source, _ = made(Apart(), tmp_path, dynamo)
    assert len(classes(source.text)) == 3
    assert " if " not in source.text
