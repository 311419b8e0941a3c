"""Quantized files: the float model's structure, and onnxruntime's numbers.

Compared is onnxruntime without graph optimizations: so DequantizeLinear, Conv and
QuantizeLinear are what the file says, and MatMulInteger sums whole numbers. Weights of
operators on whole numbers have 7 bits here: on processors without VNNI onnxruntime's
sums of 8 bits saturate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from burnish.codegen.output.generated import Options
from burnish.codegen.pipeline import generate, write
from burnish.quantization import Calibration, Level, Quantizer, QuantScheme
from tests.harness.imported import load_class

pytestmark = pytest.mark.oracle

KINDS = ("qdq", "channels", "sixteen", "operators", "dynamic", "dynamic_channels")
NETS = ("images", "words", "sequences")
RNG = np.random.default_rng(0)


def _images(nn: Any) -> tuple[Any, dict[str, np.ndarray]]:
    class Block(nn.Module):
        def __init__(self, ins: int, outs: int, stride: int):
            super().__init__()
            self.conv1 = nn.Conv2d(ins, outs, 3, stride, 1)
            self.conv2 = nn.Conv2d(outs, outs, 3, 1, 1, groups=2)
            self.down = nn.Conv2d(ins, outs, 1, stride)

        def forward(self, x: Any) -> Any:
            return (self.conv2(self.conv1(x).relu()) + self.down(x)).relu()

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 3, padding=1)
            self.layers = nn.ModuleList([Block(8, 8, 1), Block(8, 16, 2)])
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.fc = nn.Linear(16, 10)

        def forward(self, x: Any) -> Any:
            x = self.stem(x).relu()
            for layer in self.layers:
                x = layer(x)
            return self.fc(self.pool(x).flatten(1))

    return Net(), {"x": RNG.normal(size=(2, 3, 8, 8)).astype(np.float32)}


def _words(nn: Any) -> tuple[Any, dict[str, np.ndarray]]:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
            self.dense = nn.Linear(16, 16)
            self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
            self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

        def forward(self, x: Any) -> Any:
            b, t, d = x.shape
            q, k, v = (
                f(x).reshape(b, t, 2, d // 2).transpose(1, 2)
                for f in (self.query, self.key, self.value)
            )
            weights = (q @ k.transpose(2, 3) * 8**-0.5).softmax(-1)
            y = (weights @ v).transpose(1, 2).reshape(b, t, d)
            x = self.norm1(self.dense(y) + x)
            return self.norm2(self.down(self.up(x).relu()) + x)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(50, 16)
            self.layers = nn.ModuleList([Layer() for _ in range(3)])
            self.head = nn.Linear(16, 5)

        def forward(self, x: Any) -> Any:
            x = self.embed(x)
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    return Net(), {"x": RNG.integers(0, 50, (2, 6))}


def _sequences(nn: Any) -> tuple[Any, dict[str, np.ndarray]]:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(30, 8)
            self.lstm = nn.LSTM(8, 12, 2, bidirectional=True)
            self.head = nn.Linear(24, 4)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(self.embed(x))[0])

    return Net(), {"x": RNG.integers(0, 30, (5, 1))}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The float file of each net, and its input."""
    torch = pytest.importorskip("torch")
    from tests.harness.torch_exports import export

    folder = tmp_path_factory.mktemp("files")
    made: dict[str, Any] = {"folder": folder}
    for name, build in (
        ("images", _images),
        ("words", _words),
        ("sequences", _sequences),
    ):
        torch.manual_seed(0)
        net, feed = build(torch.nn)
        path = folder / f"{name}.onnx"
        export(
            net.eval(),
            tuple(map(torch.from_numpy, feed.values())),
            path,
            input_names=["x"],
            output_names=["y"],
            opset_version=17,
            dynamo=False,
        )
        made[name] = path, feed
    return made


class Feeds:
    """What calibrates a static file."""

    def __init__(self, feed: dict[str, np.ndarray]):
        self.left: Iterator[Any] = iter([feed])

    def get_next(self) -> Any:
        return next(self.left, None)


def quantized(files: dict[str, Any], net: str, kind: str) -> tuple[Path, Any]:
    tools = pytest.importorskip("onnxruntime.quantization")
    source, feed = files[net]
    path = files["folder"] / f"{net}_{kind}.onnx"
    if path.exists():
        return path, feed
    if kind.startswith("dynamic"):
        tools.quantize_dynamic(
            str(source), str(path), per_channel=kind != "dynamic", reduce_range=True
        )
        return path, feed
    form = tools.QuantFormat.QOperator if kind == "operators" else tools.QuantFormat.QDQ
    activations = {"channels": "QInt8", "sixteen": "QUInt16"}.get(kind, "QUInt8")
    tools.quantize_static(
        str(source),
        str(path),
        type("Reader", (Feeds, tools.CalibrationDataReader), {})(feed),
        quant_format=form,
        per_channel=kind == "channels",
        reduce_range=kind == "operators",
        activation_type=getattr(tools.QuantType, activations),
        extra_options={"UseQDQContribOps": kind == "sixteen"},
    )
    return path, feed


