"""Thresholds of passes."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir

from burnish.codegen.passes.constants.mark_folded import _are_angles
from burnish.codegen.passes.rules.attention.masks import is_low
from burnish.codegen.passes.rules.attention.product import _scale_attribute
from burnish.codegen.passes.weights.offsets import _table
from tests.codegen.passes.forms import form
from tests.codegen.passes.test_join_slices import unrolled
from tests.codegen.passes.test_pass_thresholds import GELU
from tests.codegen.passes.test_recurrent_loops import BOUNDED, loop_over_time
from tests.codegen.passes.test_unfolded import biases
from tests.codegen.thresholds.programs import Threshold, generated


def _cut(end: str) -> onnx.ModelProto:
    """The first thousand rows; `end` is the name of that number."""
    held = {"start": np.array([0]), "axis": np.array([0]), "end": np.array([1000])}
    model = form("r = Slice(x, start, end, axis) y = Tanh(r)", x="n,4", weights=held)
    model.graph.node[0].input[2] = model.graph.initializer[2].name = end
    return model


def _reports_two_nodes() -> bool:
    """Whether `--explain` says that a product of two functions is nearly a Swish."""
    lines: list[str] = []
    product = "a = Sigmoid(x) b = Tanh(x) y = Mul(a, b)"
    generated(form(product, x="2,4"), lines.append)
    return any("not Swish" in line for line in lines)


_RANGE = """a = Constant<value_float=0.0>() b = Constant<value_float=300000.0>()
    d = Constant<value_float=1.0>() c = Range(a, b, d) y = Add(x, c)"""

_SOFT_BELOW_TWO = """b = Constant<value_float=2.0>() c = Constant<value_float=2.0>()
    t = Constant<value_float=2.0>() a = Mul(x, b) e = Exp(a)
    one = Constant<value_float=1.0>() p = Add(e, one) l = Log(p) s = Div(l, c)
    g = Greater(a, t) y = Where(g, x, s)"""

_NINE = biases(1, 3, 2)

PASSES = (
    Threshold(
        "passes.constants.drop_identities._FAR",
        100,
        "the first thousand rows as all of them",
        lambda: "[:1000]" not in generated(_cut("end")),
    ),
    Threshold(
        "passes.constants.drop_identities._FAR_IN_TENSORFLOW",
        100,
        "the first thousand rows of a file from TensorFlow as all of them",
        lambda: "[:1000]" not in generated(_cut("model/slice/end:0")),
    ),
    Threshold(
        "passes.constants.fold_constants.LIMIT",
        1 << 30,
        "a megabyte of numbers in the weights that one call computes",
        lambda: "Tensor.arange" not in generated(form(_RANGE, x="300000")),
    ),
    Threshold(
        "passes.constants.mark_folded._FEW",
        4,
        "two pairs of numbers on the unit circle as a table of positions",
        lambda: _are_angles(ir.tensor(np.array([[0.6, 0.8], [1.0, 0.0]], np.float32))),
    ),
    Threshold(
        "passes.weights.offsets._FEWEST",
        3,
        "nine numbers as five offsets between three places",
        lambda: _table(ir.tensor(_NINE)) is not None,
    ),
    Threshold(
        "passes.rules.activation._LINEAR_FROM",
        1,
        "a softplus that is x from 2 on, where they differ by an eighth",
        lambda: "ops.where" not in generated(form(_SOFT_BELOW_TWO, x="2,4")),
    ),
    Threshold(
        "ops.shapes.indexing._FAR",
        100,
        "the first thousand rows with the shape of all of them",
        lambda: "[:1000]" not in generated(_cut("end")),
    ),
    Threshold(
        "passes.fuse._TELLING",
        2,
        "a report that two nodes, which any model has, are nearly a known form",
        _reports_two_nodes,
    ),
    Threshold(
        "passes.layout.join_slices._LEAST",
        2,
        "the two inputs of a siamese network as one axis",
        lambda: generated(unrolled(2)).count("self.fc(") == 1,
    ),
    Threshold(
        "passes.pattern._TOLERANCE",
        0.1,
        "an activation of the author's own as GELU",
        lambda: "gelu" in generated(form(GELU.format(1.45), x="2,4")),
    ),
    Threshold(
        "passes.recurrent.cells._DRAWS",
        ((3, 1.0), (1, 0.25)),
        "a cell with a bound that small states do not reach as nn.RNN",
        lambda: "nn.RNN" in generated(loop_over_time("RNN, relu", step=BOUNDED)),
    ),
    Threshold(
        "passes.rules.attention.masks._LOW",
        -1e3,
        "a bias that a large score outweighs as a mask",
        lambda: is_low(-1e4),
    ),
    Threshold(
        "passes.rules.attention.product._EXACT",
        1e-2,
        "attention with a scale near the usual one as attention without",
        lambda: not _scale_attribute(0.355, 8),
    ),
)
