"""One file for NumPy alone: the numbers of the package, bit for bit."""

import ast
import functools
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from burnish import nn, ops
from burnish.codegen.errors import ConversionError
from burnish.codegen.model_gen import ModelGen
from burnish.codegen.pipeline import Options, generate, write
from burnish.codegen.standalone import standalone
from burnish.codegen.standalone.fold import folded
from burnish.codegen.standalone.layout import broken
from burnish.kernels import direct
from burnish.models._gallery import BY_MODULE, ENTRIES, Entry
from burnish.models._numbers import feeds
from tests.harness.alone import alone, run
from tests.harness.ruff import complaints

_SELECT = "E,I,F401,F404,F5,F6,F7,F8"

MNIST = BY_MODULE["mnist"]
ONE_EACH = {entry.folder: entry for entry in ENTRIES}.values()
"""The models, from one of their exporters."""


@functools.cache
def one_file(entry: Entry, *, tables: bool) -> str:
    """The model of an entry as one file."""
    return standalone(entry.source.read_text(), tables=tables)


def outputs_of(model: Any, call: list[np.ndarray]) -> list[np.ndarray]:
    """The package's results with NumPy, without the library of kernels."""
    with patch.object(direct, "usable", return_value=None):
        results = model(*call)
    results = results if isinstance(results, tuple) else (results,)
    return [result.numpy() for result in results]


def same_bits(got: list[list[np.ndarray]], expected: list[list[np.ndarray]]) -> bool:
    return [[(a.dtype, a.shape, a.tobytes()) for a in call] for call in got] == [
        [(a.dtype, a.shape, a.tobytes()) for a in call] for call in expected
    ]


@pytest.mark.parametrize("state", ["file", "embedded"])
def test_mnist_runs_with_numpy_alone(tmp_path: Path, state: str) -> None:
    options = Options(standalone=True, embed=state == "embedded")
    source, *_ = write(generate(MNIST.file, options), tmp_path)
    calls = [list(feed.values()) for feed in feeds("mnist")]
    expected = [outputs_of(MNIST.model().from_file(), call) for call in calls]
    assert same_bits(alone(source, calls, state), expected)
    assert sum(path.stat().st_size for path in tmp_path.glob("mnist.*")) < 3e6


@pytest.mark.parametrize("entry", ONE_EACH, ids=lambda entry: entry.module)
def test_every_model_of_the_gallery_runs_with_numpy_alone(
    entry: Entry, tmp_path: Path
) -> None:
    model = entry.model()()
    tables = any(t.is_loaded for _, t in model.named_tensors())
    for _, item in model.named_tensors():
        if item.is_loaded:  # no file is needed here: any numbers do
            item.assign(np.zeros(item.shape, item.dtype))
    source, weights = tmp_path / "one.py", tmp_path / "w.safetensors"
    source.write_text(one_file(entry, tables=tables))
    model.save_file(weights)
    calls = [list(feed.values()) for feed in feeds(entry.folder)][:1]
    expected = [outputs_of(model, call) for call in calls]
    assert same_bits(alone(source, calls, str(weights)), expected)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.module)
def test_a_linter_finds_nothing_in_one_file(entry: Entry) -> None:
    assert complaints(one_file(entry, tables=False), _SELECT) == ""


def names_in(text: str) -> set[str]:
    """Every identifier of a source, without what comments and docstrings say."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        for field in ("id", "attr", "name", "arg", "module"):
            found.add(getattr(node, field, None))
    return found - {None}


def test_nothing_of_training_is_in_the_file() -> None:
    found = names_in(one_file(MNIST, tables=False))
    assert not found & {"burnish", "cupy", "vjp", "Node", "recording", "is_autodiff"}


def test_what_is_not_used_is_not_there() -> None:
    found = names_in(one_file(MNIST, tables=False))
    assert not found & {"LSTM", "softmax", "gelu", "QuantScheme", "layer_norm"}


def cast_to(kind: int) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", kind, [2])
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=kind)], "cast", [x], [y]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize(
    ("kind", "name"),
    [(TensorProto.BFLOAT16, "bfloat16"), (TensorProto.FLOAT8E5M2, "float8_e5m2")],
)
def test_dtypes_that_numpy_lacks_are_refused_by_name(
    kind: int, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "cast.onnx"
    onnx.save(cast_to(kind), path)
    with pytest.raises(ConversionError, match=f"dtypes that NumPy has, got {name}"):
        generate(path, Options(standalone=True))


def test_a_build_script_writes_one_file(tmp_path: Path) -> None:
    made = ModelGen(tmp_path, embed_states=True, standalone=True).input(MNIST.file)
    assert [path.name for path in made.run()] == ["mnist.py"]


def test_changed_weights_are_refused(tmp_path: Path) -> None:
    source, weights = write(generate(MNIST.file, Options(standalone=True)), tmp_path)
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    call = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
sys.meta_path.pop(0)
import {source.stem} as one
try:
    one.Model.from_embedded()
except one.RecordError as error:
    print(error)
"""
    assert "their sha256 has changed" in run(call)


def test_the_class_is_none_of_the_package() -> None:
    space: dict[str, Any] = {"__name__": "one"}
    exec(one_file(MNIST, tables=False), space)
    assert not issubclass(space["Model"], nn.Module)


def with_forward(expression: str) -> str:
    return (
        '"""One."""\n\nfrom burnish import nn, ops\n\n\nclass Model(nn.Module):\n'
        f"    def forward(self, x):\n        return {expression}\n"
    )


