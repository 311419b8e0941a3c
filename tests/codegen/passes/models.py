"""Models in ONNX's text form, and their numbers before and after passes."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper, numpy_helper

from burnish.codegen import passes
from burnish.codegen.account import Accounts
from burnish.codegen.readers.normal import lift_constants
from burnish.codegen.readers.sizes.shapes import infer
from tests.harness.reference import judged

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
RANDOM = np.random.default_rng(0)

#: What the nodes of the `burnish` domain mean, in ONNX's words.
BURNISH = [
    helper.make_function(
        "burnish",
        "Linear",
        ["x", "w", "b"],
        ["y"],
        [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("Add", ["h", "b"], ["y"]),
        ],
        [helper.make_opsetid("", 24)],
    ),
]


def value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(text, *, opset=18, weights=(), **shapes):
    """A model from ONNX's text form of its nodes; `y` is the output."""
    inputs = ", ".join(f"float[{shape}] {name}" for name, shape in shapes.items())
    graph = f"g ({inputs}) => (float y) {{ {text} }}"
    proto = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : {opset}]> {graph}'
    )
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    for name, array in dict(weights).items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return prepared(proto)


def prepared(proto):
    model = ir.from_proto(proto)
    lift_constants(model)
    infer(model, print)
    return model


def run(model, feeds):
    proto = ir.to_proto(model)
    # fused nodes may be newer than the model; what is used here means the same in 24
    for entry in proto.opset_import:
        if not entry.domain:
            entry.version = max(entry.version, 24)
    proto.functions.extend(BURNISH)
    return judged(proto, feeds)


def twin(model, *steps, **feeds):
    """The operators left after `steps` (all passes), which change no number."""
    before = run(model, feeds)
    accounts, lines = Accounts(passes.places(model), near=True), []
    for step in steps:
        step(model, accounts.of(step.__name__))
    if not steps:
        passes.run(model, accounts)
    accounts.explain_all(lines.append, passes.places(model))
    for mine, theirs in zip(run(model, feeds), before, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    return [node.op_type for node in model.graph], lines
