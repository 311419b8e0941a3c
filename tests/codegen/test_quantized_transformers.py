"""Quantized transformers have the modules of their float files.

onnxruntime's quantizer sorts all nodes anew and makes products without the exporter's
metadata. Weights have 7 bits: on processors without VNNI its sums of 8 bits saturate.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnish.codegen.output.generated import Options
from burnish.codegen.pipeline import generate, write
from tests.codegen.test_quantized_oracle import Feeds, classes, run
from tests.harness.imported import load_class
from tests.harness.strip import stripped

pytestmark = pytest.mark.oracle


def _net(torch: Any) -> Any:
    """Patches of an image, which an encoder and a decoder of three layers each read."""
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q_proj, self.v_proj = nn.Linear(16, 16), nn.Linear(16, 16)
            self.k_proj = nn.Linear(16, 16, bias=False)  # as Whisper has it
            self.out_proj = nn.Linear(16, 16)

        def forward(self, x: Any, memory: Any) -> Any:
            batch, time, _ = x.shape
            q, k, v = (
                y.reshape(batch, y.shape[1], 2, 8).transpose(1, 2)
                for y in (self.q_proj(x), self.k_proj(memory), self.v_proj(memory))
            )
            weights = (q @ k.transpose(2, 3) * 8**-0.5).softmax(-1)
            return self.out_proj((weights @ v).transpose(1, 2).reshape(batch, time, 16))

    class Layer(nn.Module):
        def __init__(self, crosses: bool) -> None:
            super().__init__()
            self.attn_norm, self.attn = nn.LayerNorm(16), Attention()
            self.crosses = crosses
            if crosses:
                self.cross_norm, self.cross = nn.LayerNorm(16), Attention()
            self.mlp_norm = nn.LayerNorm(16)
            self.fc1, self.fc2 = nn.Linear(16, 32), nn.Linear(32, 16)

        def forward(self, x: Any, memory: Any) -> Any:
            y = self.attn_norm(x)
            x = x + self.attn(y, y)
            if self.crosses:
                x = x + self.cross(self.cross_norm(x), memory)
            return x + self.fc2(self.fc1(self.mlp_norm(x)).relu())

    class Patches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.projection = nn.Conv2d(3, 16, 4, 4)

        def forward(self, x: Any) -> Any:
            return self.projection(x).flatten(2).transpose(1, 2)

    class Stack(nn.Module):
        def __init__(self, crosses: bool) -> None:
            super().__init__()
            self.layers = nn.ModuleList(Layer(crosses) for _ in range(3))
            self.norm = nn.LayerNorm(16)

        def forward(self, x: Any, memory: Any = None) -> Any:
            for layer in self.layers:
                x = layer(x, memory)
            return self.norm(x)

    class Embeddings(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = Patches()
            self.cls = nn.Parameter(torch.randn(1, 1, 16))

        def forward(self, x: Any) -> Any:
            first = self.cls.expand(x.shape[0], -1, -1)
            return torch.cat([first, self.patches(x)], 1)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embeddings, self.encoder = Embeddings(), Stack(False)
            self.embed, self.decoder = nn.Embedding(50, 16), Stack(True)

        def forward(self, image: Any, ids: Any) -> Any:
            memory = self.encoder(self.embeddings(image))
            return self.decoder(self.embed(ids), memory)

    torch.manual_seed(0)
    net = Net()
    for name, weight in net.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(weight)
    return net.eval()


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("dynamo", [True, False])
def test_dynamic_quantization_keeps_the_modules(
    tmp_path: Path, dynamo: bool, per_channel: bool
) -> None:
    torch = pytest.importorskip("torch")
    tools = pytest.importorskip("onnxruntime.quantization")
    from tests.harness.torch_exports import exported

    source, path = tmp_path / "source.onnx", tmp_path / "small.onnx"
    inputs = [torch.randn(2, 3, 16, 16), torch.randint(50, (2, 5))]
    axes = [{0: "batch"}, {0: "batch", 1: "time"}]
    exported(_net(torch), inputs, source, dynamo, axes)
    tools.quantize_dynamic(
        str(source), str(path), per_channel=per_channel, reduce_range=True
    )
    made, twin = generate(path), generate(source)
    assert made.text.count("for layer in self.layers:") == 2
    assert classes(made.text) == classes(twin.text)
    assert made.text.count("\n") == twin.text.count("\n")
    layers = [sorted(_layers(text)) for text in (made.text, twin.text)]
    assert layers[0] == layers[1]
    write(made, tmp_path)
    kind = load_class(tmp_path / f"{made.name}.py")
    model = kind.from_file(tmp_path / f"{made.name}.safetensors")
    names = [each.name for each in _inputs(path)]
    feed = dict(zip(names, (x.numpy() for x in inputs), strict=True))
    got, want = model(*feed.values()).numpy(), run(path, feed)
    np.testing.assert_allclose(got, want, atol=2e-6 * np.abs(want).max())


@pytest.mark.parametrize("bare", [False, True])
def test_dequantized_static_files_have_the_modules(tmp_path: Path, bare: bool) -> None:
    """The encoder is before the decoder again, also where no node has a scope."""
    torch = pytest.importorskip("torch")
    tools = pytest.importorskip("onnxruntime.quantization")
    import onnx

    from tests.harness.torch_exports import exported

    source, path = tmp_path / "source.onnx", tmp_path / "small.onnx"
    inputs = [torch.randn(2, 3, 16, 16), torch.randint(50, (2, 5))]
    axes = [{0: "batch"}, {0: "batch", 1: "time"}]
    exported(_net(torch), inputs, source, False, axes)
    if bare:
        onnx.save(stripped(onnx.load(source)), source)
    names = [each.name for each in _inputs(source)]
    feed = dict(zip(names, (x.numpy() for x in inputs), strict=True))
    reader = type("Reader", (Feeds, tools.CalibrationDataReader), {})(feed)
    tools.quantize_static(
        str(source), str(path), reader, activation_type=tools.QuantType.QUInt8
    )
    made, twin = generate(path, Options(dequantize=True)), generate(source)
    assert classes(made.text) == classes(twin.text)
    assert made.text.count("for layer in self.") == twin.text.count(
        "for layer in self."
    )
    layers = [sorted(_layers(text)) for text in (made.text, twin.text)]
    assert layers[0] == layers[1]


def _layers(text: str) -> list[str]:
    """The layers that all classes make, without their names."""
    return re.findall(r"self\.\w+ = (nn\.\w+\(.*)", text)


def _inputs(path: Path) -> Any:
    import onnx

    return onnx.load(path).graph.input
