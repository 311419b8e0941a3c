"""What an exporter computed of numbers alone never trains; what is an author's does."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from tests.codegen.passes.forms import form
from tests.harness.source import check_source, floats, graph, node

KEY = "pkg.onnxscript.optimizer.folded_from"
TABLE = np.array([[0.05, 0.1], [0.15, 0.2]], np.float32)
PLACES = np.arange(6)[:, None] * np.array([1.0, 0.1])
ANGLES = np.concatenate([np.sin(PLACES), np.cos(PLACES)], 1).astype(np.float32)

CASES = {
    "numbers": ("add_12", TABLE, ["full_1", "val_3"], "Buffer"),
    "places of a grid": ("_to_copy", TABLE, ["lifted_tensor_0", "view_1"], "Buffer"),
    "an author's table": ("mul", TABLE, ["a.table", "val_3"], "Param"),
    "an author's, by its own name": ("mul", TABLE, ["freq", "val_3"], "Param"),
    "sines and cosines": ("repeat", ANGLES, ["a.places", "val_3"], "Buffer"),
    "the file says nothing": ("table", TABLE, None, "Param"),
}


@pytest.mark.parametrize("case", CASES)
def test_kind(case):
    name, array, recorded, kind = CASES[case]
    size = array.shape[1]
    model = form(
        f"y = Add(x, {name})", weights={name: array}, x=f"B,{len(array)},{size}"
    )
    if recorded is not None:
        noted = model.graph.value_info.add(name=name)
        noted.metadata_props.add(key=KEY, value=repr(recorded))
    assert f"nn.{kind}(" in check_source(model)


def test_a_number_is_as_short_as_its_type_allows():
    model = form("y = Expand(full, shape)", shape="int64[2]")
    full = numpy_helper.from_array(np.full((2, 1), 0.05, np.float32), "full")
    model.graph.initializer.append(full)
    feeds = {"shape": np.array([2, 3])}
    assert "nn.init.constant(0.05)" in check_source(model, feeds=feeds)


def test_a_norm_of_fixed_numbers_is_part_of_the_convolution_before_it():
    """DETR's frozen norm: a scale and a shift that the older exporter computed."""
    nodes = [
        node("Conv", "x conv.weight", "c", "/conv/Conv"),
        node("Mul", "c onnx::Mul_7", "m", "/norm/Mul"),
        node("Add", "m onnx::Add_9", "y", "/norm/Add"),
    ]
    held = {
        "conv.weight": floats(4, 3, 1, 1),
        "onnx::Mul_7": floats(1, 4, 1, 1, seed=1),
        "onnx::Add_9": floats(1, 4, 1, 1, seed=2),
    }
    model = graph(nodes, held, x=("batch", 3, 2, 2))
    model.producer_name = "pytorch"
    check_source(model, "self.conv = nn.Conv2d(3, 4, 1)", "return self.conv(x)")