def run(path: Path, feed: dict[str, np.ndarray]) -> np.ndarray:
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.graph_optimization_level = level
    result: np.ndarray = runtime.InferenceSession(str(path), options).run(None, feed)[0]
    return result


def _model(folder: Path, name: str) -> Any:
    kind = load_class(folder / f"{name}.py")
    return kind.from_file(folder / f"{name}.safetensors")


def classes(text: str) -> int:
    return len(re.findall("^class ", text, re.M))


CASES = [(net, kind) for net in NETS for kind in KINDS]


@pytest.mark.parametrize(("net", "kind"), CASES)
def test_a_quantized_file_is_the_float_model_with_small_numbers(
    files: dict[str, Any], tmp_path: Path, net: str, kind: str
) -> None:
    path, feed = quantized(files, net, kind)
    made = generate(path)
    twin = generate(files[net][0])
    dynamic = kind.startswith("dynamic")
    assert classes(made.text) <= classes(twin.text) + (0 if dynamic else 4)
    if dynamic:
        assert made.text.count("\n") == twin.text.count("\n")
    assert "ops.quantize_linear" not in made.text
    assert ".weight.codes" in " ".join(entry.path for entry in made.weights)
    write(made, tmp_path)
    model = _model(tmp_path, made.name)
    got, want = model(*feed.values()).numpy(), run(path, feed)
    if kind in ("qdq", "channels"):
        np.testing.assert_array_equal(got, want)
    # floats are summed in any order, and a step of 16 bits shows in what follows
    limit = 1e-4 if kind == "sixteen" else 2e-6
    np.testing.assert_allclose(got, want, atol=limit * np.abs(want).max())


@pytest.mark.parametrize(("net", "kind"), CASES)
def test_dequantized_is_the_float_model_and_quantizes_to_the_same_integers(
    files: dict[str, Any], tmp_path: Path, net: str, kind: str
) -> None:
    path, feed = quantized(files, net, kind)
    made = generate(path, Options(dequantize=True))
    twin = generate(files[net][0])
    assert classes(made.text) == classes(twin.text)
    assert "FakeQuantize" not in made.text
    write(made, tmp_path)
    model = _model(tmp_path, made.name)
    want = run(files[net][0], feed)
    error = np.abs(model(*feed.values()).numpy() - want).max()
    assert error < 0.2 * np.abs(want).max()
    aware = model.train()
    gradients = aware(*feed.values()).sum().backward()
    assert all(p.grad(gradients) is not None for p in aware.parameters())
    if kind.startswith(("dynamic", "operators")):
        return  # of 7 bits, which no scheme has
    axes = (0, 1) if kind == "channels" else (None,)
    found = {
        key
        for axis in axes
        for key in _codes(
            model, Level.tensor() if axis is None else Level.channel(axis)
        )
    }
    stored = _stored(path)
    assert stored
    assert stored <= found


def _with_modules(rng: np.random.Generator) -> onnx.ModelProto:
    """x + down(relu(up(x))) of two blocks, as torch's newer exporter leaves modules."""
    nodes, held, x = [], [], "x"
    for block in range(2):
        for name, kind, places in (
            ("up", "MatMul", (f"w{block}up",)),
            ("up", "Add", (f"blocks.{block}.up.bias",)),
            ("act", "Relu", ()),
            ("down", "MatMul", (f"blocks.{block}.down.weight",)),
        ):
            node = onnx.helper.make_node(
                kind, [x if name == "up" and kind == "MatMul" else "h", *places], ["h"]
            )
            node.output[0] = f"h{len(nodes)}"
            node.input[0] = x if len(nodes) % 5 == 0 else f"h{len(nodes) - 1}"
            nodes.append(
                (node, ["blocks", f"blocks.{block}", f"blocks.{block}.{name}"])
            )
            shapes = {"MatMul": (8, 16) if name == "up" else (16, 8), "Add": (16,)}
            held += [
                numpy_helper.from_array(
                    rng.normal(size=shapes[kind]).astype(np.float32), place
                )
                for place in places
            ]
        total = onnx.helper.make_node("Add", [x, f"h{len(nodes) - 1}"], [f"x{block}"])
        nodes.append((total, ["blocks", f"blocks.{block}"]))
        x = f"x{block}"
    for number, (node, scopes) in enumerate(nodes):
        node.name = f"n{number}"
        kinds = ["Net", "ModuleList", "Block", "Part"][: len(scopes) + 1]
        for key, value in (
            ("name_scopes", ["", *scopes, node.name]),
            ("class_hierarchy", [*kinds, node.op_type]),
        ):
            node.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=repr(value))
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [node for node, _ in nodes],
        "g",
        [onnx.helper.make_tensor_value_info("x", kind, [3, 8])],
        [onnx.helper.make_tensor_value_info(x, kind, [3, 8])],
        held,
    )
    used = [onnx.helper.make_opsetid("", 18)]
    return onnx.helper.make_model(graph, opset_imports=used, ir_version=10)


