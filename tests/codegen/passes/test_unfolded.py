"""What an exporter computed of one parameter is computed of it again."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.codegen.passes.forms import form
from tests.harness.source import check_source, floats, graph, node

KEY = "pkg.onnxscript.optimizer.folded_from"
ROW = np.linspace(0.2, 0.7, 4, dtype=np.float32)
SQUARE = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
TABLE = np.arange(12, dtype=np.float32).reshape(1, 3, 4)

CASES = {  # the constant, its values, what it was made of, and what stands there
    "exp": ("exp", ROW, ["scale"], "ops.exp(self.scale)"),
    "another exp": ("exp_3", ROW, ["scale"], "ops.exp(self.scale)"),
    "no number has such an exponential": ("exp", -ROW, ["scale"], "self.exp"),
    "sigmoid": ("sigmoid", ROW, ["gate"], "ops.sigmoid(self.gate)"),
    "tanh": ("tanh", ROW, ["gate"], "ops.tanh(self.gate)"),
    "minus": ("neg", ROW, ["gate"], "-self.gate"),
    "a copy": ("clone_1", ROW, ["gate"], "self.gate"),
    "of two": ("exp", ROW, ["scale", "gate"], "self.exp"),
    "of a node": ("exp", ROW, ["val_3"], "self.exp"),
    "another function": ("erf", ROW, ["scale"], "self.erf"),
    "rows": ("embedding", TABLE, ["places.weight", "ids"], "self.places("),
}


@pytest.mark.parametrize("case", CASES)
def test_form(case):
    name, array, recorded, line = CASES[case]
    shape = "B," + ",".join(map(str, array.shape[-2:])) if array.ndim > 1 else "B,4"
    model = form(f"y = Mul(x, {name})", weights={name: array}, x=shape)
    model.producer_name = "pytorch"
    model.graph.node[0].name = "/Mul"
    noted = model.graph.value_info.add(name=name)
    noted.metadata_props.add(key=KEY, value=repr(recorded))
    source = check_source(model)
    assert line in source, source


OBLONG = np.linspace(-1, 2, 20, dtype=np.float32).reshape(5, 4)
NORMS = (OBLONG**2).sum(1)


@pytest.mark.parametrize(
    ("name", "made", "line"),
    [
        ("t_1", OBLONG.T, "x @ self.codebook.T"),
        ("t_1", OBLONG.T + 1, "self.linear(x)"),
        ("sum_2", NORMS, "x + (self.codebook**2).sum(1)"),
        ("sum_2", NORMS[:, None], "x + (self.codebook**2).sum(1, keepdims=True)"),
        ("sum_2", NORMS * 1.01, "x + self."),
    ],
)
def test_what_a_kept_parameter_gives_is_computed_of_it(name, made, line):
    """A codebook is one parameter: exporters fold its transpose and its norms."""
    product, shape = ("MatMul", "B,4") if name == "t_1" else ("Add", "5,5")
    text = f"p = {product}(x, {name}) s = ReduceSum <keepdims = 0> (w) y = Mul(p, s)"
    weights = {name: np.ascontiguousarray(made), "q.codebook": OBLONG}
    model = form(text, weights=weights, x=shape)
    model.producer_name, model.graph.node[1].input[0] = "pytorch", "q.codebook"
    noted = model.graph.value_info.add(name=name)
    noted.metadata_props.add(key=KEY, value=repr(["pow_2", "q.codebook", "val_3"]))
    source = check_source(model)
    assert line in source.replace("self.q.", "self."), source
    apart = source.count("nn.Param(") + source.count("nn.Linear(") > 1
    assert apart == (line in ("self.linear(x)", "x + self.")), source


@pytest.mark.parametrize("other", [SQUARE, -SQUARE])
def test_copies_of_one_parameter_are_one(other):
    """A module that is called again: its weight is turned for each call."""
    weights = {"val_1": SQUARE, "val_2": other}
    model = form("u = MatMul(x, val_1) y = MatMul(u, val_2)", weights=weights, x="B,4")
    model.producer_name = "pytorch"
    for name in weights:
        noted = model.graph.value_info.add(name=name)
        noted.metadata_props.add(key=KEY, value=repr(["fc.weight"]))
    assert check_source(model).count("nn.Linear(") == (1 if other is SQUARE else 2)


@pytest.mark.parametrize("by", ["pytorch", "keras2onnx"])
@pytest.mark.parametrize("text", ["y = MatMul(x, w)", "y = Gemm(x, w)"])
def test_a_matrix_that_an_author_keeps_as_in_and_out_stays_so(by, text):
    """GPT-2's Conv1D; of other programs a Linear's weight is (out, in)."""
    table = np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)
    model = form(text, weights={"fc.weight": table}, x="B,4")
    model.producer_name, model.graph.node[0].input[1] = by, "fc.weight"
    source = check_source(model)
    option = ", transposed=True" if by == "pytorch" else ""
    assert f"nn.Linear(4, classes, bias=False{option})" in source


def biases(height: int, width: int, heads: int, signed: bool = True) -> np.ndarray:
    """Numbers of heads and of offsets in a window, (1, heads, places, places)."""
    table = floats(2 * height - 1, 2 * width - 1, heads)
    places = [(row, column) for row in range(height) for column in range(width)]
    rows = [[(a[0] - b[0], a[1] - b[1]) for b in places] for a in places]
    if not signed:
        rows = [[(abs(down), abs(along)) for down, along in row] for row in rows]
    numbers = np.array([[table[offset] for offset in row] for row in rows])
    return numbers.transpose(2, 0, 1)[None]


def folded(bias: np.ndarray) -> onnx.ModelProto:
    """Scores (batch, heads, places, places) plus what an exporter has folded."""
    nodes = [node("Add", "x onnx::Add_7", "y", "/attn/Add")]
    made = graph(nodes, {"onnx::Add_7": bias}, x=("batch", *bias.shape[-3:]))
    made.producer_name = "pytorch"
    return made


READ = "self.relative_position_bias_table[self."


@pytest.mark.parametrize(
    ("height", "width", "rows"), [(2, 2, 9), (3, 4, 35), (4, 3, 35), (1, 5, 9)]
)
def test_a_bias_of_offsets_is_a_table(height, width, rows):
    text = check_source(folded(biases(height, width, 3)), rtol=0)
    assert READ in text
    assert f"nn.Param(nn.init.normal(0.02), ({rows}, 3))" in text


@pytest.mark.parametrize(("height", "width"), [(2, 2), (3, 4), (4, 3), (1, 5)])
def test_offsets_without_a_sign_are_a_table(height, width):
    """LeViT's: as far to the left as to the right is one offset."""
    bias = biases(height, width, 3, signed=False)[0]
    text = check_source(folded(bias), rtol=0)
    assert "self.attention_biases[:, self." in text
    assert f"nn.Param(nn.init.normal(0.02), (3, {height * width}))" in text


