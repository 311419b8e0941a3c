"""Inputs that are made for a model: of sizes that its layers take."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from burnish.codegen import feeds
from burnish.codegen.errors import VerifyError
from burnish.codegen.pipeline import generate, write
from burnish.codegen.verify import verify

SOUND = """<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, 1, samples] x) => (float[batch, 1, frames] y)
<float[1, 1, 400] window = {%s}> { y = Conv<strides=[160]>(x, window) }"""


@pytest.mark.oracle
def test_windows_of_sound_are_fed_enough_samples(tmp_path):
    path = tmp_path / "sound.onnx"
    onnx.save(onnx.parser.parse_model(SOUND % ", ".join(["0.5"] * 400)), path)
    source, _ = write(generate(path), tmp_path)
    report = verify(path, source)
    assert report.inputs == {"x": "float32[2, 1, 4096]"}
    assert report.agrees


ONE_ROW = """<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, time, 6] x) => (float[time, 6] y) {
    k = Constant<value_ints=[0]>() y = Squeeze(x, k)
}"""
CLOUD = """<ir_version: 8, opset_import: ["" : 18]>
g (float[a, b, c] x, int64[n] ids) => (float[n, b, c] y) {
    table = Constant<value_floats=[0.5, 1.0, 2.0]>()
    wide = Constant<value_ints=[3, 1, 1]>()
    low = Constant<value_int=0>() below = Less(ids, low) whole = Cast<to=7>(below)
    three = Constant<value_int=3>() wrapped = Mul(whole, three) i = Add(ids, wrapped)
    rows = Reshape(table, wide) taken = Gather(rows, i) last = Constant<value_int=0>()
    first = Gather(x, last) y = Mul(taken, first)
}"""
SPECTROGRAM = """<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, 1, frames, 20] x) => (float[batch, 1, f, 20] y)
<float[1, 1, 40, 1] window = {%s}> { y = Conv(x, window) }"""
FIXED_LENGTH = """<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, time, 4] x) => (float[batch, 9, 2, 2] y) {
    heads = Constant<value_ints=[0, 9, 2, 2]>() y = Reshape(x, heads)
}"""
MATRIX = """<ir_version: 8, opset_import: ["" : 18]>
g (float[rows, features] x) => (float[rows, 3] y)
<float[%s] w = {%s}> { y = %s }"""
FLATTENED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[frames, bands] x) => (float[rows, 2] y)
<float[1, 1, 9, 5] k = {%s}, float[23, 2] w = {%s}> {
    axes = Constant<value_ints=[0, 1]>() image = Unsqueeze(x, axes) c = Conv(image, k)
    map = Squeeze(c, axes) shape = Constant<value_ints=[-1, 23]>()
    rows = Reshape(map, shape) y = MatMul(rows, w)
}"""
SQUARE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N, 3, H, W] x) => (float[N, 2] y)
<float[108, 2] w = {%s}> {
    p = AveragePool<kernel_shape = [4, 4], strides = [4, 4]>(x)
    rows = Flatten(p) y = MatMul(rows, w)
}"""
POSITIONS = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N, time, 2] x) => (float[N, t, 2] y)
<float[1, 11, 2] table = {%s}> { y = Add(x, table) }"""

