"""Which weights a graph takes back, and what is refused by name."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from burnish import serialize
from burnish.codegen import onto
from burnish.codegen.cli import main
from burnish.codegen.errors import ConversionError, ExportError, UsageError
from burnish.codegen.pipeline import Options, generate, write
from tests.codegen.passes.test_unfolded import biases, folded
from tests.harness.source import floats, graph, node

MNIST = Path(str(resources.files("burnish.models") / "mnist" / "mnist.onnx"))


def state(model: Path, folder: Path, **options: Any) -> dict[str, np.ndarray]:
    """The weights of the module that a file gives."""
    made = generate(model, Options(name="net", **options))
    write(made, folder)
    file = serialize.load_file(folder / "net.safetensors")
    return {name: np.array(array) for name, array in file.items()}


def back(weights: dict[str, np.ndarray], model: Path, folder: Path) -> dict[str, Any]:
    """The new file's initializers by name."""
    serialize.save_file(weights, folder / "tuned.safetensors")
    onto(folder / "tuned.safetensors", model, folder / "tuned.onnx")
    held = onnx.load(folder / "tuned.onnx").graph.initializer
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in held}


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def product(**weights: np.ndarray) -> onnx.ModelProto:
    """Two products in a row, with the weights by name."""
    steps = [
        node("MatMul", "x a", "h"),
        node("Relu", "h", "r"),
        node("MatMul", "r b", "y"),
    ]
    return graph(steps, weights, x=("batch", 4))


def test_unchanged_weights_give_the_same_file(tmp_path: Path) -> None:
    weights = state(MNIST, tmp_path)
    serialize.save_file(weights, tmp_path / "same.safetensors")
    written = onto(tmp_path / "same.safetensors", MNIST, tmp_path / "same.onnx")
    assert written.changed == 0
    assert onnx.load(tmp_path / "same.onnx") == onnx.load(MNIST)


@pytest.mark.parametrize("way", [{}, {"flat": True}, {"simplify": False}])
def test_names_of_every_way_to_generate(tmp_path: Path, way: dict[str, Any]) -> None:
    weights = state(MNIST, tmp_path, **way)
    name = next(iter(weights))
    weights[name] += 1
    before = {
        t.name: onnx.numpy_helper.to_array(t)
        for t in onnx.load(MNIST).graph.initializer
    }
    after = back(weights, MNIST, tmp_path)
    changed = [n for n in before if before[n].tobytes() != after[n].tobytes()]
    assert len(changed) == 1


def test_half_precision_keeps_what_did_not_change(tmp_path: Path) -> None:
    path = saved(product(a=floats(4, 4), b=floats(4, 3, seed=1)), tmp_path)
    weights = {k: v.astype(np.float16) for k, v in state(path, tmp_path).items()}
    assert back(weights, path, tmp_path)["a"].tobytes() == floats(4, 4).tobytes()
    name = next(n for n, v in weights.items() if v.shape == (4, 4))
    weights[name][1, 2] = 7
    expected = floats(4, 4)
    expected[2, 1] = 7
    np.testing.assert_array_equal(back(weights, path, tmp_path)["a"], expected)


def test_data_beside_the_file_stays_beside_it(tmp_path: Path) -> None:
    model = product(a=floats(4, 4), b=floats(4, 3, seed=1))
    path = tmp_path / "model.onnx"
    beside = {"save_as_external_data": True, "size_threshold": 0}
    onnx.save(model, path, location="weights.bin", **beside)
    stored = (tmp_path / "weights.bin").read_bytes()
    weights = state(path, tmp_path)
    name = next(n for n, v in weights.items() if v.shape == (3, 4))
    weights[name] *= 2
    after = back(weights, path, tmp_path)
    np.testing.assert_array_equal(after["a"], floats(4, 4))
    np.testing.assert_array_equal(after["b"], 2 * floats(4, 3, seed=1))
    assert (tmp_path / "tuned.onnx.data").is_file()
    assert (tmp_path / "weights.bin").read_bytes() == stored


