"""Parts with counted names keep them and are made and called by loops."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

from burnish import Tensor
from burnish.codegen.pipeline import generate
from tests.harness.imported import imported

torch = pytest.importorskip("torch")

from tests.harness.torch_exports import exported  # noqa: E402

pytestmark = pytest.mark.oracle


class Dense(torch.nn.Module):
    def __init__(self, features, growth):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(features)
        self.conv = torch.nn.Conv2d(features, growth, 3, padding=1, bias=False)

    def forward(self, x):
        return self.conv(torch.relu(self.norm(x)))


class DenseBlock(torch.nn.ModuleDict):
    def __init__(self, features, count):
        super().__init__(
            {f"denselayer{i + 1}": Dense(features + 4 * i, 4) for i in range(count)}
        )

    def forward(self, x):
        features = [x]
        for layer in self.values():
            features.append(layer(torch.cat(features, 1)))
        return torch.cat(features, 1)


class Half(torch.nn.Sequential):
    def __init__(self, features):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(features)
        self.relu = torch.nn.ReLU()
        self.conv = torch.nn.Conv2d(features, features // 2, 1, bias=False)
        self.pool = torch.nn.AvgPool2d(2)


class DenseNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        parts = [("conv0", torch.nn.Conv2d(3, 8, 3, padding=1, bias=False))]
        parts += [("relu0", torch.nn.ReLU()), ("denseblock1", DenseBlock(8, 3))]
        parts += [("transition1", Half(20)), ("denseblock2", DenseBlock(10, 4))]
        parts += [("transition2", Half(26)), ("denseblock3", DenseBlock(13, 5))]
        self.features = torch.nn.Sequential(OrderedDict(parts))
        self.classifier = torch.nn.Linear(33, 5)

    def forward(self, x):
        return self.classifier(torch.relu(self.features(x)).mean((2, 3)))


class DenseList(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 6, 1)
        self.layers = torch.nn.ModuleList(Dense(6 + 4 * i, 4) for i in range(4))

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Named(torch.nn.Module):
    """An OrderedDict given to a Sequential, names that count from 0."""

    def __init__(self):
        super().__init__()
        blocks = {f"encoder_layer_{i}": Block(12) for i in range(5)}
        self.layers = torch.nn.Sequential(OrderedDict(blocks))
        self.heads = torch.nn.Sequential(OrderedDict(head=torch.nn.Linear(12, 4)))

    def forward(self, x):
        return self.heads(self.layers(x))


class Stages(torch.nn.Module):
    """Names with a dash, the first part unlike the others."""

    def __init__(self):
        super().__init__()
        parts = {f"block1-{i}": torch.nn.Linear(6, 6) for i in range(1, 4)}
        parts = {"block1-0": torch.nn.Linear(12, 6, bias=False)} | parts
        self.stage = torch.nn.Sequential(OrderedDict(parts))
        self.fc = torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.stage(x)))


class Residual(torch.nn.Module):
    def __init__(self, channels, grown):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, grown, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(grown)

    def forward(self, x):
        return torch.cat([x, torch.relu(self.norm(self.conv(x)))], 1)


class Runs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        parts = [torch.nn.Linear(12, 6), *(torch.nn.Linear(6, 6) for _ in range(4))]
        self.rows = torch.nn.Sequential(*parts)
        growing = (Residual(3 + 2 * i, 2) for i in range(5))
        self.images = torch.nn.Sequential(*growing, torch.nn.Conv2d(13, 12, 1))

    def forward(self, x):
        return self.rows(self.images(x).mean((2, 3)))


class Headed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3)
        parts = [torch.nn.MaxPool2d(2), torch.nn.AdaptiveAvgPool2d(1)]
        self.classifier = torch.nn.Sequential(
            *parts, torch.nn.Flatten(), torch.nn.Linear(8, 5)
        )

    def forward(self, x):
        return self.classifier(torch.relu(self.stem(x)))


IMAGE, ROWS = (2, 3, 8, 8), (2, 7, 12)
CASES = {
    "dense blocks": (
        DenseNet,
        IMAGE,
        [
            'f"denselayer{i + 1}": Dense',
            "ayer in self.values():\n            x = ops.concat([x, ",
            "lock(3, 8)",
            "lock(5, 13)",
        ],
    ),
    "a dense list": (
        DenseList,
        IMAGE,
        ["(6 + 4 * i) for i in range(4)]", "for layer in self.layers:"],
    ),
    "a Sequential of names": (
        Named,
        ROWS,
        ['{f"encoder_layer_{i}": ', "for i in range(depth)}"],
    ),
    "runs in a Sequential": (
        Runs,
        IMAGE,
        ["*[nn.Linear(6, 6) for _ in range(4)]", "(3 + 2 * i) for i in range(5)"],
    ),
    "classes behind pools": (
        Headed,
        IMAGE,
        ["__init__(self, classes=5)", "nn.Linear(8, classes)"],
    ),
    "names with a dash": (Stages, ROWS, []),
}


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_counted_names(tmp_path, name, dynamo):
    kind, shape, lines = CASES[name]
    torch.manual_seed(0)
    model = kind().eval()
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            torch.nn.init.uniform_(tensor, 0.5, 1.5)
    x = torch.randn(shape)
    path = exported(model, (x,), tmp_path / "model.onnx", dynamo)
    made = generate(path)
    text = made.text
    for line in lines:
        assert line in text
    y = imported(made, tmp_path)(Tensor(x.numpy())).numpy()
    np.testing.assert_allclose(y, model(x).detach().numpy(), rtol=2e-4, atol=1e-3)
