"""Tables of 4 bits: no file of weights holds them, so what reads them takes 8."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from burnish.codegen.pipeline import Options, generate, write
from tests.codegen.passes.forms import form
from tests.harness.imported import load_class

RANDOM = np.random.default_rng(0)


def table(dtype: str, *shape: int) -> np.ndarray:
    low, high = (-8, 8) if dtype == "int4" else (0, 16)
    return RANDOM.integers(low, high, shape).astype(getattr(ml_dtypes, dtype))


SCALE = RANDOM.random((6, 2)).astype(np.float32)
BLOCKS = "DequantizeLinear<axis=1, block_size=16>"
WIDE = {
    "of blocks": (f"w = {BLOCKS}(t, s, z) t1 = Transpose(w) y = MatMul(x, t1)", "x"),
    "without zero points": (
        f"w = {BLOCKS}(t, s) v = Transpose(w) y = MatMul(x, v)",
        "x",
    ),
    "rows of it": (
        f"r = Gather(t, i) k = Gather(s, i) n = Gather(z, i) y = {BLOCKS}(r, k, n)",
        "i",
    ),
    "views of it": (
        f"""v = Transpose<perm=[1, 0]>(t) b = Transpose<perm=[1, 0]>(v)
        w = {BLOCKS}(b, s, z) y = Add(w, x)""",
        "x",
    ),
}
SHAPES = {"x": np.ones((6, 32), np.float32), "i": np.array([4, 0, 4], np.int64)}


def model(text: str, dtype: str, given: str) -> onnx.ModelProto:
    weights = {"t": table(dtype, 6, 32), "s": SCALE, "z": table(dtype, 6, 2)}
    inputs = {"x": "6,32"} if given == "x" else {"i": "int64[3]"}
    return form(text, opset=21, weights=weights, **inputs)


def expected(proto: onnx.ModelProto, given: str) -> np.ndarray:
    """Computed of numbers in float64, by the specification's words."""
    held = {each.name: numpy_helper.to_array(each) for each in proto.graph.initializer}
    zeros = held["z"].astype(np.float64)
    if all("z" not in node.input for node in proto.graph.node):
        zeros = np.zeros_like(zeros)
    wide = np.repeat(held["s"].astype(np.float64), 16, 1)
    weight = (held["t"].astype(np.float64) - np.repeat(zeros, 16, 1)) * wide
    if given == "i":
        return weight[SHAPES["i"]]
    added = any(node.op_type == "Add" for node in proto.graph.node)
    return weight + 1 if added else SHAPES["x"] @ weight.T


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize(("text", "given"), WIDE.values(), ids=WIDE)
@pytest.mark.parametrize("simplify", [True, False])
def test_a_table_is_written_and_read(text, given, dtype, simplify, tmp_path):
    proto = model(text, dtype, given)
    onnx.save(proto, tmp_path / "model.onnx")
    made = generate(tmp_path / "model.onnx", Options(simplify=simplify))
    assert "int4" not in made.text
    source, weights = write(made, tmp_path)
    out = load_class(source).from_file(weights)(SHAPES[given]).numpy()
    np.testing.assert_allclose(out, expected(proto, given), rtol=1e-5, atol=1e-5)


def test_what_quantizes_to_four_bits_keeps_them(tmp_path):
    """The dtype of the zero points is that of the result, which saturates there."""
    text = "q = QuantizeLinear<axis=0>(x, s, z) y = DequantizeLinear<axis=0>(q, s, z)"
    weights = {"s": SCALE[:, 0], "z": table("int4", 6)}
    proto = form(text, opset=21, weights=weights, x="6,32")
    onnx.save(proto, tmp_path / "model.onnx")
    source, file = write(generate(tmp_path / "model.onnx"), tmp_path)
    x = np.full((6, 32), 100.0, np.float32)
    out = load_class(source).from_file(file)(x).numpy()
    zeros = weights["z"].astype(np.float32)
    expected = (7 - zeros) * weights["s"]
    np.testing.assert_allclose(out, np.repeat(expected[:, None], 32, 1), rtol=1e-6)