def test_a_folded_factor_stays(tmp_path: Path) -> None:
    steps = [
        node("Conv", "x w b", "c", name="/conv/Conv"),
        node("Mul", "c scale:0", "y"),
    ]
    held = {
        "w": floats(3, 2, 1, 1),
        "b": floats(3, seed=1),
        "scale:0": 1 + np.abs(floats(3, 1, 1, seed=2)),
    }
    path = saved(graph(steps, held, x=("batch", 2, 4, 4)), tmp_path)
    weights = state(path, tmp_path)
    name = next(n for n, v in weights.items() if v.shape == (3, 2, 1, 1))
    weights[name] += 0.5
    after = back(weights, path, tmp_path)
    for same in ("b", "scale:0"):
        np.testing.assert_array_equal(after[same], held[same])
    x = floats(1, 2, 4, 4, seed=3)
    [y] = ReferenceEvaluator(str(tmp_path / "tuned.onnx")).run(None, {"x": x})  # type: ignore[misc]
    (bias,) = (v for n, v in weights.items() if v.shape == (3,))
    wanted = np.einsum("oi,bihw->bohw", weights[name][:, :, 0, 0], x)
    np.testing.assert_allclose(y, wanted + bias[:, None, None], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("signed", [True, False])
def test_a_table_of_offsets_goes_back_into_its_bias(
    signed: bool, tmp_path: Path
) -> None:
    bias = biases(2, 3, 2, signed)
    path = saved(folded(bias), tmp_path)
    [name] = weights = state(path, tmp_path)
    assert weights[name].size < bias.size
    weights[name] *= 2
    after = back(weights, path, tmp_path)
    np.testing.assert_array_equal(after["onnx::Add_7"], 2 * bias)


def test_weights_of_another_module_are_refused(tmp_path: Path) -> None:
    weights = state(MNIST, tmp_path)
    first = next(iter(weights))
    others: dict[str, dict[str, np.ndarray]] = {
        f"has no {first}": {n: v for n, v in weights.items() if n != first},
        "has lora.a, which": {**weights, "lora.a": np.zeros(2, np.float32)},
        f"expected {first} of shape": {**weights, first: np.zeros(2, np.float32)},
    }
    for message, held in others.items():
        with pytest.raises(ExportError, match=message):
            back(held, MNIST, tmp_path)
        assert not (tmp_path / "tuned.onnx").exists()


def test_inputs_are_never_overwritten(tmp_path: Path) -> None:
    path = saved(product(a=floats(4, 4), b=floats(4, 3)), tmp_path)
    before = path.read_bytes()
    state(path, tmp_path)
    weights = tmp_path / "net.safetensors"
    for out in (path, weights, tmp_path / "nowhere" / "new.onnx"):
        with pytest.raises(UsageError):
            onto(weights, path, out)
    with pytest.raises(UsageError, match="expected a weights file"):
        onto(path, path, tmp_path / "new.onnx")
    with pytest.raises(UsageError, match="expected the ONNX file"):
        onto(weights, weights, tmp_path / "new.onnx")
    assert path.read_bytes() == before


def test_a_tensor_inside_of_a_function_is_refused(tmp_path: Path) -> None:
    held = onnx.numpy_helper.from_array(floats(4, 4))
    body = [
        node("Constant", "", "w", value=held),
        node("MatMul", "x w", "y"),
    ]
    sets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("own", 1)]
    own = onnx.helper.make_function("own", "Dense", "x", "y", body, sets[:1])
    steps = [node("Dense", "x", "y", domain="own")]
    model = graph(steps, x=("batch", 4))
    model.functions.append(own)
    model.opset_import.append(sets[1])
    path = saved(model, tmp_path)
    weights = state(path, tmp_path)
    assert weights
    for array in weights.values():
        array += 1
    with pytest.raises(ConversionError, match="inside of a function"):
        back(weights, path, tmp_path)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    state(MNIST, tmp_path)
    words = ["export", "net.safetensors", "--onto", str(MNIST), "-o", "new.onnx"]
    assert main(words) == 0
    assert capsys.readouterr().out == "new.onnx\n"
    assert main([*words[:-1], "net.safetensors"]) == 2


