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
IN_TURN = ANGLES.reshape(6, 2, 2).transpose(0, 2, 1).reshape(6, 4)
OF_A_GRID = np.concatenate([np.repeat(ANGLES, 6, 0), np.tile(ANGLES, (6, 1))], 1)
WITH_PADDING = np.concatenate([np.zeros_like(ANGLES[:1]), ANGLES])

CASES = {
    "numbers": ("add_12", TABLE, ["full_1", "val_3"], "Buffer"),
    "places of a grid": ("_to_copy", TABLE, ["lifted_tensor_0", "view_1"], "Buffer"),
    "a forward's own": ("clone_1", TABLE, ["a.b.lifted_tensor_0"], "Buffer"),
    "a fill": ("add", TABLE, ["a.lifted_tensor_1", "fill_2", "value_0_3"], "Buffer"),
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


POSITIONS = {
    "halves": (ANGLES, True),
    "in turn": (IN_TURN, True),
    "of a grid": (OF_A_GRID, True),
    "behind padding": (WITH_PADDING, True),
    "trained": (ANGLES * 1.01, False),
    "the same everywhere": (np.tile(ANGLES[1], (6, 1)), False),
}


@pytest.mark.parametrize("case", POSITIONS)
@pytest.mark.parametrize("name", ["a.places", "a.places.weight", "onnx::Add_7"])
def test_a_table_of_positions_is_a_buffer_by_its_numbers(name, case):
    table, is_buffer = POSITIONS[case]
    model = graph([node("Add", f"x {name}", "y")], {name: table}, x=table.shape)
    text = check_source(model)
    assert ("nn.Param(" in text) != is_buffer
    assert ("nn.Buffer(" in text) == is_buffer


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


def test_a_factor_alone_is_the_author_s_layer_scale():
    """PoolFormer's: the older exporter loses the name with unsqueeze."""
    nodes = [
        node("Conv", "x conv.weight", "c", "/block/conv/Conv"),
        node("Mul", "onnx::Mul_7 c", "m", "/block/Mul"),
        node("Add", "x m", "y", "/block/Add"),
    ]
    held = {
        "conv.weight": floats(3, 3, 1, 1),
        "onnx::Mul_7": floats(3, 1, 1, seed=1),
    }
    model = graph(nodes, held, x=("batch", 3, 2, 2))
    model.producer_name = "pytorch"
    check_source(model, "return x + self.scale * self.conv(x)")
