"""What an exporter computed of one parameter is computed of it again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import form
from tests.harness.source import check_source

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
