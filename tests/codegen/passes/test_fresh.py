"""Fresh vectors that an exporter stored once belong to the layers that read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form
from tests.harness.source import source_of

ONES, ZEROS = np.ones(4, np.float32), np.zeros(4, np.float32)
RANDOM = np.random.default_rng(0)

GROUPS = """a = Conv(x, w) f = Constant<value_ints=[0, 2, -1]>()
    one = Constant<value_floats=[1., 1.]>() no = Constant<value_floats=[0., 0.]>()
    r = Reshape(a, f) n = InstanceNormalization(r, one, no) s = Shape(a)
    b = Reshape(n, s) c = Mul(b, g) d = Add(c, h)
    e = Conv(d, v) q = Reshape(e, f) m = InstanceNormalization(q, one, no)
    t = Reshape(m, s) u = Mul(t, g) y = Add(u, h)"""
TWICE = """a = MatMul(x, w) b = LayerNormalization(a, g, h) c = Relu(b)
    d = MatMul(c, w) y = LayerNormalization(d, g, h)"""
COPIED = "k = Identity(g) l = Identity(h)" + GROUPS.replace("t, g", "t, k")
COPIED = COPIED.replace("u, h", "u, l")
COPIES = """k = Identity(g) l = Identity(h) a = MatMul(x, w)
    b = LayerNormalization(a, g, h) c = Relu(b) d = MatMul(c, v)
    y = LayerNormalization(d, k, l)"""
NORMS = TWICE.replace("d = MatMul(c, w)", "d = MatMul(c, v)")
BATCH = "y = BatchNormalization(x, g, h, h, g)"
BIASES = "a = Conv(x, w, h) b = Relu(a) y = Conv(b, v, h)"
SLOPES = "a = MatMul(x, w) b = PRelu(a, g) c = MatMul(b, v) y = PRelu(c, g)"
TIED = """a = Gather(w, x) b = LayerNormalization(a, g, h) c = Tanh(b)
    d = LayerNormalization(c, g, h) t = Transpose<perm=[1, 0]>(w) y = MatMul(d, t)"""

APART = """a = Gather(w, x) b = LayerNormalization(a, g, p) c = Gather(w, x)
    d = LayerNormalization(c, g, q) y = Add(b, d)"""


def _vectors(shape: tuple[int, ...] = (4,)) -> dict[str, Any]:
    return {"g": ONES.reshape(shape), "h": ZEROS.reshape(shape)}


def _matrices(*shape: int, names: str = "wv") -> dict[str, Any]:
    return {n: RANDOM.normal(size=shape).astype(np.float32) for n in names}


SCALES = "a = MatMul(x, w) b = RMSNormalization(a, g) c = MatMul(b, v)"
SCALES += " y = RMSNormalization(c, g)"

IMAGE, ROWS = "2,4,5,5", "3,4"
CASES = {
    "group norms": (GROUPS, _vectors((4, 1, 1)) | _matrices(4, 4, 1, 1), IMAGE, 48),
    "copied": (COPIED, _vectors((4, 1, 1)) | _matrices(4, 4, 1, 1), IMAGE, 48),
    "layer norms": (NORMS, _vectors() | _matrices(4, 4), ROWS, 48),
    "scales": (SCALES, {"g": ONES} | _matrices(4, 4), ROWS, 40),
    "copies": (COPIES, _vectors() | _matrices(4, 4), ROWS, 48),
    "one layer twice": (TWICE, _vectors() | _matrices(4, 4, names="w"), ROWS, 24),
    "a batch norm": (BATCH, _vectors(), IMAGE, 8),
    "slopes": (SLOPES, {"g": ONES[:1] / 4} | _matrices(4, 4), ROWS, 34),
    "biases": (BIASES, {"h": ZEROS} | _matrices(4, 4, 1, 1), IMAGE, 40),
    "norms of one table": (
        APART,
        {"g": ONES, "p": ZEROS + 1, "q": ZEROS + 2} | _matrices(6, 4, names="w"),
        "int64[3]",
        40,
    ),
    "a tied head": (TIED, _vectors() | _matrices(6, 4, names="w"), "int64[3]", 40),
}


@pytest.mark.parametrize("case", CASES)
def test_layers_have_fresh_vectors_of_their_own(case: str, tmp_path: Path) -> None:
    text, weights, given, count = CASES[case]
    model = form(text, weights=weights, x=given, opset=23)
    becomes(model)
    source, module = source_of(model, tmp_path)
    assert module.num_params == count, source


def test_a_fresh_scale_is_of_the_layer_whose_bias_is_read_beside_it() -> None:
    """Optimizers drop the scopes of torch's newer exporter, not the weights' names."""
    names = {"g": "layers.0.norm.weight", "p": "layers.0.norm.bias", "q": "norm.bias"}
    weights = {"p": ONES / 2, "q": ONES / 3} | {"g": ONES} | _matrices(4, 4)
    text = NORMS.replace(
        "b = LayerNormalization(a, g, h)", "b = LayerNormalization(a, g, p)"
    )
    model = form(text.replace("g, h", "g, q"), weights=weights, x=ROWS, opset=23)
    for held in model.graph.initializer:
        held.name = names.get(held.name, held.name)
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = names.get(name, name)
    assert becomes(model).count("nn.LayerNorm(") == 2