def test_without_an_axis_of_examples() -> None:
    assert READ in check_source(folded(biases(2, 3, 2)[0]))


BRANCHES = """y = If(c) <then_branch = a () => (p) { p = Add(x, b) },
    else_branch = d () => (q) { n = Neg(x) q = Add(n, b) }>"""
READERS = {
    "both branches": (BRANCHES, 20, {"c": "bool[]"}),
    "a reader behind": (f"z{BRANCHES[1:]} y = Add(z, b)", 20, {"c": "bool[]"}),
    "before opset 13": ("y = Add(x, b)", 11, {}),
}


@pytest.mark.parametrize(("text", "opset", "given"), READERS.values(), ids=READERS)
def test_a_table_is_where_all_its_readers_see_it(text, opset, given):
    bias = biases(2, 2, 2)
    model = form(text, opset=opset, weights={"b": bias}, x="1,2,4,4", **given)
    model.producer_name = "pytorch"
    assert READ in check_source(model)


ONE_ELSE = biases(2, 2, 2)
ONE_ELSE[0, 1, 0, 1] += 1
SLOPES = np.array([0.5, 0.25], np.float32)[:, None, None]
BIASES = {
    "one pair differs": ONE_ELSE,
    "offsets with equal numbers": np.round(biases(3, 3, 1)),
    "a window of two places": biases(1, 2, 2),
    "numbers for each example": np.concatenate([biases(2, 2, 2)] * 2),
}


@pytest.mark.parametrize("case", BIASES)
def test_another_bias_is_a_parameter(case):
    bias = BIASES[case]
    nodes = [node("Add", "x onnx::Add_7", "y", "/attn/Add")]
    made = graph(nodes, {"onnx::Add_7": bias}, x=bias.shape)
    made.producer_name = "pytorch"
    assert "relative_position" not in check_source(made)
