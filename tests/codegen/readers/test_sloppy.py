"""Files not quite as the specification asks, which onnxruntime runs: they are read."""

import numpy as np
import pytest
from onnx import helper

from burnish.codegen.backend import BurnishBackend
from tests.codegen.readers.hostile import N, floats, info, ints, model

pytestmark = pytest.mark.oracle

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
INPUT = [info("x", [2, 3, 4])]


def of(*nodes, **options):
    return model(list(nodes), INPUT, **options)


def unnamed():
    made = of(N("Relu", ["x"], ["y"]))
    made.graph.name = ""
    made.producer_name = ""
    return made


def untyped_attribute():
    made = of(N("Softmax", ["x"], ["y"], axis=1))
    made.ir_version = 3
    return made


def listed():
    """Old files list every initializer among the inputs."""
    held = floats("w", np.ones(4))
    return model(
        [N("Add", ["x", "w"], ["y"])], [*INPUT, info("w", [4])], tensors=[held]
    )


def spelled():
    made = of(N("Relu", ["x"], ["y"]))
    made.graph.node[0].domain = "ai.onnx"
    return made


def wrong_dims():
    made = of(N("Relu", ["x"], ["y"]))
    made.graph.value_info.append(helper.make_tensor_value_info("nobody", 1, [7]))
    return made


def wrong_operand():
    """The shape that is declared would not broadcast."""
    held = floats("w", np.ones((2, 3, 4)))
    made = of(N("Relu", ["x"], ["r"]), N("Add", ["r", "w"], ["y"]), tensors=[held])
    made.graph.value_info.append(helper.make_tensor_value_info("r", 1, [5, 3, 4]))
    return made


def imported():
    made = of(N("Relu", ["x"], ["y"]))
    made.opset_import.append(helper.make_opsetid("never.used", 3))
    return made


def left_out_zero():
    made = of(N("Gemm", ["a", "b"], ["y"], transB=0), tensors=MATRICES)
    made.graph.node[0].attribute[0].ClearField("i")
    return made


MATRICES = [floats("a", np.ones((2, 3))), floats("b", np.ones((3, 2)))]
CASES = {
    "a zero that is not written": left_out_zero,
    "no names": unnamed,
    "an old ir_version": untyped_attribute,
    "weights among the inputs": listed,
    "the domain's other name": spelled,
    "a shape of no value": wrong_dims,
    "a wrong shape of an operand": wrong_operand,
    "a domain that is not used": imported,
    "an empty name for an optional input": lambda: of(
        N("Clip", ["x", "", "top"], ["y"]), tensors=[floats("top", np.float32(0.5))]
    ),
    "optional inputs left empty at the end": lambda: of(
        N("Clip", ["x", "", ""], ["y"])
    ),
    "outputs left empty": lambda: of(
        N("MaxPool", ["x"], ["y", ""], kernel_shape=[2]),
    ),
    "a node without use": lambda: of(N("Relu", ["x"], ["y"]), N("Neg", ["x"], ["z"])),
    "a weight without use": lambda: of(
        N("Relu", ["x"], ["y"]), tensors=[ints("unused", [1, 2])]
    ),
    "attributes that say the default": lambda: of(
        N("Gemm", ["a", "b"], ["y"], alpha=1.0, beta=1.0, transA=0, transB=0),
        tensors=MATRICES,
    ),
}


@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
def test_what_onnxruntime_runs_is_read(build):
    runtime = pytest.importorskip("onnxruntime")
    made = build()
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(made.SerializeToString(), options)
    feeds = {"x": X} if any(i.name == "x" for i in session.get_inputs()) else {}
    expected = session.run(None, feeds)
    ours = BurnishBackend.run_model(made, list(feeds.values()))
    for got, wanted in zip(ours, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
