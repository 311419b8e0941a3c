"""`export`: modules as ONNX models, with their names, scopes and dynamic axes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from burnish import Tensor, nn, ops
from burnish.codegen import Exported, Options, export, generate
from burnish.codegen.errors import ExportError, UsageError
from burnish.errors import CaptureError
from burnish.models import _numbers
from burnish.models._gallery import BY_MODULE
from burnish.models.mnist.mnist import Model as Mnist
from tests.harness.exported import arrays, ran

BATCH = {"x": {0: "batch"}}


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class Block(nn.Module):
    def __init__(self, dim: int):
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        return x + ops.gelu(self.fc(self.norm(x)))


class Mlp(nn.Module):
    def __init__(self) -> None:
        self.fc1 = nn.Linear(4, 16)
        self.blocks = [Block(16) for _ in range(3)]
        self.head = nn.Linear(16, 3)

    @nn.accepts(x="float32[batch, 4]")
    def forward(self, x: Tensor) -> Tensor:
        y = ops.relu(self.fc1(x))
        for block in self.blocks:
            y = block(y)
        return self.head(y)


class Only(nn.Module):
    """A function as a module without weights."""

    def __init__(self, function: Any):
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def body(text: str) -> str:
    """A source without what its header says of the file."""
    return re.sub(r'Imported from.*?"""', '"""', text, count=1, flags=re.S)


def test_weights_keep_their_names_and_nodes_their_scopes() -> None:
    model = onnx.load_from_string(export(Mlp(), drawn(2, 4)).to_bytes())
    onnx.checker.check_model(model, full_check=True)
    held = {tensor.name for tensor in model.graph.initializer}
    assert held == {name for name, _ in Mlp().named_parameters()}
    names = [node.name for node in model.graph.node if node.op_type == "Gemm"]
    assert names[1] == "/blocks.0.fc/Gemm"
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.parametrize("batch", [1, 2, 9])
def test_a_module_from_scratch_runs_at_other_sizes(batch: int) -> None:
    module, x = Mlp(), drawn(batch, 4)
    (found,) = ran(export(module, drawn(2, 4)), x)
    np.testing.assert_allclose(found, module(x), rtol=1e-5, atol=1e-6)


def test_the_classes_come_back(tmp_path: Path) -> None:
    export(Mlp(), drawn(2, 4)).save(tmp_path / "mlp.onnx")
    text = generate(tmp_path / "mlp.onnx", Options()).text
    assert "class Block(nn.Module):" in text
    assert "self.blocks = [Block(dim) for _ in range(depth)]" in text
    assert "return x + ops.gelu(self.fc(self.norm(x)))" in text


class Pictures(nn.Module):
    def __init__(self) -> None:
        self.net = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)
        )

    @nn.accepts(x="float32[batch, 3, 8, 8]")
    def forward(self, x: Any) -> Any:
        return self.net(x)


@pytest.mark.parametrize("functions", [False, True])
def test_layers_of_a_sequential_come_back(functions: bool, tmp_path: Path) -> None:
    made = export(Pictures(), drawn(2, 3, 8, 8), functions=functions)
    made.save(tmp_path / "net.onnx")
    text = generate(tmp_path / "net.onnx", Options()).text
    assert text.count("class ") == 1
    assert "nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)" in text


@pytest.mark.parametrize("functions", [False, True])
def test_an_imported_module_runs_as_it_does_here(functions: bool) -> None:
    module = Mnist.from_file()
    made = export(module, drawn(2, 28, 28), functions=functions)
    (found,) = ran(made, drawn(3, 28, 28))
    np.testing.assert_allclose(found, module(drawn(3, 28, 28)), rtol=1e-4, atol=1e-5)


GALLERY = (
    "mnist", "attacut", "open_nsfw", "silero_vad", "squeezenet_torchscript",
    "resnet18_dynamo", "minilm",
)  # fmt: skip


@pytest.mark.parametrize("name", GALLERY)
def test_gallery_sources_come_back(name: str, tmp_path: Path) -> None:
    entry = BY_MODULE[name]
    names = list(_numbers.expected(entry)[0])
    given = next(iter(_numbers.feeds(entry.folder))).values()
    made = export(entry.model()(), *given, outputs=names)
    made.save(tmp_path / f"{name}.onnx")
    options = Options(name=name, typed=entry.typed)
    again = generate(tmp_path / f"{name}.onnx", options).text
    assert body(again) == body(entry.source.read_text("utf-8"))


@pytest.mark.oracle("onnxruntime")  # ONNX's reference has no Gelu inside of a function
def test_modules_become_functions(tmp_path: Path) -> None:
    module = Mlp()
    made = export(module, drawn(2, 4), functions=True)
    model = onnx.load_from_string(made.to_bytes())
    onnx.checker.check_model(model, full_check=True)
    calls = [(node.op_type, node.name) for node in model.graph.node]
    assert calls[0] == ("Linear", "fc1")
    assert calls[2:5] == [("Block", f"blocks.{i}") for i in range(3)]
    assert {f.name for f in model.functions} == {"Linear", "LayerNorm", "Block"}
    np.testing.assert_allclose(
        ran(made, drawn(5, 4))[0], module(drawn(5, 4)), rtol=1e-5, atol=1e-6
    )
    made.save(tmp_path / "mlp.onnx")
    plain = export(module, drawn(2, 4))
    plain.save(tmp_path / "plain.onnx")
    texts = [
        generate(tmp_path / f"{n}.onnx", Options(name="mlp")).text
        for n in ("mlp", "plain")
    ]
    assert body(texts[0]) == body(texts[1])


def test_classes_that_do_other_things_are_other_functions() -> None:
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Conv2d(2, 2, 3, padding=1))
    made = export(module, drawn(1, 1, 8, 8), functions=True)
    model = onnx.load_from_string(made.to_bytes())
    assert [f.name for f in model.functions] == ["Conv2d", "Conv2d_1"]
    np.testing.assert_allclose(
        ran(made, drawn(1, 1, 8, 8))[0], module(drawn(1, 1, 8, 8)), atol=1e-5
    )


def test_the_same_module_gives_the_same_bytes() -> None:
    module = Mlp()
    one, other = (export(module, drawn(2, 4)).to_bytes() for _ in range(2))
    assert one == other


SIZES = {
    "kept": lambda x: x.reshape(x.shape[0], -1, 2),
    "joined": lambda x: x.reshape(x.shape[0] * x.shape[1], 4),
    "moved": lambda x: x.transpose(1, 0, 2).reshape(x.shape[1], -1),
    "counted": lambda x: x + ops.unsqueeze(Tensor.arange(x.shape[1]).float(), 1),
    "mask": lambda x: ops.where(
        Tensor(np.tri(x.shape[1]) > 0), x @ x.transpose(0, 2, 1), 0.0
    ),
    "mean": lambda x: x.sum(axis=1) * (1 / x.shape[1]),
    "first": lambda x: x[:, : x.shape[1] - 1],
    "last": lambda x: x[:, -1],
    "half": lambda x: x[:, : x.shape[1] // 2],
    "twice": lambda x: x.tile((1, 2, 1)).reshape(x.shape[0], 2 * x.shape[1], 4),
    "zeros": lambda x: ops.concat([Tensor.zeros(*x.shape[:2], 1), x], axis=-1),
    "causal": lambda x: ops.scaled_dot_product_attention(x, x, x, is_causal=True),
}


@pytest.mark.parametrize("function", SIZES.values(), ids=SIZES)
def test_sizes_follow_dynamic_axes(function: Any) -> None:
    module = Only(function)
    made = export(module, drawn(2, 6, 4), dynamic={"x": {0: "batch", 1: "time"}})
    onnx.checker.check_model(onnx.load_from_string(made.to_bytes()), full_check=True)
    for shape in ((2, 6, 4), (1, 8, 4), (5, 13, 4), (7, 7, 4)):
        x = drawn(*shape, seed=shape[1])
        (found,) = ran(made, x)
        expected = np.asarray(module(Tensor(x)))
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_conv_of_any_picture() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)
            self.pool = nn.AdaptiveAvgPool2d(1)

        @nn.accepts(x="float32[batch, 3, height, width]")
        def forward(self, x: Tensor) -> Tensor:
            y = self.conv(x)
            z = y.reshape(y.shape[0], 4, y.shape[2] * y.shape[3]).mean(2)
            return z + ops.flatten(self.pool(y), 1)

    module = Net()
    made = export(module, drawn(2, 3, 16, 16))
    for shape in ((1, 3, 9, 30), (2, 3, 16, 16)):
        (found,) = ran(made, drawn(*shape))
        np.testing.assert_allclose(found, module(drawn(*shape)), atol=1e-5)


def test_several_inputs_and_outputs_have_names() -> None:
    class Two(nn.Module):
        def forward(self, a: Tensor, pair: Any, by: float = 2.0) -> Any:
            return {"sum": a + pair[0], "scaled": pair[1] * by}

    made = export(Two(), drawn(2), [drawn(2), drawn(3)], 3.0)
    model = onnx.load_from_string(made.to_bytes())
    assert [each.name for each in model.graph.input] == ["a", "pair_0", "pair_1"]
    assert [each.name for each in model.graph.output] == ["sum", "scaled"]
    assert ran(made, drawn(2), drawn(2), drawn(3))[1] == pytest.approx(3 * drawn(3))


class Cached(nn.Module):
    """Changes the dict that it is given, and returns it."""

    def forward(self, x: Any, cache: Any) -> Any:
        cache["sum"] = cache["sum"] + x
        return cache


def test_a_dict_that_is_changed_may_be_a_result() -> None:
    x = drawn(2, 3)
    made = export(Cached(), x, {"sum": x})
    np.testing.assert_array_equal(ran(made, x, x)[0], x + x)


def test_no_examples_axes_are_fixed_by_default() -> None:
    model = onnx.load_from_string(export(Only(ops.relu), drawn(2, 3)).to_bytes())
    shape = model.graph.input[0].type.tensor_type.shape
    assert [d.dim_value for d in shape.dim] == [2, 3]


def test_a_model_on_an_autodiff_device_is_exported_for_inference() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.9)).to("cpu:autodiff")
    (found,) = ran(export(module, drawn(2, 3)), drawn(2, 3))
    np.testing.assert_allclose(found, module.valid()(drawn(2, 3)), rtol=1e-5)


def test_everything_without_a_node_is_named() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            self.inner = Only(lambda x: ops.qr(ops.solve(x, x))[0])

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x)

    with pytest.raises(ExportError, match=r"(?s)solve, in inner.*tall_qr, in inner"):
        export(Odd(), drawn(3, 3))


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("low", "high"), [(-500, 500), (-3, 500), (-500, 4), (None, 3), (-0.5, 2.5)]
)
def test_bounds_of_integers_may_lie_beyond_their_dtype(low: Any, high: Any) -> None:
    x = np.arange(-6, 6, dtype=np.int8)
    model = Only(lambda x: ops.clip(x, low, high))
    (got,) = ran(export(model, x, dynamic={}), x)
    want = np.clip(x.astype(float), low, high)
    assert got.dtype == model(Tensor(x)).dtype
    np.testing.assert_array_equal(got, want)


def test_a_look_at_values_is_refused_with_its_place() -> None:
    with pytest.raises(CaptureError, match=r"test_export\.py:\d+"):
        export(Only(lambda x: x * float(x.sum())), drawn(3))


def test_a_module_that_is_another_one_at_other_sizes() -> None:
    with pytest.raises(ExportError, match="other sizes of batch"):
        export(
            Only(lambda x: x + 1 if x.shape[0] == 2 else x * 2), drawn(2), dynamic=BATCH
        )


def test_dynamic_axes_that_are_none() -> None:
    with pytest.raises(UsageError, match="expected one of x"):
        export(Only(ops.relu), drawn(2), dynamic={"y": {0: "batch"}})
    with pytest.raises(UsageError, match="axis 3 of x"):
        export(Only(ops.relu), drawn(2), dynamic={"x": {3: "batch"}})


def test_the_model_file_is_what_to_bytes_gives(tmp_path: Path) -> None:
    made = export(Mlp(), drawn(2, 4))
    assert isinstance(made, Exported)
    made.save(tmp_path / "mlp.onnx")
    loaded = onnx.load(tmp_path / "mlp.onnx")
    found = arrays(loaded, drawn(2, 4))
    np.testing.assert_allclose(found[0], ran(made, drawn(2, 4))[0])