@pytest.mark.parametrize("kind", ["dynamic", "four bits"])
def test_products_that_a_quantizer_made_anew_are_in_the_author_s_modules(
    tmp_path: Path, kind: str
) -> None:
    tools = pytest.importorskip("onnxruntime.quantization")
    source, path = tmp_path / "source.onnx", tmp_path / "small.onnx"
    onnx.save(_with_modules(np.random.default_rng(0)), source)
    if kind == "dynamic":
        tools.quantize_dynamic(str(source), str(path))
    else:
        bits = pytest.importorskip("onnxruntime.quantization.matmul_nbits_quantizer")
        work = bits.MatMulNBitsQuantizer(onnx.load(source), block_size=16)
        work.process()
        work.model.save_model_to_file(str(path))
    made, twin = generate(path), generate(source)
    assert "class Block(" in twin.text
    assert made.text.partition("\nclass")[2] == twin.text.partition("\nclass")[2]


@pytest.mark.parametrize("dynamo", [True, False])
def test_layers_that_attend_to_one_memory_are_a_loop_again(
    tmp_path: Path, dynamo: bool
) -> None:
    torch = pytest.importorskip("torch")
    tools = pytest.importorskip("onnxruntime.quantization")
    from tests.harness.torch_exports import exported

    source, path = tmp_path / "source.onnx", tmp_path / "small.onnx"
    inputs = [torch.randn(2, 5, 16), torch.randn(2, 7, 16)]
    axes = [{0: "batch", 1: "time"}, {0: "batch", 1: "length"}]
    exported(_decoder(torch), inputs, source, dynamo, axes)
    tools.quantize_dynamic(str(source), str(path))
    made, twin = generate(path), generate(source)
    assert "for layer in self.layers:" in made.text
    assert classes(made.text) == classes(twin.text)
    assert made.text.count("\n") == twin.text.count("\n")


def _decoder(torch: Any) -> Any:
    """Three layers of queries to one memory; a tool that sorts nodes mixes theirs."""

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name in ("q", "k", "v", "out"):
                linear = torch.nn.Linear(16, 16)
                torch.nn.init.normal_(linear.bias)
                setattr(self, f"{name}_proj", linear)
            self.norm = torch.nn.LayerNorm(16)

        def forward(self, x: Any, memory: Any) -> Any:
            q, k, v = self.q_proj(x), self.k_proj(memory), self.v_proj(memory)
            weights = torch.softmax(q @ k.transpose(1, 2) / 4, -1)
            return self.norm(x + self.out_proj(weights @ v))

    class Decoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(Layer() for _ in range(3))

        def forward(self, x: Any, memory: Any) -> Any:
            for layer in self.layers:
                x = layer(x, memory)
            return x

    torch.manual_seed(0)
    return Decoder().eval()


def _codes(model: Any, level: Level) -> set[tuple[int, ...]]:
    scheme = QuantScheme("q8s", level=level)
    small = model.fork("cpu").quantize_weights(Quantizer(Calibration.min_max(), scheme))
    held = (p.held for p in small.parameters() if p.scheme is not None)
    return {tuple(sorted(np.ravel(h.codes).tolist())) for h in held}


def _stored(path: Path) -> set[tuple[int, ...]]:
    """The symmetric matrices and kernels of a file."""
    arrays = map(numpy_helper.to_array, onnx.load(path).graph.initializer)
    return {
        tuple(sorted(a.ravel().tolist()))
        for a in arrays
        if a.dtype == np.int8 and a.ndim > 1 and a.min() > -128
    }


def _in_order_of(source: Path, path: Path) -> None:
    """Give a file's nodes the order of another's: the tool sorts them anew."""
    model, order = onnx.load(path), {}
    for place, node in enumerate(onnx.load(source).graph.node):
        order |= dict.fromkeys(node.output, place)
    nodes = sorted(model.graph.node, key=lambda node: order[node.output[0]])
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, path)


@pytest.mark.parametrize("symmetric", [True, False])
def test_four_bits_in_blocks_are_the_float_model_with_packed_weights(
    files: dict[str, Any], tmp_path: Path, symmetric: bool
) -> None:
    tools = pytest.importorskip("onnxruntime.quantization.matmul_nbits_quantizer")
    source, feed = files["words"]
    work = tools.MatMulNBitsQuantizer(
        onnx.load(source), block_size=16, is_symmetric=symmetric
    )
    work.process()
    path = tmp_path / "four.onnx"
    work.model.save_model_to_file(str(path))
    _in_order_of(source, path)
    made, twin = generate(path), generate(source)
    assert made.text.partition("\nclass")[2] == twin.text.partition("\nclass")[2]
    write(made, tmp_path)
    model = _model(tmp_path, made.name)
    small = [p for p in model.parameters() if p.scheme is not None]
    assert len(small) == 19
    assert {p.scheme.kind.bits for p in small} == {4}
    want = run(path, feed)
    got = model(*feed.values()).numpy()
    np.testing.assert_allclose(got, want, atol=2e-6 * np.abs(want).max())
