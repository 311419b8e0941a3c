"""Old opsets: the upgraded file gives the numbers of the old one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from burnish.codegen.errors import ReadError, UnsupportedError, UsageError
from burnish.codegen.tools import upgrade as module
from burnish.codegen.tools.upgrade import upgrade

X = np.random.default_rng(0).standard_normal((2, 4, 6, 6)).astype(np.float32)


def old(path, opset, nodes, weights=(), external=False):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in dict(weights).items()],
    )
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=6)
    onnx.save(model, path, save_as_external_data=external, size_threshold=0)
    return path


def run(path):
    return ReferenceEvaluator(str(path)).run(None, {"x": X})[0]


def node(op_type, inputs, output, **attributes):
    return helper.make_node(op_type, inputs.split(), [output], **attributes)


KERNEL = np.random.default_rng(1).standard_normal((8, 4, 3, 3)).astype(np.float32)
CASES = {
    "squeeze": [
        node("ReduceMean", "x", "h", axes=[2]),
        node("Squeeze", "h", "y", axes=[2]),
    ],
    "unsqueeze": [node("Unsqueeze", "x", "y", axes=[0])],
    "clip": [node("Clip", "x", "y", min=-0.5, max=0.5)],
    "slice": [node("Slice", "x", "y", axes=[2], starts=[1], ends=[5])],
    "split": [helper.make_node("Split", ["x"], ["y", "z"], axis=1, split=[1, 3])],
    "pad": [node("Pad", "x", "y", pads=[0, 0, 1, 1, 0, 0, 1, 1])],
    "dropout": [node("Dropout", "x", "y", ratio=0.4)],
    "sum": [node("ReduceSum", "x", "y", axes=[1], keepdims=0)],
}
#: The last opset in which each form is valid.
LAST = {"clip": 10, "slice": 9, "pad": 10, "dropout": 11}
FORMS = [
    (case, opset)
    for case in CASES
    for opset in (9, 10, 11, 12)
    if opset <= LAST.get(case, 12)
]


@pytest.mark.parametrize(("case", "opset"), FORMS)
def test_upgraded_numbers_are_the_old_ones(tmp_path, case, opset):
    path = old(tmp_path / "old.onnx", opset, CASES[case])
    report = upgrade(path, tmp_path / "new.onnx")
    assert (report.before, report.after) == (opset, 16)
    onnx.checker.check_model(str(tmp_path / "new.onnx"))
    np.testing.assert_array_equal(run(tmp_path / "new.onnx"), run(path))


def conv(path, **options):
    nodes = [node("Conv", "x w", "h"), node("Relu", "h", "y")]
    return old(path, 11, nodes, {"w": KERNEL}, **options)


@pytest.mark.parametrize("opset", [16, 18, 21, 25])
def test_any_newer_opset_may_be_asked_for(tmp_path, opset):
    if opset > (newest := onnx.defs.onnx_opset_version()):
        pytest.skip(f"onnx {onnx.__version__} knows opsets to {newest} only")
    path = conv(tmp_path / "old.onnx")
    assert upgrade(path, tmp_path / "new.onnx", opset).after == opset
    assert onnx.load(tmp_path / "new.onnx").opset_import[0].version == opset
    np.testing.assert_array_equal(run(tmp_path / "new.onnx"), run(path))


def test_external_weights_stay_external(tmp_path):
    path = conv(tmp_path / "old.onnx", external=True)
    report = upgrade(path, tmp_path / "new.onnx")
    assert report.files == tuple(str(tmp_path / f"new.onnx{s}") for s in ("", ".data"))
    np.testing.assert_array_equal(run(tmp_path / "new.onnx"), run(path))


def test_large_weights_go_beside_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "INLINE", 1000)
    path = conv(tmp_path / "old.onnx")
    assert len(upgrade(path, tmp_path / "new.onnx").files) == 2
    np.testing.assert_array_equal(run(tmp_path / "new.onnx"), run(path))


def test_the_model_itself_is_never_replaced(tmp_path):
    path = conv(tmp_path / "m.onnx")
    before = path.read_bytes()
    (tmp_path / "link.onnx").symlink_to(path)
    for out in (path, tmp_path / "." / "m.onnx", tmp_path / "link.onnx"):
        with pytest.raises(UsageError, match="another file to write"):
            upgrade(path, out)
    assert path.read_bytes() == before


def test_nothing_to_do_is_wrong_usage(tmp_path):
    path = old(tmp_path / "old.onnx", 17, [node("Neg", "x", "y")])
    with pytest.raises(UsageError, match="has opset 17 already"):
        upgrade(path, tmp_path / "new.onnx")


@pytest.mark.parametrize("opset", [3, 99])
def test_opsets_that_cannot_be_reached(tmp_path, opset):
    with pytest.raises(UsageError, match="expected 16 to 28"):
        upgrade(conv(tmp_path / "old.onnx"), tmp_path / "new.onnx", opset)


def test_what_cannot_be_upgraded_says_what_to_try_and_leaves_nothing(tmp_path):
    path = old(
        tmp_path / "old.onnx",
        8,
        [node("Upsample", "x s", "y")],
        {"s": np.array([1, 1, 2, 2], np.float32)},
    )
    model = onnx.load(path)
    model.graph.node[0].op_type = "NoSuchOperator"
    onnx.save(model, path)
    with pytest.raises((UnsupportedError, ReadError), match=r"opset_version=16"):
        upgrade(path, tmp_path / "new.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["old.onnx"]
