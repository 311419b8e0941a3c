"""Files that onnxruntime saved with ORT_ENABLE_ALL: images in blocks of channels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from burnish.codegen.backend import BurnishBackend
from burnish.codegen.errors import UnsupportedError
from burnish.codegen.readers.microsoft.nchwc import LAYOUTS, ordered
from tests.codegen.readers.hostile import N, info, model
from tests.harness.source import source_of

RANDOM = np.random.default_rng(0)


def x(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def blocked(filters: np.ndarray, inner: int, outer: int) -> np.ndarray:
    """Filters as onnxruntime stores them: what `ordered` puts in order."""
    places = np.arange(filters.size).reshape(filters.shape)
    taken = ordered(places, inner, outer).ravel()
    held = np.empty(filters.size, filters.dtype)
    held[taken] = filters.ravel()
    return held.reshape(filters.shape)


def filled(array: np.ndarray, size: int, axis: int) -> np.ndarray:
    room = [(0, 0)] * array.ndim
    room[axis] = (0, -array.shape[axis] % size)
    return np.pad(array, room)


def images(block: int, widths: tuple[int, int], window: tuple[int, ...]) -> Any:
    """A stem, a depthwise and a plain convolution, in blocks and without."""
    stem, out = widths
    one, deep = x(stem, 3, 3, 3), x(stem, 1, 3, 3)
    last, bias = x(out, stem, *window), x(stem) + 3
    held = {"a": one, "b": bias, "c": deep, "d": last}
    wide = filled(filled(last, block, 0), block, 1)
    in_blocks = {
        "a": blocked(filled(one, block, 0), 1, block),
        "b": filled(bias, block, 0),
        "c": blocked(filled(deep, block, 0), 1, block),
        "d": blocked(wide, block, block),
    }
    same = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    groups = len(in_blocks["c"])
    plain = [
        *(N("Conv", ["x", "a", "b"], ["p"], **same), N("Relu", ["p"], ["q"])),
        N("Conv", ["q", "c"], ["r"], group=stem, **same),
        N("Resize", ["r", "", "scales"], ["s"], mode="nearest"),
        *(N("MaxPool", ["s"], ["t"], kernel_shape=[2, 2]), N("Conv", "td", ["y"])),
    ]
    laid_out = [
        N("Conv", ["x", "a", "b"], ["q"], domain=LAYOUTS, activation="Relu", **same),
        N("ReorderOutput", ["q"], ["v"], domain=LAYOUTS, channels=stem),
        N("ReorderInput", ["v"], ["w"], domain=LAYOUTS),
        N("Conv", ["w", "c"], ["r"], domain=LAYOUTS, group=groups, **same),
        N("Upsample", ["r"], ["s"], domain=LAYOUTS, scales=[1, 1, 2, 2]),
        N("MaxPool", ["s"], ["t"], domain=LAYOUTS, kernel_shape=[2, 2]),
        N("Conv", ["t", "d"], ["u"], domain=LAYOUTS, kernel_shape=[*window]),
        N("ReorderOutput", ["u"], ["y"], domain=LAYOUTS, channels=out),
    ]
    made = []
    for nodes, weights in ((plain, held), (laid_out, in_blocks)):
        tensors = [numpy_helper.from_array(w, name) for name, w in weights.items()]
        scales = numpy_helper.from_array(np.float32([1, 1, 2, 2]), "scales")
        ports = [info("x", [2, 3, 8, 8])], ["y"], [*tensors, scales]
        made.append(model(nodes, *ports, domains=["com.microsoft", LAYOUTS]))
    return made


@pytest.mark.parametrize(
    ("block", "widths"), [(8, (24, 40)), (8, (8, 16)), (16, (24, 5))]
)
@pytest.mark.parametrize("window", [(1, 1), (2, 3)])
def test_blocks_are_put_in_order(
    block: int, widths: tuple[int, int], window: tuple[int, ...]
) -> None:
    plain, laid_out = images(block, widths, window)
    given = x(2, 3, 8, 8)
    (wanted,) = BurnishBackend.run_model(plain, [given])
    (got,) = BurnishBackend.run_model(laid_out, [given])
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-3)


def test_channels_that_nothing_tells_fill_up_at_run_time() -> None:
    plain, laid_out = images(16, (24, 5), (1, 1))
    at = [node.op_type for node in laid_out.graph.node].index("ReorderInput")
    laid_out.graph.node[at].input[0] = "again"
    laid_out.graph.node.insert(at, N("Reshape", ["v", "sizes"], ["again"]))
    laid_out.graph.node.insert(at, N("Shape", ["v"], ["sizes"]))
    given = x(2, 3, 8, 8)
    (wanted,) = BurnishBackend.run_model(plain, [given])
    (got,) = BurnishBackend.run_model(laid_out, [given])
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-3)


def test_filters_in_blocks_train(tmp_path: Path) -> None:
    trained = [
        source_of(model, tmp_path)[1].num_params
        for model in images(8, (24, 40), (1, 1))
    ]
    assert trained == [24 * 27 + 24 + 24 * 9 + 40 * 24] * 2


def test_blocks_of_an_unknown_size_are_refused() -> None:
    _, laid_out = images(16, (32, 64), (1, 1))
    with pytest.raises(UnsupportedError, match="blocks of 8 or of 16 channels"):
        BurnishBackend.prepare(laid_out)


@pytest.mark.oracle("onnxruntime")
def test_files_of_onnxruntime(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    plain, _ = images(8, (24, 5), (1, 1))
    options = runtime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "all.onnx")
    given = x(2, 3, 8, 8)
    session = runtime.InferenceSession(plain.SerializeToString(), options)
    (wanted,) = session.run(None, {"x": given})
    saved = onnx.load(tmp_path / "all.onnx")
    assert any(node.domain == LAYOUTS for node in saved.graph.node)
    (got,) = BurnishBackend.run_model(saved, [given])
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-3)
