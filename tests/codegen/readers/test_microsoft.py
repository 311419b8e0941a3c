"""onnxruntime's own operators mean what onnxruntime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from burnish.codegen.backend import BurnishBackend
from burnish.codegen.errors import UnsupportedError
from burnish.codegen.readers import read
from burnish.codegen.readers.microsoft import DOMAIN
from tests.codegen.readers.microsoft import (
    F4,
    I4,
    I8,
    IDS,
    NORM,
    QKV,
    U1,
    WIDE,
    cache,
    case,
    fixed,
    whole,
    x,
)
from tests.codegen.readers.microsoft_layers import LAYERS
from tests.codegen.readers.microsoft_others import OTHERS

CASES = [*LAYERS, *OTHERS]


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize(("model", "feeds"), CASES, ids=lambda m: _name(m))
def test_like_onnxruntime(model: Any, feeds: list[np.ndarray]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # threads share a batch, and so its range
    try:
        session = runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except runtime.capi.onnxruntime_pybind11_state.Fail as error:
        if "not yet supported on this hardware platform" in str(error):
            pytest.skip("onnxruntime has this operator for other processors alone")
        raise
    names = [value.name for value in session.get_inputs()]
    expected = session.run(None, dict(zip(names, feeds, strict=True)))
    results = BurnishBackend.prepare(model).run(feeds)
    for y, wanted in zip(results, expected, strict=True):
        assert y.dtype == wanted.dtype
        if wanted.dtype == object:
            np.testing.assert_array_equal(y, wanted)
            continue
        tolerance = 0.0
        if np.issubdtype(wanted.dtype, np.floating):
            tolerance = max(3e-4, 4 * float(np.finfo(wanted.dtype).eps))
        np.testing.assert_allclose(
            *(y.astype(float), wanted.astype(float)), tolerance, tolerance
        )


def sparse(**attributes: Any) -> Any:
    """A model whose first input is sparse; onnxruntime wants both of one size."""
    kind, domain = "SparseToDenseMatMul", DOMAIN
    node = helper.make_node(kind, ["a", "b"], ["y"], domain=domain, **attributes)
    real = onnx.TensorProto.FLOAT
    inputs = [
        helper.make_sparse_tensor_value_info("a", real, [4, 4]),
        helper.make_tensor_value_info("b", real, [4, 4]),
    ]
    outputs = [helper.make_tensor_value_info("y", real, None)]
    graph = helper.make_graph([node], kind, inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    matrix = np.zeros((4, 4), F4)
    matrix[[0, 1, 2], [1, 2, 3]] = 2, -1, 3
    return model, [matrix, x(4, 4)]


SPARSE = [
    sparse(),
    sparse(transA=1, alpha=0.5),
    sparse(transB=1),
    sparse(transA=1, transB=1),
]


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize(("model", "feeds"), SPARSE)
def test_sparse_inputs_are_dense_ones(model: Any, feeds: list[np.ndarray]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    a, b = feeds
    places = np.nonzero(a)
    session = runtime.InferenceSession(model.SerializeToString())
    device = runtime.OrtDevice.make("cpu", 0)
    matrix = runtime.SparseTensor.sparse_coo_from_numpy(
        I8(a.shape), a[places], np.stack(places, -1).reshape(-1), device
    )
    values = {
        "a": runtime.OrtValue.ort_value_from_sparse_tensor(matrix),
        "b": runtime.OrtValue.ortvalue_from_numpy(b),
    }
    (expected,) = session.run_with_ort_values(["y"], values)
    (y,) = BurnishBackend.run_model(model, feeds)
    np.testing.assert_allclose(y, expected.numpy(), 1e-6, 1e-6)


def test_halves_are_inverted() -> None:
    matrices = np.random.default_rng(3).random((2, 3, 3)) + 2 * np.eye(3)
    model, feeds = case("Inverse", matrices.astype(np.float16))
    (y,) = BurnishBackend.prepare(model).run(feeds)
    assert y.dtype == np.float16
    expected = np.linalg.inv(feeds[0].astype(float))
    np.testing.assert_allclose(y.astype(float), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize("room", [0, 5, 9])
def test_rows_of_a_prompt_may_end_in_padding(room: int) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model, feeds = case(
        "GroupQueryAttention",
        *(x(2, 5, 64), None, None, cache(room, 0, 0), cache(room, 0, 0)),
        *(np.array([4, 1], I4), fixed(np.array(5, I4)), *WIDE),
        num_heads=2,
        kv_num_heads=1,
        do_rotary=1,
    )
    session = runtime.InferenceSession(model.SerializeToString())
    names = [value.name for value in session.get_inputs()]
    (expected,) = session.run(None, dict(zip(names, feeds, strict=True)))
    (y,) = BurnishBackend.prepare(model).run(feeds)
    np.testing.assert_allclose(y[0], expected[0], 3e-4, 3e-4)
    np.testing.assert_allclose(y[1, :2], expected[1, :2], 3e-4, 3e-4)


def _name(given: Any) -> str | None:
    return given.graph.name if isinstance(given, onnx.ModelProto) else ""


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (case("GreedySearch", IDS)[0], "before its optimisation"),
        (case("Attention", x(2, 5, 8), *QKV, num_heads=2, do_rotary=1)[0], "rotary"),
        (case("Gelu", x(2), beta=1.0)[0], "no attribute beta"),
        (case("Conv", x(2), domain=f"{DOMAIN}.nchwc")[0], "ORT_ENABLE_EXTENDED"),
    ],
)
def test_what_cannot_be_read_is_named(model: Any, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"{reason}(?s:.)*'n'"):
        BurnishBackend.prepare(model)


def test_nodes_inherit_name_and_metadata(tmp_path: Path) -> None:
    model, _ = case("SkipLayerNormalization", x(2, 5, 8), x(2, 5, 8), *NORM)
    model.graph.node[0].metadata_props.add(key="scope", value="a.b")
    onnx.save(model, tmp_path / "m.onnx")
    source = read(tmp_path / "m.onnx")
    assert [n.op_type for n in source.model.graph] == ["Add", "LayerNormalization"]
    assert {n.metadata_props["scope"] for n in source.model.graph} == {"a.b"}
    assert "SkipLayerNormalization" in source.notes[-1]


def test_channels_last_convolutions_in_a_row_need_no_shapes() -> None:
    """Ranks come from the weights, however many convolutions there are."""
    scale, point = numpy_helper.from_array(F4(0.1), "s"), U1(3)
    held = [scale, numpy_helper.from_array(point, "p")]
    held.append(numpy_helper.from_array(whole(U1, 2, 2, 1, 1), "w"))
    nodes = [
        helper.make_node(
            "QLinearConv",
            [f"v{i}", "s", "p", "w", "s", "p", "s", "p"],
            [f"v{i + 1}"],
            domain=DOMAIN,
            channels_last=1,
        )
        for i in range(20)
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [info("v0", onnx.TensorProto.UINT8, [1, 4, 4, 2])],
        [info("v20", onnx.TensorProto.UINT8, None)],
        held,
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    (y,) = BurnishBackend.run_model(model, [whole(U1, 1, 4, 4, 2)])
    assert y.shape == (1, 4, 4, 2)
