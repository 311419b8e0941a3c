"""Functions that are written in another opset than the model: ONNX's evaluator judges.

skl2onnx writes KNNImputer's so.
"""

import numpy as np
import onnx
import pytest
from onnx import helper as h

from burnish.codegen.backend import BurnishBackend
from burnish.codegen.errors import ReadError
from burnish.codegen.pipeline import generate
from tests.codegen.readers.hostile import N, floats, info, ints, model
from tests.harness.reference import judged

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
CALL = N("F", ["x"], ["y"], "first.call", domain="own")


def calling(opset, main, nodes, inputs=("a",), attributes=(), **options):
    """A model of opset `main` with a function of another."""
    imports = [h.make_opsetid("", opset), h.make_opsetid("own", 1)]
    function = h.make_function(
        "own", "F", list(inputs), ["b"], nodes, imports, list(attributes)
    )
    call = options.pop("call", CALL)
    more = [*options.pop("more", ()), function]
    return model(
        [call, *options.pop("after", ())],
        [info("x", ["n", 3, 4])],
        functions=more,
        domains=["own"],
        opset=main,
        **options,
    )


def squeezed():
    return [
        N("Unsqueeze", ["a"], ["u"], axes=[0]),
        N("Squeeze", ["u"], ["b"], axes=[0]),
    ]


def mean_of_new():
    return [
        N("Constant", [], ["axes"], value_ints=[1]),
        N("ReduceMean", ["a", "axes"], ["b"], keepdims=1),
    ]


def branching():
    then = h.make_graph(squeezed(), "then", [], [info("b")])
    other = h.make_graph([N("Neg", ["a"], ["e"])], "else", [], [info("e")])
    return [
        N("Constant", [], ["zero"], value_float=0.0),
        N("ReduceSum", ["a"], ["sum"], keepdims=0),
        N("Greater", ["sum", "zero"], ["c"]),
        N("If", ["c"], ["r"], then_branch=then, else_branch=other),
        N("Identity", ["r"], ["b"]),
    ]


def of_attributes():
    leaky = N("LeakyRelu", ["u"], ["l"])
    leaky.attribute.append(
        onnx.AttributeProto(
            name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT
        )
    )
    first, last = squeezed()
    last.input[0] = "l"
    call = N("F", ["x"], ["y"], domain="own", slope=0.3)
    return calling(11, 18, [first, leaky, last], attributes=["slope"], call=call)


def distances(opset, main):
    """KNNImputer's: distances of an untyped function, then the nearest."""
    nodes = [
        N("Unsqueeze", ["a"], ["left"], axes=[1]),
        N("Unsqueeze", ["t"], ["right"], axes=[0]),
        N("Sub", ["left", "right"], ["apart"]),
        N("ReduceSumSquare", ["apart"], ["far"], axes=[2], keepdims=0),
        N("Sqrt", ["far"], ["b"]),
    ]
    rows = np.random.default_rng(1).normal(size=(6, 4))
    made = calling(
        *(opset, main, nodes),
        inputs=["a", "t"],
        call=N("F", ["row", "table"], ["far"], domain="own"),
        after=[N("TopK", ["far", "k"], ["y", "places"], largest=0)],
        tensors=[floats("table", rows), ints("k", [2]), ints("rows", [-1, 4])],
    )
    made.graph.node.insert(0, N("Reshape", ["x", "rows"], ["row"]))
    return made


def nested():
    inner = h.make_function(
        "own",
        "G",
        ["a"],
        ["b"],
        [N("ReduceMean", ["a"], ["b"], axes=[1])],
        [h.make_opsetid("", 13)],
    )
    nodes = [N("G", ["a"], ["g"], domain="own"), N("Relu", ["g"], ["b"])]
    return calling(15, 18, nodes, more=[inner])


CASES = {
    "the same meaning, newer": lambda: calling(20, 13, [N("Relu", ["a"], ["b"])]),
    "axes of an attribute": lambda: calling(11, 20, squeezed()),
    "axes of an input": lambda: calling(18, 13, mean_of_new()),
    "in an old model": lambda: calling(15, 9, [N("Abs", ["a"], ["b"])]),
    "a branch": lambda: calling(12, 18, branching()),
    "distances, as KNNImputer has them": lambda: distances(11, 18),
    "distances in an old model": lambda: distances(12, 13),
    "functions that call functions": nested,
}


@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
def test_functions_keep_their_opset(build):
    made = build()
    (expected, *_) = judged(made, {"x": X})
    (got, *_) = BurnishBackend.run_model(made, [X])
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_attributes_of_the_call():
    (got,) = BurnishBackend.run_model(of_attributes(), [X])
    np.testing.assert_allclose(got, np.where(X > 0, X, 0.3 * X), rtol=1e-6)


def test_an_operator_means_what_its_opset_says():
    """Softmax flattened until opset 13; the function does, the model does not."""
    softmax = N("Softmax", ["y0"], ["y"], axis=1)
    call = N("F", ["x"], ["y0"], domain="own")
    nodes = [N("Softmax", ["a"], ["b"], axis=1)]
    (got,) = BurnishBackend.run_model(
        calling(11, 20, nodes, call=call, after=[softmax]), [X]
    )
    flat = np.exp(X.reshape(2, -1))
    inner = (flat / flat.sum(1, keepdims=True)).reshape(X.shape)
    outer = np.exp(inner) / np.exp(inner).sum(1, keepdims=True)
    np.testing.assert_allclose(got, outer, rtol=1e-5)


def test_a_function_of_another_opset_keeps_its_scope(tmp_path):
    weight = floats("w", np.ones((4, 4)))
    nodes = [N("MatMul", ["a", "t"], ["m"]), N("Unsqueeze", ["m"], ["b"], axes=[0])]
    call = N("F", ["x", "w"], ["y"], "first.call", domain="own")
    made = calling(11, 18, nodes, inputs=["a", "t"], call=call, tensors=[weight])
    path = tmp_path / "scoped.onnx"
    onnx.save(made, path)
    assert "self.first = " in generate(path).text


def test_a_function_newer_than_all_that_is_known_is_refused(tmp_path):
    made = calling(99, 20, [N("Relu", ["a"], ["b"])])
    path = tmp_path / "new.onnx"
    onnx.save(made, path)
    with pytest.raises(ReadError, match="function 'F': expected opset 20, got 99"):
        generate(path)
