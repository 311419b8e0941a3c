"""The verifier: what it calls equal, and how it reports the rest."""

from __future__ import annotations

import sys
from itertools import islice

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from burnish.codegen import feeds
from burnish.codegen.errors import UsageError, VerifyError
from burnish.codegen.pipeline import generate, write
from burnish.codegen.readers import reference
from burnish.codegen.verify import compare, verify

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, 4] x, int64[batch, time] ids) => (float[batch, time, 4] y, float[4] s)
<float[5, 4] table = {%s}>
{
    one = Constant<value_ints=[1]>()
    zero = Constant<value_ints=[0]>()
    e = Gather(table, ids)
    u = Unsqueeze(x, one)
    y = Mul(e, u)
    s = ReduceSum<keepdims=0>(x, zero)
}"""

QUANTIZED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, 4] x) => (float[batch, 4] y)
<float scale = {0.1}, uint8 zero = {128}>
{
    q = QuantizeLinear(x, scale, zero)
    y = DequantizeLinear(q, scale, zero)
}"""

CANCELS = """<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, 4] x) => (float[batch, 4] y)
{
    third = Constant<value = float {0.33333334}>()
    large = Constant<value = float {3000.0}>()
    a = Mul(x, third)
    b = Add(a, large)
    y = Sub(b, large)
}"""

SOURCE = """
from burnish import nn, ops, Tensor
import numpy as np
TABLE = Tensor(np.arange(20, dtype=np.float32).reshape(5, 4) / 7)

class Model(nn.Module):
    def forward(self, x, ids):
        return TABLE[ids] * x.reshape(x.shape[0], 1, 4){change}, x.sum(0)
"""


@pytest.fixture
def model(tmp_path):
    numbers = ", ".join(str(np.float32(i) / np.float32(7)) for i in range(20))
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(MODEL % numbers), path)
    return path


@pytest.fixture
def module(tmp_path):
    def write(change=""):
        (tmp_path / "m.py").write_text(SOURCE.format(change=change))
        return tmp_path

    return write


def test_an_equal_module_agrees(model, module):
    report = verify(model, module())
    assert report.agrees
    assert [output.name for output in report.outputs] == ["y", "s"]
    assert report.inputs == {"x": "float32[2, 4]", "ids": "int64[2, 8]"}
    assert not (model.parent / "__pycache__").exists()


def test_a_wrong_module_does_not(model, module):
    report = verify(model, module(" * 1.01"))
    assert not report.agrees
    assert [output.agrees for output in report.outputs] == [False, True]
    assert report.outputs[0].max_rel == pytest.approx(0.01, rel=1e-3)


CANCELLED = """
import numpy as np

from burnish import Tensor, nn


class Model(nn.Module):
    def forward(self, x):
        return Tensor(np.float32(x.data.astype("float64") {change}))
"""


@pytest.mark.parametrize(
    ("change", "agrees"),
    [
        ("* np.float32(0.33333334)", True),  # better than float32 rounds
        ("* np.float32(0.33333334) + 1e-4", True),  # as far off as the reference
        ("* np.float32(0.33333334) + 2e-3", False),
        ("* 0.3", False),
    ],
)
def test_a_float64_run_decides_what_is_rounding(tmp_path, change, agrees):
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(CANCELS), path)
    (tmp_path / "m.py").write_text(CANCELLED.format(change=change))
    report = verify(path, tmp_path)
    assert report.agrees is agrees
    (note,) = report.notes
    assert note.startswith("y: off a float64 run by ")
    theirs = float(note.rpartition(" ")[2])
    assert 5e-5 < theirs < 1.3e-4  # half of the last place of 3,000


def test_a_clear_difference_is_one_in_float64_too(model, module):
    (note,) = verify(model, module(" * 1.01")).notes
    mine, theirs = (
        float(part.split(" ")[0].rstrip(",")) for part in note.split("by ")[1:]
    )
    assert mine > 1e-2
    assert theirs < 1e-6


