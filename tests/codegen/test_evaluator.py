"""ONNX's evaluator is asked only about what the installed version has right."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from burnish.codegen.evaluator import EvaluatorError, evaluated

FORWARD = "y = GRU<hidden_size=2>(x, W, R)"
BACK = 'y = GRU<hidden_size=2, direction="reverse">(x, W, R)'
INSIDE = f"""y = If(c) <then_branch = t () => (a) {{ {FORWARD.replace("y", "a", 1)} }},
    else_branch = e () => (b) {{ {BACK.replace("y", "b", 1)} }}>"""
HEADS = "y = Attention<q_num_heads=4, kv_num_heads={}>(x, x, x)"
ROUNDS = """y = Loop(m, {}, x) <body = b (int64 i, bool k, float[2,1,4] a)
    => (bool o, float[2,1,4] d) {{ o = Identity(k) d = Add(a, a) }}>"""
ROWS = {
    "rounds while": (ROUNDS.format("c"), None),
    "rounds": (ROUNDS.format(""), "Loop: no condition.*install onnxruntime$"),
    "heads": (HEADS.format(4), None),
    "grouped heads": (HEADS.format(2), "Attention: grouped heads.*>=1.20"),
    "forward": (FORWARD, None),
    "back": (BACK, "GRU: direction is computed wrongly by onnx 1.19.0.*>=1.23"),
    "back in a branch": (INSIDE, "GRU: direction"),
    "a size": ("y = Resize(x, , s)", None),
    "a size and no region": ("y = Resize(x, none, s)", "Resize: an empty roi.*>=1.22"),
}
HELD = {
    "W": np.ones((1, 6, 4), np.float32),
    "R": np.ones((1, 6, 2), np.float32),
    "s": np.float32([1, 1, 2]),
    "none": np.float32([]),
    "c": np.array(True),
    "m": np.array(2),
}


@pytest.mark.parametrize(("text", "refused"), ROWS.values(), ids=ROWS)
def test_an_old_evaluator_is_not_asked_about_what_it_has_wrong(
    text, refused, monkeypatch
):
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 23]> '
        f"g (float[2,1,4] x) => (float y) {{ {text} }}"
    )
    held = [numpy_helper.from_array(a, n) for n, a in HELD.items() if n in text]
    model.graph.initializer.extend(held)
    feeds = {"x": np.ones((2, 1, 4), np.float32)}
    monkeypatch.setattr(onnx, "__version__", "1.19.0")
    if refused is None:
        assert evaluated(model, feeds)[0].size
    else:
        with pytest.raises(EvaluatorError, match=refused):
            evaluated(model, feeds)


def test_more_rows_are_gathered_than_onnx_s_own_takes():
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 18]> '
        "g (float[100, 3] x, int64[100, 2] i) => (float[100, 2] y) "
        "{ y = GatherElements<axis = 1>(x, i) }"
    )
    x = np.arange(300, dtype=np.float32).reshape(100, 3)
    i = np.arange(200).reshape(100, 2) % 3
    (y,) = evaluated(model, {"x": x, "i": i})
    assert (y == np.take_along_axis(x, i, 1)).all()


@pytest.mark.parametrize(
    ("axis", "indices", "wanted"),
    [
        (1, [[2, 0]], [[2, 0]]),
        (-1, [[1], [2]], [[1], [5]]),
        (0, [[3, 1]], [[9, 4]]),
    ],
)
def test_indices_may_leave_out_places_of_other_axes(axis, indices, wanted):
    i = np.array(indices)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> '
        f"g (float[4, 3] x, int64[{i.shape[0]}, {i.shape[1]}] i) => (float[N, M] y) "
        f"{{ y = GatherElements<axis = {axis}>(x, i) }}"
    )
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (y,) = evaluated(model, {"x": x, "i": i})
    np.testing.assert_array_equal(y, wanted)
