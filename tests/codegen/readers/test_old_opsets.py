"""Files of old opsets mean what they meant then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from burnish.codegen.backend import BurnishBackend
from burnish.codegen.errors import UnsupportedError
from burnish.codegen.tools.upgrade import upgrade

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 3, 4, 4)).astype(np.float32)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.random(shape, np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def node(kind: str, *weights: np.ndarray, opset: int, **attributes: Any) -> Any:
    """One node of `kind` on x and weights, in a model of that opset."""
    names = [f"w{i}" for i in range(len(weights))]
    outputs = {"TopK": ["y", "places"], "Split": ["y", "z"]}.get(kind, ["y"])
    made = helper.make_node(kind, ["x", *names], outputs, **attributes)
    held = [numpy_helper.from_array(w, n) for w, n in zip(weights, names, strict=True)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)
    y = onnx.ValueInfoProto(name="y")
    graph = helper.make_graph([made], kind, [x], [y], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 7
    return model


SCALES = np.array([1, 1, 2, 2], np.float32)
OF_ELEMENTS = tuple(floats(3, 4, 4) for _ in range(4))
CASES = [
    node("Upsample", opset=7, scales=[1.0, 1.0, 2.0, 2.0], mode="nearest"),
    node("Upsample", SCALES, opset=9, mode="nearest"),
    node("Upsample", SCALES, opset=9, mode="linear"),
    node("Resize", SCALES, opset=10, mode="nearest"),
    node("Resize", SCALES, opset=10, mode="linear"),
    node("Clip", opset=9, min=-0.5, max=0.5),
    node("Clip", np.float32(-0.5), np.float32(0.5), opset=11),
    node("Pad", opset=10, pads=[0, 0, 1, 1, 0, 0, 1, 1], mode="reflect"),
    node("Pad", ints(0, 0, 1, 1, 0, 0, 1, 1), opset=11, mode="edge"),
    node("Slice", opset=9, starts=[1], ends=[3], axes=[2]),
    node("Slice", ints(1), ints(3), ints(2), opset=10),
    node("Softmax", opset=11, axis=1),
    node("LogSoftmax", opset=11, axis=1),
    node("Hardmax", opset=11, axis=1),
    node("Unsqueeze", opset=11, axes=[0]),
    node("ReduceSum", opset=11, axes=[1, 2], keepdims=0),
    node("ReduceMean", opset=11, axes=[-1]),
    node("ReduceL2", opset=11, axes=[1], keepdims=0),
    node("ReduceMax", opset=8, axes=[1]),
    node("Dropout", opset=7, ratio=0.4),
    node("Dropout", opset=10, ratio=0.4),
    node("BatchNormalization", *(floats(3) for _ in range(4)), opset=7),
    node("BatchNormalization", *(floats(3) for _ in range(4)), opset=9),
    *(
        node("BatchNormalization", *OF_ELEMENTS, opset=opset, spatial=0)
        for opset in (7, 8)
    ),
    node("InstanceNormalization", floats(3), floats(3), opset=8),
    node("TopK", opset=9, k=2, axis=2),
    node("TopK", ints(2), opset=10, axis=2),
    node("TopK", ints(2), opset=11, axis=2, largest=0),
    node("Split", opset=11, axis=3, split=[1, 3]),
    node("Tile", ints(1, 2, 1, 1), opset=8),
    node("Expand", ints(2, 3, 4, 4), opset=8),
    node("Gather", ints(1, 0), opset=9, axis=1),
    node("Sum", floats(4, 4), opset=8),
    node("Max", floats(4, 4), opset=8),
    node("Pow", np.float32(2), opset=7),
    node("MaxPool", opset=8, kernel_shape=[2, 2], strides=[2, 2]),
    node("AveragePool", opset=7, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    node("LpPool", opset=8, kernel_shape=[2, 2]),
    node("Conv", floats(2, 3, 3, 3), opset=8, pads=[1, 1, 1, 1]),
    node("ConvTranspose", floats(3, 2, 3, 3), opset=8, strides=[2, 2]),
    node("PRelu", floats(3, 1, 1), opset=8),
    node("LRN", opset=7, size=3),
    node("ThresholdedRelu", opset=10, alpha=0.5),
    node("CumSum", ints(2)[0], opset=11),
    node("GatherElements", np.zeros((2, 3, 4, 4), np.int64), opset=11, axis=2),
    node("DepthToSpace", opset=11, blocksize=1),
    node("Flatten", opset=7, axis=2),
    node("Transpose", opset=7, perm=[0, 2, 3, 1]),
    node("Reshape", ints(2, -1), opset=8),
    node("Cast", opset=8, to=TensorProto.INT32),
    node("ArgMax", opset=10, axis=1),
]


def test_upgrading_keeps_corners_where_they_were(tmp_path: Path) -> None:
    model = node("Resize", SCALES, opset=10, mode="linear")
    onnx.save(model, tmp_path / "old.onnx")
    upgrade(tmp_path / "old.onnx", tmp_path / "new.onnx")
    newer = onnx.load(tmp_path / "new.onnx")
    assert newer.opset_import[0].version >= 16
    (before,) = BurnishBackend.prepare(model).run([X])
    (after,) = BurnishBackend.prepare(newer).run([X])
    np.testing.assert_allclose(after, before, rtol=1e-6)


def test_what_cannot_be_written_any_more_is_not_upgraded(tmp_path: Path) -> None:
    onnx.save(node("Hardmax", opset=11, axis=1), tmp_path / "old.onnx")
    with pytest.raises(UnsupportedError, match="Hardmax of opset 11"):
        upgrade(tmp_path / "old.onnx", tmp_path / "new.onnx")
    assert not (tmp_path / "new.onnx").exists()


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize(
    "model", CASES, ids=lambda m: f"{m.graph.name}-{m.opset_import[0].version}"
)
def test_like_onnxruntime(model: Any) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (expected,) = session.run(["y"], {"x": X})
    (got,) = BurnishBackend.prepare(model).run([X])
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_hardmax_was_over_all_later_axes() -> None:
    (y,) = BurnishBackend.prepare(node("Hardmax", opset=11, axis=1)).run([X])
    rows = X.reshape(2, -1)
    assert y.reshape(2, -1).argmax(1).tolist() == rows.argmax(1).tolist()
    assert y.sum() == 2


def test_resize_had_asymmetric_corners() -> None:
    model = node("Resize", SCALES, opset=10, mode="linear")
    (y,) = BurnishBackend.prepare(model).run([X])
    np.testing.assert_allclose(y[:, :, ::2, ::2], X, rtol=1e-6)


COLUMN, ONE = floats(3), floats(1)
OPSETS_1_TO_6 = {
    "along an axis": (
        node("Add", COLUMN, opset=1, broadcast=1, axis=1, consumed_inputs=[0, 0]),
        X + COLUMN[:, None, None],
    ),
    "along a negative axis": (
        node("Mul", COLUMN, opset=6, broadcast=1, axis=-3),
        X * COLUMN[:, None, None],
    ),
    "along two axes": (
        node("Sub", X[0, :, :, 0], opset=6, broadcast=1, axis=1),
        X - X[0, :, :, :1],
    ),
    "along the last axes": (
        node("Div", X[0, 0] + 9, opset=6, broadcast=1),
        X / (X[0, 0] + 9),
    ),
    "a comparison": (
        node("Greater", COLUMN - 0.5, opset=6, broadcast=1, axis=1),
        np.greater(X, COLUMN[:, None, None] - 0.5),
    ),
    "a slope for each channel": (
        node("PRelu", COLUMN, opset=6),
        np.where(X < 0, X * COLUMN[:, None, None], X),
    ),
    "one slope": (node("PRelu", ONE, opset=6), np.where(X < 0, X * ONE, X)),
    "a shape that is an attribute": (
        node("Reshape", opset=1, shape=[0, -1]),
        X.reshape(2, -1),
    ),
    "a type that is a word": (
        node("Cast", opset=1, to="DOUBLE"),
        X.astype(np.float64),
    ),
    "channels are joined": (
        node("Concat", X, opset=1),
        np.concatenate([X, X], 1),
    ),
    "paddings": (
        node("Pad", opset=1, paddings=[0, 0, 1, 0, 0, 0, 0, 2]),
        np.pad(X, ((0, 0), (0, 0), (1, 0), (0, 2))),
    ),
    "copies along one axis": (
        node("Tile", np.float32(2), np.float32(1), opset=1),
        np.tile(X, (1, 2, 1, 1)),
    ),
    "sizes that are floats": (
        node("Split", np.float32([1, 2]), opset=1, axis=1),
        X[:, :1],
    ),
    "two scales": (
        node("Upsample", opset=1, height_scale=2.0, width_scale=3.0, mode="nearest"),
        X.repeat(2, 2).repeat(3, 3),
    ),
    "an exponent that is a float": (
        node("GlobalLpPool", opset=1, p=1.0),
        np.abs(X).sum((2, 3), keepdims=True),
    ),
    "a batch norm that is tested": (
        node(
            "BatchNormalization",
            *(np.full(3, v, np.float32) for v in (2, 1, 0.5, 4)),
            opset=1,
            is_test=1,
            epsilon=0.0,
            consumed_inputs=[0, 0, 0, 1, 1],
        ),
        (X - 0.5) + 1,
    ),
    "a dropout that is tested": (node("Dropout", opset=1, is_test=1), X),
}


@pytest.mark.parametrize("name", OPSETS_1_TO_6)
def test_attributes_of_opsets_before_7(name: str) -> None:
    """Onnxruntime begins with opset 7."""
    model, expected = OPSETS_1_TO_6[name]
    (got,) = BurnishBackend.prepare(model).run([X])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    assert np.asarray(got).dtype == expected.dtype


def test_shapes_are_inferred_past_what_is_aligned() -> None:
    """The second sum needs the rank of what the first makes."""
    model = node("Add", COLUMN, opset=6, broadcast=1, axis=1)
    for kind, made in (("Relu", "r"), ("Add", "z")):
        given = {"Relu": ["y"], "Add": ["r", "w0"]}[kind]
        options = {"broadcast": 1, "axis": 1} if kind == "Add" else {}
        model.graph.node.append(helper.make_node(kind, given, [made], **options))
    model.graph.output[0].name = "z"
    column = COLUMN[:, None, None]
    (got,) = BurnishBackend.prepare(model).run([X])
    np.testing.assert_allclose(got, np.maximum(X + column, 0) + column, rtol=1e-5)


def test_a_batch_norm_of_training_is_refused() -> None:
    model = node("BatchNormalization", *(floats(3) for _ in range(4)), opset=6)
    model.graph.node[0].output.extend(["mean", "var"])
    model.graph.node.append(helper.make_node("Sqrt", ["var"], ["z"]))
    model.graph.output[0].name = "z"
    with pytest.raises(UnsupportedError, match="expected is_test=1, got training"):
        BurnishBackend.prepare(model)


def test_a_file_of_opset_6_is_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "old.onnx"
    onnx.save(node("Add", COLUMN, opset=6, broadcast=1, axis=1), path)
    upgrade(path, tmp_path / "new.onnx")
    (got,) = BurnishBackend.prepare(onnx.load(tmp_path / "new.onnx")).run([X])
    np.testing.assert_allclose(got, X + COLUMN[:, None, None], rtol=1e-5)


def scan(lengths: list[int], **directions: list[int]) -> Any:
    """A running sum of 2 sequences of 4 steps, and its squares."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "x"], ["sum"]),
            helper.make_node("Mul", ["sum", "sum"], ["square"]),
        ],
        "body",
        [info(name, TensorProto.FLOAT, [3]) for name in ("s", "x")],
        [info(name, TensorProto.FLOAT, [3]) for name in ("sum", "square")],
    )
    made = helper.make_node(
        "Scan", ["n", "s", "x"], ["y", "z"], body=body, num_scan_inputs=1, **directions
    )
    graph = helper.make_graph(
        [made],
        "scan",
        [info("s", TensorProto.FLOAT, [2, 3]), info("x", TensorProto.FLOAT, [2, 4, 3])],
        [onnx.ValueInfoProto(name=name) for name in ("y", "z")],
        [numpy_helper.from_array(ints(*lengths), "n")],
    )
    opset = helper.make_opsetid("", 8)
    return helper.make_model(graph, opset_imports=[opset], ir_version=7)


def of_rank(rank: int) -> Any:
    """MeanVarianceNormalization over its default axes."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4, 2][:rank])
    y = onnx.ValueInfoProto(name="y")
    made = helper.make_node("MeanVarianceNormalization", ["x"], ["y"])
    graph = helper.make_graph([made], "normalize", [x], [y])
    opset = helper.make_opsetid("", 13)
    return helper.make_model(graph, opset_imports=[opset], ir_version=7)


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(scan([2, 4]), id="scan"),
        pytest.param(scan([3, 1], directions=[1]), id="scan backwards"),
        pytest.param(scan([1, 1]), id="scan of one step"),
        pytest.param(of_rank(2), id="normalize rank 2"),
        pytest.param(of_rank(3), id="normalize rank 3"),
    ],
)
def test_each_output_is_like_onnxruntime(model: Any) -> None:
    import onnxruntime

    shapes = [
        [d.dim_value for d in given.type.tensor_type.shape.dim]
        for given in model.graph.input
    ]
    feeds = [floats(*shape) for shape in shapes]
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [given.name for given in model.graph.input]
    expected = session.run(None, dict(zip(names, feeds, strict=True)))
    got = BurnishBackend.prepare(model).run(feeds)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