UNEQUAL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[3] x) => (float[3] y, seq(float[N]) parts)
<int64[2] sizes = {1, 2}>
{ y = Neg(x) parts = SplitToSequence<axis = 0>(x, sizes) }"""

SHIFTED = """
import numpy as np
from burnish import Tensor, nn

class Model(nn.Module):
    def forward(self, x):
        y, parts = -x.data, np.split(x.data, [1])
        return Tensor(y {0}), [Tensor(part {1}) for part in parts]
"""


@pytest.mark.parametrize(
    ("changes", "agree"),
    [(("+ 0", "+ 0"), (True, True)), (("+ 1", "+ 1"), (False, False))],
)
def test_a_float64_run_excuses_no_difference_beside_infinity(tmp_path, changes, agree):
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(UNEQUAL), path)
    (tmp_path / "m.py").write_text(SHIFTED.format(*changes))
    np.save(tmp_path / "x.npy", np.float32([np.inf, 1, 2]))
    report = verify(path, tmp_path, inputs={"x": tmp_path / "x.npy"})
    assert tuple(output.agrees for output in report.outputs) == agree


WIDENED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[3] x, int64[3] n, bool c) => (float[3] y, int64[3] m)
<float[3] w = {0.1, 0.2, 0.3}>
{
    a = Mul(x, w)
    f = Cast<to = 1>(n)
    b = If(c) <
        then_branch = t () => (p) { k = Constant<value = float {0.1}>() p = Add(a, k) },
        else_branch = e () => (q) { q = Identity(a) }
    >
    y = Div(b, f)
    m = Cast<to = 7>(f)
}"""


def test_weights_constants_and_casts_are_widened(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(WIDENED), path)
    x, n = np.float32([1.1, 2.2, 3.3]), np.array([3, 7, 11])
    feeds = {"x": x, "n": n, "c": np.array(True)}
    y, m = reference.in_float64(path, feeds)
    tenth = float(np.float32(0.1))
    wanted = (x.astype("float64") * np.float32([0.1, 0.2, 0.3]) + tenth) / n
    np.testing.assert_allclose(y, wanted, rtol=1e-15)
    assert (y.dtype, m.dtype) == (np.float64, np.int64)
    assert reference.in_float64(path, {"x": x}) is None


def test_onnx_answers_where_onnxruntime_does_not(model, module, monkeypatch):
    def missing(*_):
        raise ModuleNotFoundError

    monkeypatch.setattr(reference, "_runtime", missing)
    report = verify(model, module())
    assert report.agrees
    assert report.reference == f"onnx {onnx.__version__}"


@pytest.mark.oracle
def test_onnxruntime_answers_for_a_file_that_it_cannot_optimize_again(
    model, module, monkeypatch
):
    runtime = pytest.importorskip("onnxruntime")
    levels = runtime.GraphOptimizationLevel
    started = runtime.InferenceSession

    def session(path, options, **others):
        if options.graph_optimization_level != levels.ORT_DISABLE_ALL:
            raise RuntimeError("attempt to replace the existing tensor")
        return started(path, options, **others)

    monkeypatch.setattr(runtime, "InferenceSession", session)
    report = verify(model, module())
    assert report.agrees
    assert report.reference == f"onnxruntime {runtime.__version__}"


def test_the_default_domain_may_have_its_name(model, module):
    proto = onnx.load(model)
    proto.opset_import[0].domain = "ai.onnx"
    for node in proto.graph.node[::2]:
        node.domain = "ai.onnx"
    onnx.save(proto, model)
    assert verify(model, module()).agrees


def test_nodes_may_stand_in_any_order(model, module):
    proto = onnx.load(model)
    nodes = list(proto.graph.node)[::-1]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    onnx.save(proto, model)
    assert verify(model, module()).agrees