BY_TEXT = {
    "activation": ("nn.activation('leaky_relu', negative_slope=0.2)", "(x)"),
    "normalization": ("nn.normalization('group', 6, num_groups=2)", "(x)"),
    "attention": ("nn.MultiheadAttention(8, 2, batch_first=True)", "(x, x, x)[0]"),
    "encoder layer": (
        "nn.TransformerEncoderLayer(8, 2, 16, activation='gelu')",
        "(x)",
    ),
    "encoder": (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)",
        "(x, is_causal=True)",
    ),
    "decoder layer": ("nn.TransformerDecoderLayer(8, 2, 16)", "(x, x)"),
    "both": ("nn.Transformer(8, 2, 1, 1, 16)", "(x, x)"),
    "feed forward": ("nn.PositionWiseFeedForward(8, 16)", "(x)"),
}
"""Layers that choose others by a name, and how they are called."""


@pytest.mark.parametrize("layer", BY_TEXT)
def test_layers_that_choose_others_by_name(layer: str, tmp_path: Path) -> None:
    made, call = BY_TEXT[layer]
    text = (
        '"""One."""\n\nfrom burnish import Tensor, nn\n\n\nclass Model(nn.Module):\n'
        f"    def __init__(self):\n        self.layer = {made}\n\n"
        "    def forward(self, x):\n        x = Tensor(x)\n"
        f"        return self.layer{call}\n"
    )
    space: dict[str, Any] = {"__name__": "whole"}
    exec(text, space)
    model = space["Model"]().valid()
    source, weights = tmp_path / "one.py", tmp_path / "w.safetensors"
    source.write_text(standalone(text))
    model.save_file(weights)
    x = np.random.default_rng(5).normal(size=(3, 6, 8)).astype(np.float32)
    state = str(weights) if list(model.named_tensors()) else "file"
    assert same_bits(alone(source, [[x]], state), [outputs_of(model, [x])])


def test_layers_that_no_name_chooses_are_not_in_the_file() -> None:
    text = standalone(with_forward("nn.activation('leaky_relu')(x)"))
    assert "class LeakyReLU(" in text
    assert "class Mish(" not in text
    default = standalone(with_forward("nn.TransformerEncoderLayer(8, 2, 16)(x)"))
    assert "class ReLU(" in default
    assert "class Mish(" not in default
    space: dict[str, Any] = {"__name__": "one"}
    exec(text, space)
    with pytest.raises(space["InputError"], match=r"one of .*'leakyrelu'.*got 'mish'"):
        space["nn"].activation("mish")


_PAGE = '''"""One function."""

from burnish import nn


class Model(nn.Module):
    def forward(self, x):
        {body}
        return x
'''


@pytest.mark.parametrize("body", ["x = [lost for _ in x]", "if x:\n            lost()"])
def test_names_that_nothing_defines_are_refused(body: str) -> None:
    with pytest.raises(ConversionError, match="names in the file, got none for lost"):
        standalone(_PAGE.format(body=body))


def test_names_of_dead_code_are_no_matter() -> None:
    assert "lost()" in standalone(_PAGE.format(body="if False:\n            lost()"))


def test_every_operator_of_the_runtime_has_a_form() -> None:
    every = ", ".join(f"ops.{name}" for name in ops.__all__ if name != "decode_image")
    compile(standalone(with_forward(f"({every})")), "one.py", "exec")


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("ops.decode_image(x)", "imports PIL"),
        ("ops.pad(x, getattr(nn, x))", "all of burnish.nn"),
        ("nn.MSELoss()(x, x)", "burnish._engine.arguments.check"),
    ],
)
def test_what_one_file_cannot_hold_is_refused_by_name(
    expression: str, named: str
) -> None:
    with pytest.raises(ConversionError, match=named):
        standalone(with_forward(expression))


LONG_LINES = {
    "call": ("x = ValueError(" + "a_long_name(of_several), " * 2 + "the_end_of_it)", 3),
    "string": (
        'f"Sequential: expected modules, got {name_of(layer)} as one of its parts "',
        2,
    ),
    "no space": ('f"' + "{a_long_name(of_several,words)}" * 3 + '"', 1),
    "behind": ('x = f"' + "{a_long_name(of_several,words)}" * 3 + '"', 1),
    "two strings": ('"a" if ' + "a_long_name_of_a_value + " * 3 + '1 else "b"', 1),
}


@pytest.mark.parametrize(("text", "count"), LONG_LINES.values(), ids=LONG_LINES)
def test_lines_that_names_made_too_long_are_broken(text, count):
    pad = " " * 16
    lines = broken(pad + text)
    assert len(lines) == count
    if count > 1:
        assert all(len(line) <= 88 for line in lines)
    if not text.startswith("x"):
        text, lines = f"({text})", ["(", *lines, ")"]
    assert ast.unparse(ast.parse(text)) == ast.unparse(
        ast.parse("\n".join(line.removeprefix(pad) for line in lines))
    )


@pytest.mark.parametrize(
    ("expression", "folds_to"),
    [
        ("x or None", "x or None"),
        ("x or 0", "x or 0"),
        ("x and 1", "x and 1"),
        ("x or None or y", "x or y"),
        ("None or x", "x"),
        ("x or flag", "x"),
        ("flag or x", "x"),
        ("x and flag", "x and False"),
    ],
)
def test_what_is_known_folds(expression: str, folds_to: str) -> None:
    """flag is False; x may be 0, which `or` does not give."""
    assert folded(f"y = {expression}\n", {"flag": False}) == f"y = {folds_to}\n"