def quantized(dtype: str) -> onnx.ModelProto:
    """A product: weights of 8 bits, a scale a column, and a bias of whole numbers."""
    middle = 0 if dtype == "int8" else 128
    codes = np.arange(-20, 20).reshape(8, 5) * 3 + middle
    scales = np.linspace(0.01, 0.05, 5, dtype=np.float32)
    held = {
        "w": codes.astype(dtype),
        "scales": scales,
        "zeros": np.full(5, middle, dtype),
        "b": np.arange(5, dtype=np.int32) * 100,
        "steps": scales / 100,
    }
    steps = [
        node("DequantizeLinear", "w scales zeros", "dw", axis=1),
        node("DequantizeLinear", "b steps", "db", axis=0),
        node("Gemm", "x dw db", "y"),
    ]
    return graph(steps, held, x=("batch", 8))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_whole_numbers_of_a_quantized_model(tmp_path: Path, dtype: str) -> None:
    path = saved(quantized(dtype), tmp_path)
    weights = state(path, tmp_path)
    (name,) = (name for name in weights if name.endswith(".codes"))
    before = back(weights, path, tmp_path)
    assert (
        before["w"].tobytes()
        == np.array(
            onnx.numpy_helper.to_array(onnx.load(path).graph.initializer[0])
        ).tobytes()
    )
    weights[name] = weights[name].copy()
    weights[name].reshape(-1)[::3] += 1
    after = back(weights, path, tmp_path)
    change = after["w"].astype(int) - before["w"].astype(int)
    assert sorted(set(change.reshape(-1))) == [0, 1]
    assert change.sum() == 14
    assert all(before[k].tobytes() == after[k].tobytes() for k in before if k != "w")


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_floats_of_a_quantized_model_are_rounded_to_its_scales(
    tmp_path: Path, dtype: str
) -> None:
    path = saved(quantized(dtype), tmp_path)
    weights = state(path, tmp_path, dequantize=True)
    kernel, bias = sorted(weights, key=lambda name: -weights[name].ndim)
    weights[kernel] = weights[kernel] * np.float32(0.9)
    weights[bias] = weights[bias] + np.float32(0.001)
    after = back(weights, path, tmp_path)
    zero = after["zeros"].astype(int)
    made = (after["w"].astype(int) - zero) * after["scales"]
    wanted = weights[kernel].T if weights[kernel].shape == (5, 8) else weights[kernel]
    assert (abs(made - wanted) <= after["scales"] / 2 + 1e-6).all()
    near = abs(after["b"] * after["steps"] - weights[bias])
    assert (near <= after["steps"] / 2 + 1e-6).all()
    weights[kernel] = weights[kernel] * 9
    with pytest.raises(ExportError, match=r"'w' of the model file can hold with its"):
        back(weights, path, tmp_path)


def test_bounds_of_a_slice_are_no_elements(tmp_path: Path) -> None:
    bounds = {"start": [3], "end": [6], "axis": [1]}
    held = {"both": floats(4, 6)} | {n: np.array(b) for n, b in bounds.items()}
    steps = [
        node("Slice", "both start end axis", "half"),
        node("MatMul", "x half", "y"),
    ]
    path = saved(graph(steps, held, "y", x=("batch", 4)), tmp_path)
    weights = {name: value + 1 for name, value in state(path, tmp_path).items()}
    (new,) = weights.values()
    after = back(weights, path, tmp_path)
    np.testing.assert_array_equal(after["both"][:, 3:], new.T)
    np.testing.assert_array_equal(after["both"][:, :3], held["both"][:, :3])
