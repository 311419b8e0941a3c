"""Shape arithmetic: every operator on open sizes, against ONNX's own evaluator.

Each row ends in a graph output, so dtypes and shapes are compared as well, for two
sizes of the same input.
"""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from burnish.codegen.pipeline import generate, write
from tests.codegen.symbolic.host_cases import CASES
from tests.harness.reference import judged


def model_of(nodes, constants):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "sizes",
        [value("x", TensorProto.FLOAT, ["batch", "time", 4])],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    opset = helper.make_opsetid("", 20)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def generated(model, folder):
    path = folder / "sizes.onnx"
    onnx.save(model, path)
    files = write(generate(path), folder / "out")
    spec = importlib.util.spec_from_file_location("generated_sizes", files[0])
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    made = module.Model() if len(files) == 1 else module.Model.from_file()
    return made, files[0].read_text()


@pytest.mark.parametrize(("nodes", "constants"), CASES)
def test_numbers_of_the_host(nodes, constants, tmp_path):
    model = model_of(nodes, constants)
    module, text = generated(model, tmp_path)
    for shape in ((2, 3, 4), (5, 1, 4)):
        x = (np.arange(np.prod(shape)).reshape(shape) % 7 - 3).astype(np.float32)
        (expected,) = judged(model, {"x": x})
        found = module(x)
        assert np.dtype(found.dtype) == np.asarray(expected).dtype, text
        assert found.shape == np.shape(expected), text
        np.testing.assert_allclose(np.asarray(found), expected, 1e-6, err_msg=text)


def test_floor_division_of_a_size_is_one_operator(tmp_path):
    row = next(c for c in CASES if c.id == "floor division by 2")
    _, text = generated(model_of(*row.values), tmp_path)
    assert "// 2" in text
    assert "where" not in text
    assert "else" not in text


def test_parts_of_a_shape_are_numbers_of_python(tmp_path):
    row = next(c for c in CASES if c.id == "Split into pads")
    _, text = generated(model_of(*row.values), tmp_path)
    assert "split" not in text
    assert "tolist" not in text