def test_sizes_and_inputs_can_be_given(model, module, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    report = verify(model, module(), inputs={"x": tmp_path / "x.npy"}, dims={"time": 5})
    assert report.inputs == {"x": "float32[3, 4]", "ids": "int64[3, 5]"}


ZIPPED = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]>
g (float[rows, 2] x) => (seq(map(int64, float)) y) {
    y = ai.onnx.ml.ZipMap<classlabels_int64s = [0, 1]>(x)
}"""


def test_where_onnx_lacks_an_operator_a_missing_onnxruntime_is_named(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(ZIPPED), path)
    (tmp_path / "m.py").touch()
    wanted = r"onnxruntime: not installed \(pip install onnxruntime\); onnx: .*ZipMap"
    with pytest.raises(VerifyError, match=wanted):
        verify(path, tmp_path)


def test_a_reference_is_given_nothing_after_its_time(model, monkeypatch):
    fed = feeds.make(ir.load(model), size=8, given={}, dims={}, seed=0)
    assert reference.run(model, lambda: [fed])[0] is fed
    monkeypatch.setattr(reference, "_PATIENCE", -1.0)
    with pytest.raises(VerifyError, match="expected the reference to run"):
        reference.run(model, lambda: [fed])


def test_the_same_seed_gives_the_same_numbers(model, module):
    first, again, other = (verify(model, module(" + 1"), seed=s) for s in (0, 0, 1))
    assert first.outputs == again.outputs != other.outputs


WRONG = {
    "dims: expected one of batch, time, got tim": {"dims": {"tim": 2}},
    "inputs: expected one of x, ids, got z": {"inputs": {"z": "z.npy"}},
    r"expected a NumPy file \(.npy\)": {"inputs": {"x": __file__}},
}


@pytest.mark.parametrize("says", WRONG)
def test_wrong_options_say_what_there_is(model, module, says):
    with pytest.raises(UsageError, match=says):
        verify(model, module(), **WRONG[says])


def test_a_module_that_is_not_there(model, tmp_path):
    with pytest.raises(UsageError, match="run: burnish generate"):
        verify(model, tmp_path)


def test_a_module_that_fails(model, module):
    with pytest.raises(VerifyError, match=r"float32\[2, 4\].*ZeroDivisionError"):
        verify(model, module(" * (1 // 0)"))


def test_inputs_that_the_reference_refuses(model, module, tmp_path):
    np.save(tmp_path / "ids.npy", np.full((2, 3), 9))
    with pytest.raises(VerifyError, match=r"expected the reference to run"):
        verify(model, module(), inputs={"ids": tmp_path / "ids.npy"})


A = np.array([1.0, 2.0], np.float32)
COMPARED = [
    (A, A, True, ""),
    (A * (1 + 2e-5), A, True, ""),
    (A * 1.001, A, False, "differs"),
    (A.astype(np.float64), A, False, "expected float32, got float64"),
    (A[:1], A, False, "expected shape (2,), got (1,)"),
    (np.array([np.nan, 1], "f"), np.array([np.nan, 1], "f"), True, ""),
    (np.array([np.nan, 1], "f"), np.array([1, 1], "f"), False, "differs"),
    (np.array([1, 1], "f"), np.array([np.inf, 1], "f"), False, "stand elsewhere"),
    (np.array([1, 3]), np.array([1, 2]), False, "values differ"),
    (np.array([True]), np.array([True]), True, ""),
    (np.float16([1.002]), np.float16([1]), True, ""),
    (np.zeros((0, 3), "f"), np.zeros((0, 3), "f"), True, ""),
    (np.float32([-1e4, -1e4, 1.3]), np.float32([-1e4, -1e4, 1]), False, "differs"),
    (np.float32([-1e4, -1e4, 1]), np.float32([-1e4, -1e4, 1]), True, ""),
    (np.float32([-1e4, 1.3]), np.float32([-1e4, 1]), True, ""),
    (np.float32([-1e4, -1e4, 1e-3]), np.float32([-1e4, -1e4, 0]), True, ""),
    (np.float32([50, 50, 1.001]), np.float32([50, 50, 1]), True, ""),
    ([{"a": 0.3, "b": 0.7000001}], [{"b": 0.7, "a": 0.3}], True, ""),
    ([{"a": 0.3, "b": 0.71}], [{"a": 0.3, "b": 0.7}], False, "differs"),
    ([{"a": 0.3}], [{"a": 0.3, "b": 0.0}], False, "expected float64, got object"),
    ([{"a": 0.3, "b": 0.0}], [{"a": 0.3}], False, "expected object, got float64"),
    (
        [{"a": 0.3}],
        [{"a": 0.3}, {"a": 0.3}],
        False,
        "expected shape (2, 1), got (1, 1)",
    ),
    ([], [], True, ""),
    ([A, A[:1]], [A, A[:1]], True, ""),
    ([A, A[:1] * 2], [A, A[:1]], False, "differs"),
    ([A, A[:1]], [A[:1], A], False, "expected shape [(1,), (2,)], got [(2,), (1,)]"),
    ([A, A], [A, A[:1]], False, "expected shape [(2,), (1,)], got (2, 2)"),
    (A, [{"a": 0.3}], False, "expected shape (1,), got (2,)"),
]


@pytest.mark.parametrize(("got", "expected", "agrees", "reason"), COMPARED)
def test_comparison(got, expected, agrees, reason):
    result = compare("y", got, expected)
    assert result.agrees == agrees
    assert reason in result.reason


@pytest.mark.oracle
@pytest.mark.parametrize(("shape", "found"), [("rows, 3", (8, 3)), ("3", (1, 3))])
def test_dictionaries_of_classes_are_compared_by_their_numbers(tmp_path, shape, found):
    text = """<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml": 1]>
    g (float[%s] x) => (seq(map(int64, float)) y)
    {
        p = Softmax(x)
        y = ai.onnx.ml.ZipMap<classlabels_int64s=[7, 3, 5]>(p)
    }"""
    model, module = tmp_path / "m.onnx", tmp_path / "m.py"
    onnx.save(onnx.parser.parse_model(text % shape), model)
    write(generate(model), tmp_path)
    (output,) = verify(model, module).outputs
    assert output.agrees
    assert output.shape == found
    module.write_text(module.read_text().replace("softmax(x", "softmax(2 * x"))
    assert not verify(model, module).agrees


def cast_between(kind: int) -> onnx.ModelProto:
    nodes = [
        onnx.helper.make_node("Cast", ["x"], ["narrow"], to=kind),
        onnx.helper.make_node("Exp", ["narrow"], ["raised"]),
        onnx.helper.make_node("Cast", ["raised"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    x, y = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4])
        for name in "xy"
    )
    graph = onnx.helper.make_graph(nodes, "g", [x], [y])
    opsets = [onnx.helper.make_opsetid("", 18)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)


@pytest.mark.parametrize(
    ("kind", "allowed"),
    [
        (onnx.TensorProto.FLOAT, 1e-4),
        (onnx.TensorProto.FLOAT16, 5e-3),
        (onnx.TensorProto.BFLOAT16, 4e-2),
    ],
)
def test_half_precision_inside_allows_its_own_difference(tmp_path, kind, allowed):
    file = tmp_path / "half.onnx"
    onnx.save(cast_between(kind), file)
    write(generate(file), tmp_path / "out")
    (output,) = verify(file, tmp_path / "out").outputs
    scale = output.max_abs / output.max_rel if output.max_rel else None
    assert output.agrees
    assert scale is None or output.limit == pytest.approx(1e-6 + allowed * scale)


@pytest.mark.parametrize(
    ("off", "apart", "moves", "agrees"),
    [
        (0.003, 0.0, 0.0, False),
        (0.003, 0.002, 0.0, True),
        (0.003, 0.0, 0.002, True),
        (0.003, 0.0, 0.001, False),
        (0.5, 0.0, 10.0, False),  # more than a tenth of the output says nothing
    ],
)
def test_quantizers_allow_how_far_the_reference_is_from_itself(
    tmp_path, monkeypatch, off, apart, moves, agrees
):
    """Float rounding before a quantizer changes a code; few of many draws show it."""
    path = tmp_path / "q.onnx"
    onnx.save(onnx.parser.parse_model(QUANTIZED), path)
    write(generate(path), tmp_path)

    def exact(x, more):
        codes = np.clip(np.rint(x / np.float32(0.1)), -128, 127)
        return [(codes * np.float32(0.1) + more).astype(np.float32)]

    def run(path, tries):
        feeds = next(tries())
        return feeds, exact(feeds["x"], off), "onnxruntime, fused"

    def by_definition(path, feeds):
        return exact(feeds["x"], off - apart)

    def with_noise(path, feeds):
        while True:
            yield from [by_definition(path, feeds)] * 20
            yield exact(feeds["x"], off - apart - moves)

    monkeypatch.setattr(reference, "run", run)
    monkeypatch.setattr(reference, "by_definition", by_definition)
    monkeypatch.setattr(reference, "with_noise", with_noise)
    report = verify(path, tmp_path)
    assert report.agrees is agrees
    assert any("activations are quantized" in note for note in report.notes)
    assert any("near the middle" in note for note in report.notes) is bool(moves)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("operator", "turns"),
    [
        ("MatMul(x, w)", True),
        ("Add(x, w)", False),
        ("Identity(x)", False),
    ],
)
def test_noise_is_where_the_order_of_sums_is_open(tmp_path, operator, turns):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "q.onnx"
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
    g (float[64, 64] x, float[64, 64] w) => (float[64, 64] y)
    <float scale = {{0.001}}, uint16 zero = {{32768}}>
    {{
        z = {operator}
        q = QuantizeLinear(z, scale, zero)
        y = DequantizeLinear(q, scale, zero)
    }}"""
    onnx.save(onnx.parser.parse_model(text), path)
    draw = np.random.default_rng(0)
    fed = {name: draw.standard_normal((64, 64)).astype("float32") for name in "xw"}
    (plain,) = reference.by_definition(path, fed)
    first, again = (
        [moved for (moved,) in islice(reference.with_noise(path, fed), 2)]
        for _ in range(2)
    )
    off = np.rint(np.abs(first[0] - plain) / 0.001)
    assert off.max() == (1 if turns else 0)
    assert (off > 0).mean() < 0.05
    assert np.array_equal(first, again)  # the draws are always the same
    assert np.array_equal(first[0], first[1]) is not turns


