"""Differences of two models, by the paths of their modules and weights."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from burnish.codegen.cli import main
from burnish.codegen.tools.model_page import against
from burnish.codegen.tools.model_page.look import examined
from tests.codegen.model_page.test_look import blocks
from tests.codegen.model_page.test_write import checked
from tests.harness.projects import net


def edited(path, change, to):
    """Another file of a model whose graph `change` changes."""
    model = onnx.load(path)
    change(model.graph)
    onnx.save(model, to)
    return to


def with_value(name, change):
    def edit(graph):
        for each in graph.initializer:
            if each.name == name:
                values = change(numpy_helper.to_array(each).copy())
                each.CopyFrom(numpy_helper.from_array(values, name))

    return edit


def compared(one, other):
    return against.differences(examined(one), examined(other))


def test_a_model_is_like_itself(tmp_path):
    path = blocks(tmp_path / "blocks.onnx")
    apart = compared(path, path)
    assert not apart.differ
    assert (apart.summary, apart.equal_tensors) == ("no difference", 10)


def test_a_value_that_changed_is_measured(tmp_path):
    path = net(tmp_path / "net.onnx")

    def change(values):
        values[1, 2] += 0.5
        return values

    other = edited(path, with_value("weight", change), tmp_path / "tuned.onnx")
    apart = compared(path, other)
    largest = np.abs(numpy_helper.to_array(onnx.load(path).graph.initializer[0])).max()
    (found,) = apart.values
    assert (found.path, found.values, found.different) == ("linear.weight", 12, 1)
    assert found.largest == pytest.approx(0.5)
    assert found.relative == pytest.approx(0.5 / largest)
    assert apart.equal_tensors == 1
    assert apart.summary == "1 tensor of other values, the same source"


def test_modules_that_came_went_and_changed_are_named(tmp_path):
    path = blocks(tmp_path / "blocks.onnx")
    model = onnx.load(path)
    del model.graph.node[16:]  # the last block
    model.graph.node.append(onnx.helper.make_node("Relu", ["x4"], ["y"], "end"))
    for each in [e for e in model.graph.initializer if ".4." in e.name]:
        model.graph.initializer.remove(each)
    onnx.save(model, tmp_path / "short.onnx")
    apart = compared(path, tmp_path / "short.onnx")
    assert [each.path for each in apart.removed] == ["blocks.4", "blocks.4.fc"]
    assert apart.added == ()
    assert ("blocks", "5 x Block became 4 x Block") in [
        (each.path, each.what) for each in apart.changed
    ]
    assert [each.path for each in apart.tensors] == [
        "blocks.4.fc.weight",
        "blocks.4.fc.bias",
    ]
    assert any("range(4)" in line for line in apart.source if line.startswith("+"))
    back = compared(tmp_path / "short.onnx", path)
    assert [each.path for each in back.added] == ["blocks.4", "blocks.4.fc"]


def test_another_shape_is_no_other_value(tmp_path):
    path = net(tmp_path / "net.onnx")

    def wider(graph):
        with_value("weight", lambda v: np.concatenate([v, v]))(graph)
        with_value("bias", lambda v: np.concatenate([v, v]))(graph)
        graph.output[0].type.tensor_type.shape.dim[1].dim_value = 6

    apart = compared(path, edited(path, wider, tmp_path / "wide.onnx"))
    assert [(each.path, each.what) for each in apart.tensors] == [
        ("linear.weight", "float32[3, 4] became float32[6, 4]"),
        ("linear.bias", "float32[3] became float32[6]"),
    ]
    assert apart.values == ()
    changes = {each.path: each.what for each in apart.changed}
    assert changes["linear"].startswith(
        "Linear(4, 3) became Linear(4, 6); gives float32"
    )


@pytest.mark.parametrize(
    ("mine", "its", "found"),
    [
        ([1.0, np.nan], [1.0, np.nan], None),
        ([1.0, np.nan], [1.0, 2.0], (1, 0.0)),
        ([1.0, np.inf], [1.0, np.inf], None),
        ([4, 2], [4, 1], (1, 1.0)),
        ([True], [False], (1, 1.0)),
        ([2j], [0j], (1, 2.0)),
        ([], [], None),
    ],
)
def test_how_values_are_compared(mine, its, found):
    seen = against._compared("w", np.array(mine), np.array(its))
    assert (seen and (seen.different, np.nan_to_num(seen.largest))) == found


def test_the_command_says_shows_and_prints_it(tmp_path, capsys):
    path = net(tmp_path / "net.onnx")
    other = net(tmp_path / "other.onnx", seed=1)
    words = ["inspect", str(path), "--against", str(other)]
    assert main(words) == 0
    message = capsys.readouterr().out
    assert message.startswith("other.onnx beside net.onnx: 2 tensors of other values")
    assert "linear.weight" in message
    page = tmp_path / "page.html"
    assert main([*words, "--json", "--html", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["path"] for each in found["values"]] == [
        "linear.weight",
        "linear.bias",
    ]
    text = " ".join(checked(page.read_text("utf-8")).text)
    assert "Tensors of other values: 2" in text
    assert page.read_text("utf-8").count('class="badge">other weights<') == 1