NEITHER_SHORT_NOR_LONG = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N, time, 2] x) => (float[N, t, 2] y) {
    sizes = Shape<start = 1, end = 2>(x) none = Constant<value_int = 0>()
    time = Squeeze(sizes) one = Constant<value_int = 1>() all = Range(none, time, one)
    eight = Constant<value_int = 8>() block = Div(all, eight)
    table = Constant<value_floats = [0.5, 1.0, 2.0, 3.0, 4.0]>()
    scale = Gather(table, block) last = Constant<value_ints = [-1]>()
    column = Unsqueeze(scale, last) z = Mul(x, column)
    ninth = Gather<axis = 1>(x, eight) middle = Constant<value_ints = [1]>()
    row = Unsqueeze(ninth, middle) y = Add(z, row)
}"""
CHANNELS = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N, channels, time] x) => (float[N, 4, time] y)
<float[4, 6, 1] w = {%s}> { y = Conv<group = 2>(x, w) }"""
JOINED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[rows, features] x) => (float[all, 13] y)
<float[2, 13] head = {%s}> { y = Concat<axis = 0>(head, x) }"""


def halves(count: int) -> str:
    return ", ".join(["0.5"] * count)


FED = {
    "bands behind a convolution that a matrix takes": (
        FLATTENED % (halves(45), halves(46)),
        {"x": (64, 27)},
    ),
    "square images behind a pool": (SQUARE % halves(216), {"x": (2, 3, 24, 24)}),
    "channels of a convolution": (CHANNELS % halves(24), {"x": (2, 12, 8)}),
    "columns of rows that are joined": (JOINED % halves(26), {"x": (8, 13)}),
    "as many steps as positions": (POSITIONS % halves(22), {"x": (2, 11, 2)}),
    "a length between": (NEITHER_SHORT_NOR_LONG, {"x": (2, 16, 2)}),
    "a length that the exporter fixed": (FIXED_LENGTH, {"x": (2, 9, 4)}),
    "sound whose batch has no name": (
        SOUND.replace("batch", "s0") % ", ".join(["0.5"] * 400),
        {"x": (2, 1, 4096)},
    ),
    "a file of one row alone": (ONE_ROW, {"x": (1, 8, 6)}),
    **{
        f"features that {made} takes": (
            MATRIX % (shape, ", ".join(["0.5"] * 33), made),
            {"x": (8, 11)},
        )
        for shape, made in [
            ("11, 3", "MatMul(x, w)"),
            ("3, 11", "Gemm<transB = 1>(x, w)"),
        ]
    },
    "ids that are wrapped": (CLOUD, {"x": (8, 8, 8), "ids": (8,)}),
    "frames of a spectrogram": (
        SPECTROGRAM % ", ".join(["0.5"] * 40),
        {"x": (2, 1, 64, 20)},
    ),
}


@pytest.mark.oracle
@pytest.mark.parametrize(("text", "shapes"), FED.values(), ids=FED)
def test_inputs_that_the_file_takes_are_found(tmp_path, text, shapes):
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    report = verify(path, write(generate(path), tmp_path)[0])
    assert report.agrees
    fed = {name: made.partition("[")[2] for name, made in report.inputs.items()}
    assert fed == {n: f"{', '.join(map(str, s))}]" for n, s in shapes.items()}


UNFIT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[frames, bands] x) => (float[5, 7] y)
<float[11, 3] w = {%s}, float[1, 1, 9, 1] k = {%s}, int64[2] no = {5, 7}> {
    axes = Constant<value_ints=[0, 1]>() image = Unsqueeze(x, axes) c = Conv(image, k)
    map = Squeeze(c, axes) rows = MatMul(map, w) y = Reshape(rows, no)
}"""


@pytest.mark.oracle
def test_where_nothing_runs_the_verdict_says_what_layers_ask_for(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(UNFIT % (halves(33), halves(9))), path)
    (tmp_path / "m.py").touch()
    with pytest.raises(VerifyError, match="ask for bands = 11, frames >= 9"):
        verify(path, tmp_path)


SCALARS = """<ir_version: 8, opset_import: ["" : 18]>
g (float x, bool b, int64 i) => (float y) { y = Identity(x) }"""


def test_scalars_are_fed_as_arrays():
    """onnxruntime takes no numbers of NumPy's that are not arrays."""
    graph = ir.from_proto(onnx.parser.parse_model(SCALARS))
    fed = feeds.make(graph, size=8, given={}, dims={}, seed=0)
    assert {name: type(array) for name, array in fed.items()} == dict.fromkeys(
        "xbi", np.ndarray
    )
    assert [array.dtype.kind for array in fed.values()] == ["f", "b", "i"]


@pytest.mark.oracle
def test_images_are_larger_than_the_model_s_strides(tmp_path):
    from burnish.codegen import ModelGen

    path = tmp_path / "pools.onnx"
    pool = "MaxPool<kernel_shape=[2, 2], strides=[2, 2]>"
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
g (float["any.0", 3, "any.1", "any.2"] x) => (float[a, 3, b, c] y)
{{ a = {pool}(x) b = {pool}(a) c = {pool}(b) y = {pool}(c) }}"""
    onnx.save(onnx.parser.parse_model(text), path)
    ModelGen(out_dir=tmp_path).input(path).run()
    report = verify(path, tmp_path)
    assert report.agrees
    assert report.inputs == {"x": "float32[2, 3, 64, 64]"}
    assert report.outputs[0].shape == (2, 3, 4, 4)