@pytest.mark.oracle
def test_noise_moves_the_states_of_a_quantized_loop(tmp_path):
    pytest.importorskip("onnxruntime")
    steps, width, hidden = 80, 8, 64
    draw = np.random.default_rng(0)
    given = {
        "W": draw.integers(-64, 64, (1, width, 4 * hidden)).astype("int8"),
        "R": draw.integers(-64, 64, (1, hidden, 4 * hidden)).astype("int8"),
        "scale": np.full(1, 0.02, "float32"),
        "zero": np.zeros(1, "int8"),
    }
    names = ["x", "W", "R", *[""] * 5, "scale", "zero", "scale", "zero"]
    node = onnx.helper.make_node(
        "DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft", hidden_size=hidden
    )
    float32 = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [onnx.helper.make_tensor_value_info("x", float32, (steps, 2, width))],
        [onnx.helper.make_tensor_value_info("y", float32, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in given.items()],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    opsets.append(onnx.helper.make_opsetid("com.microsoft", 1))
    path = tmp_path / "lstm.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    fed = {"x": draw.standard_normal((steps, 2, width)).astype("float32")}
    (plain,) = reference.by_definition(path, fed)
    moved = [y for (y,) in islice(reference.with_noise(path, fed), 16)]
    off = [np.abs(y - plain).max(axis=(1, 2, 3)) for y in moved]
    assert all(each[0] < 1e-4 for each in off)  # no code of the first step turns
    assert max(each.max() for each in off) > 1e-3  # of later ones some do
