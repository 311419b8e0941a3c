"""Facts of each module of a model: contents, producers, data flow, and cost."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from burnish.codegen.cli import main
from burnish.codegen.errors import UsageError
from burnish.codegen.tools.inspect_model import inspect
from burnish.codegen.tools.model_page import look
from burnish.codegen.tools.model_page.lines import Lines
from burnish.codegen.tools.model_page.observe import Pass, Seen
from burnish.codegen.tools.model_page.sizes import Sizes
from burnish.codegen.tools.model_page.values import SAMPLE, histogram, sample
from tests.harness.projects import net

#: The package has a function of its name.
look_module = importlib.import_module("burnish.codegen.tools.model_page.look")

BLOCKS = """
<ir_version: 9, opset_import: ["" : 18]>
net (float[batch, time, 4] x) => (float[batch, time, 4] y)
{
%s
   y = Identity (x5)
}
"""


def blocks(path: Path) -> Path:
    """Five equal blocks, x + tanh(linear(x)), named as an exporter names them."""
    lines = []
    for i in range(5):
        before = "x" if i == 0 else f"x{i}"
        lines += [
            f"   m{i} = MatMul ({before}, blocks.{i}.fc.weight)",
            f"   a{i} = Add (m{i}, blocks.{i}.fc.bias)",
            f"   t{i} = Tanh (a{i})",
            f"   x{i + 1} = Add ({before}, t{i})",
        ]
    text = BLOCKS % "\n".join(lines)
    names = {
        f"blocks.{i}.fc.{part}": f"blocks_{i}_{part}"
        for i in range(5)
        for part in ("weight", "bias")
    }
    for name, plain in names.items():
        text = text.replace(name, plain)
    model = onnx.parser.parse_model(text)
    plain_names = {plain: name for name, plain in names.items()}
    for node in model.graph.node:
        number = node.output[0][1:] if node.output[0] != "y" else ""
        kind = {"MatMul": "fc/MatMul", "Add": "Add", "Tanh": "Tanh"}.get(node.op_type)
        if node.output[0].startswith("a"):
            kind = "fc/Add"
        if kind and node.output[0].startswith("x"):
            number = str(int(number) - 1)
        node.name = f"/blocks.{number}/{kind}" if kind else "end"
        for i, each in enumerate(node.input):
            node.input[i] = plain_names.get(each, each)
    random = np.random.default_rng(0)
    for name in names:
        shape = (4, 4) if name.endswith("weight") else (4,)
        values = random.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return look(blocks(tmp_path_factory.mktemp("blocks") / "blocks.onnx"))


def test_a_list_is_a_box_of_its_items(found):
    (items,) = found.root.children
    assert (items.path, items.kind) == ("blocks", "5 x Block")
    assert [each.path for each in items.children] == [f"blocks.{i}" for i in range(5)]
    assert items.parameters == found.root.parameters == 5 * 20
    assert items.bytes == 4 * 5 * 20


def test_shapes_keep_the_names_of_sizes(found):
    block = found.boxes["blocks.3"]
    assert list(map(str, block.inputs)) == ["x: float32[batch, time, 4]"]
    assert list(map(str, block.outputs)) == ["float32[batch, time, 4]"]
    steps = [(s.operator or s.module, s.output) for s in block.steps]
    flowing = "float32[batch, time, 4]"
    assert steps == [("blocks.3.fc", ""), ("tanh", flowing), ("add", flowing)]
    assert found.sizes == {"batch": 1, "time": 64}


def test_costs_are_those_of_one_pass(found):
    assert found.boxes["blocks.3.fc"].macs == 64 * 4 * 4
    assert found.root.macs == 5 * found.boxes["blocks.3"].macs == 5 * 64 * 4 * 4
    assert found.boxes["blocks.3"].result_bytes == 3 * 4 * 64 * 4
    assert {o.name: o.calls for o in found.operators} == dict.fromkeys(
        ("linear", "tanh", "add"), 5
    )


def test_a_module_says_where_its_source_is(found):
    lines = found.source.split("\n")
    first, *rest = found.boxes["blocks.3"].lines
    assert lines[first.first - 1] == "class Block(nn.Module):"
    assert lines[first.last - 1].strip().startswith("return")
    assert ["self.blocks" in lines[span.first - 1] for span in rest] == [True, True]
    made = [lines[span.first - 1].strip() for span in found.boxes["blocks.0.fc"].lines]
    assert made == ["self.fc = nn.Linear(4, 4)", "return x + ops.tanh(self.fc(x))"]


def test_a_module_has_the_reasons_that_name_it(found):
    assert any("class Block: blocks.*" in r for r in found.boxes["blocks.3"].reasons)
    assert any(r.startswith("blocks: a list") for r in found.boxes["blocks"].reasons)
    assert not any("no change" in r for box in found.root.walk() for r in box.reasons)


@pytest.mark.parametrize("dims", [{}, {"batch": 3, "time": 5}])
def test_costs_are_those_that_the_graph_has(tmp_path, dims):
    path = blocks(tmp_path / "blocks.onnx")
    seen = look(path, dims)
    assert 2 * seen.root.macs == inspect(path, dims=seen.sizes).flops
    assert not dims or seen.sizes == dims


def test_a_size_that_no_input_has_is_refused(tmp_path):
    with pytest.raises(UsageError, match="expected one of batch, time, got other"):
        look(blocks(tmp_path / "blocks.onnx"), {"other": 3})


def test_a_module_called_twice_is_one_box_and_costs_twice(tmp_path):
    model = onnx.parser.parse_model("""
    <ir_version: 9, opset_import: ["" : 18]>
    net (float[n, 3] x) => (float[n, 3] y)
    { h = MatMul (x, w)  t = Tanh (h)  y = MatMul (t, w) }
    """)
    weight = numpy_helper.from_array(np.eye(3, dtype=np.float32), "w")
    model.graph.initializer.append(weight)
    onnx.save(model, tmp_path / "net.onnx")
    root = look(tmp_path / "net.onnx", {"n": 2}).root
    assert root.parameters == 9
    assert root.macs == 2 * 2 * 9


def test_a_model_that_does_not_run_is_shown_without_shapes(tmp_path):
    model = onnx.parser.parse_model("""
    <ir_version: 9, opset_import: ["" : 18, "mine" : 1]>
    net (float[n, 3] x) => (float[n, 3] y) { y = mine.Secret (x) }
    """)
    onnx.save(model, tmp_path / "net.onnx")
    seen = look(tmp_path / "net.onnx")
    assert seen.ran == ""
    assert any("did not run" in note for note in seen.notes)
    assert seen.root.lines


def test_weights_alone_make_a_tree(tmp_path):
    path = net(tmp_path / "net.onnx")
    assert main(["generate", str(path), "-o", str(tmp_path / "out")]) == 0
    seen = look(tmp_path / "out" / "net.safetensors")
    assert seen.root.parameters == 15
    assert seen.boxes["linear"].tensors[0].histogram.values == 12
    assert seen.notes[-1].endswith("did not run: nothing says what its inputs are")


def test_a_large_model_has_the_same_page_without_its_products(tmp_path, monkeypatch):
    path = blocks(tmp_path / "blocks.onnx")
    computed = look(path)
    monkeypatch.setattr(look_module, "COMPUTED", 0)
    assert look(path) == computed


@pytest.fixture
def values(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 7, 4), np.float32))
    return {"x": tmp_path / "x.npy"}


def test_inputs_may_be_given_and_have_the_sizes(tmp_path, values):
    path = blocks(tmp_path / "blocks.onnx")
    seen = look(path, inputs=values)
    assert seen == look(path, {"batch": 3, "time": 7})
    assert seen.ran == "x float32[3, 7, 4]"
    assert str(seen.boxes["blocks.3"].inputs[0]) == "x: float32[batch, time, 4]"


def test_an_input_that_the_model_has_not_is_refused(tmp_path, values):
    with pytest.raises(UsageError, match="expected one of x, got other"):
        look(blocks(tmp_path / "blocks.onnx"), inputs={"other": values["x"]})


def test_a_slow_pass_is_repeated_without_its_products(tmp_path, monkeypatch):
    path = blocks(tmp_path / "blocks.onnx")
    computed, usual = look(path), look_module.observed

    def slow(model, given, products=True, seconds=math.inf):
        return usual(model, given, products, -1 if products else seconds)

    monkeypatch.setattr(look_module, "observed", slow)
    assert look(path) == computed


def test_a_pass_that_is_slow_without_them_too_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(look_module, "SECONDS", -1)
    seen = look(blocks(tmp_path / "blocks.onnx"))
    assert seen.ran == ""
    assert "takes too long; set smaller sizes with dims=" in seen.notes[-1]
    assert seen.root.parameters == 100


# --- sizes ---


@pytest.mark.parametrize(
    ("size", "changed", "shown"),
    [
        (7, {}, 7),
        (64, {"time": 96}, "time"),
        (128, {"time": 192}, "2*time"),
        (16, {"time": 24}, "time/4"),
        (65, {"time": 97}, "time+1"),
        (62, {"time": 94}, "time-2"),
        (128, {"time": 192, "batch": 256}, "time*batch"),
        (640, {"time": 960, "batch": 1280}, "5*time*batch"),
        (31, {"time": 45}, 31),
    ],
)
def test_how_an_axis_follows_a_size(size, changed, shown):
    def one(size):
        return Pass({"": Seen(1, (("x", "float32", (size,)),))})

    usual, other = {"time": 64, "batch": 2}, {"time": 96, "batch": 4}
    others = {n: (other[n], one(changed.get(n, size))) for n in usual}
    flow = Sizes(one(size), usual, others).flow(("", "in", 0))
    assert flow.shape == (shown,)


# --- lines ---


def test_the_lines_of_an_attribute_are_found_in_loops_and_in_what_a_class_extends():
    lines = Lines(
        "class Base(nn.Module):\n"
        "    def __init__(self):\n"
        "        self.fc = nn.Linear(\n"
        "            3, 4\n"
        "        )\n"
        "    def forward(self, x):\n"
        "        for layer in self.layers:\n"
        "            x = layer(x)\n"
        "        return self.fc(x)\n"
        "class Model(Base):\n"
        "    pass\n"
    )
    spans = [(s.first, s.last) for s in lines.of("Model", "fc", "")]
    assert spans == [(3, 5), (9, 9)]
    assert [(s.first, s.last) for s in lines.of("Base", "layers", "")] == [(7, 7)]
    assert lines.of("Model", "nothing", "") == ()


# --- values ---


def test_a_small_tensor_is_counted_whole():
    values = np.array([0, 0, 1, 2, np.nan, np.inf], np.float32)
    seen = histogram(values)
    assert (seen.low, seen.high, seen.mean) == (0, 2, 0.75)
    assert (seen.zeros, seen.odd, seen.values, sum(seen.counts)) == (2, 2, 6, 4)


def test_a_large_tensor_is_read_at_some_places(tmp_path):
    large = np.lib.format.open_memmap(
        tmp_path / "large.npy", "w+", "float32", (1000, 1000)
    )
    large[:] = np.arange(1000)
    taken = sample(large.T)
    assert taken.size == SAMPLE
    assert (taken.min(), taken.max()) == (0, 999)


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(0, np.float32),
        np.array(["a"], object),
        np.array([np.nan]),
        np.array([1j]),
    ],
)
def test_what_has_no_histogram(values):
    assert histogram(values) is None


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "uint64", "float64"])
def test_a_constant_is_one_bar(dtype):
    assert histogram(np.ones(5, dtype)).counts == (5,)


# --- the command ---


def test_json_is_the_look(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net(tmp_path / "net.onnx")
    assert main(["inspect", "net.onnx", "--html", "--json"]) == 0
    message = json.loads(capsys.readouterr().out)
    assert message["root"]["parameters"] == 15
    assert message["root"]["children"][0]["path"] == "linear"
    assert (tmp_path / "net.html").exists()


def test_the_page_is_written_where_it_is_wanted(tmp_path, capsys):
    path, page = net(tmp_path / "net.onnx"), tmp_path / "page.html"
    assert main(["inspect", str(path), "--html", str(page), "--dim", "batch=3"]) == 0
    assert capsys.readouterr().out.strip() == str(page)
    assert "float32[3, 4]" in page.read_text()


def test_two_models_run_with_what_each_of_them_has(tmp_path, values, capsys):
    path, other = blocks(tmp_path / "blocks.onnx"), net(tmp_path / "net.onnx")
    x, page = f"x={values['x']}", str(tmp_path / "page.html")
    words = ["inspect", str(path), "--against", str(other), "--html", page]
    assert main([*words, "--input", x, "--dim", "time=7"]) == 0
    assert "One pass on x float32[3, 7, 4]" in Path(page).read_text()


def test_what_is_left_out_of_the_page_is_reported(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(look_module, "SECONDS", -1)
    path, page = blocks(tmp_path / "blocks.onnx"), tmp_path / "page.html"
    assert main(["inspect", str(path), "--html", str(page)]) == 0
    message = capsys.readouterr()
    assert message.out.strip() == str(page)
    assert "note: shapes and costs are not known" in message.err
