"""Functions of a model are inlined as ONNX says; what cannot be is refused."""

import numpy as np
import pytest
from onnx.helper import make_function, make_graph, make_opsetid

from burnish.codegen.backend import BurnishBackend
from burnish.codegen.errors import ReadError
from burnish.codegen.readers import read
from tests.codegen.readers.hostile import N, info, model, write

X = np.array([1.0, -2.0], np.float32)


def body(*nodes, inputs=("a",), outputs=("b",), attributes=()):
    opsets = [make_opsetid("", 20), make_opsetid("f", 1)]
    return make_function("f", "F", inputs, outputs, nodes, opsets, attributes)


def calling(function, *nodes, outputs=("y",)):
    nodes = nodes or [N("F", ["x"], ["y"], domain="f")]
    inputs = [info("x", [2])]
    return model(nodes, inputs, outputs, functions=[function], domains=["f"])


def in_a_branch():
    """A value of the function, read in a graph inside of it."""
    branches = {
        f"{name}_branch": make_graph(
            [N(op, ["t"], [name])], name, [], [info(name, [2])]
        )
        for name, op in (("then", "Neg"), ("else", "Exp"))
    }
    nodes = [
        N("Exp", ["a"], ["t"]),
        N("ReduceSum", ["a"], ["s"], keepdims=0),
        N("Constant", [], ["zero"], value_float=0.0),
        N("Less", ["s", "zero"], ["c"]),
        N("If", ["c"], ["b"], **branches),
    ]
    calls = [N("F", ["x"], ["m"], domain="f"), N("F", ["m"], ["y"], domain="f")]
    return calling(body(*nodes), *calls)


RUN = {
    "its input is its output": (
        lambda: calling(
            body(outputs=["a"]),
            N("F", ["x"], ["m"], domain="f"),
            N("Neg", ["m"], ["y"]),
        ),
        [-X],
    ),
    "its input is the model's output": (lambda: calling(body(outputs=["a"])), [X]),
    "one output twice": (
        lambda: calling(
            body(N("Neg", ["a"], ["b"]), outputs=["b", "b"]),
            N("F", ["x"], ["y", "z"], domain="f"),
            outputs=["y", "z"],
        ),
        [-X, -X],
    ),
    "fewer outputs than it has": (
        lambda: calling(
            body(N("Neg", ["a"], ["b"]), N("Exp", ["a"], ["c"]), outputs=["b", "c"])
        ),
        [-X],
    ),
    "its nodes in another order": (
        lambda: calling(body(N("Neg", ["t"], ["b"]), N("Exp", ["a"], ["t"]))),
        [-np.exp(X)],
    ),
    "names that the model has too": (
        lambda: calling(
            body(
                N("Neg", ["x"], ["x_2"]),
                N("Exp", ["x_2"], ["y"]),
                inputs="x",
                outputs="y",
            ),
            N("F", ["x"], ["x_2"], domain="f"),
            N("F", ["x_2"], ["y"], domain="f"),
        ),
        [np.exp(-np.exp(-X))],
    ),
    "an attribute from the call": (
        lambda: calling(leaky(), N("F", ["x"], ["y"], domain="f", slope=0.5)),
        [np.where(X < 0, 0.5 * X, X)],
    ),
    "an attribute that the call leaves out": (
        lambda: calling(leaky()),
        [np.where(X < 0, 0.01 * X, X)],
    ),
    "an input that the call leaves out": (
        lambda: calling(
            body(N("Clip", ["a", "low", "top"], ["b"]), inputs=["a", "low", "top"])
        ),
        [X],
    ),
    "a graph in a node": (in_a_branch, [-np.exp(-np.exp(X))]),
}


def leaky():
    made = body(N("LeakyRelu", ["a"], ["b"]), attributes=["slope"])
    made.node[0].attribute.add(name="alpha", type=1, ref_attr_name="slope")
    return made


@pytest.mark.parametrize(("build", "expected"), RUN.values(), ids=RUN)
def test_numbers_are_those_of_the_calls(build, expected):
    results = BurnishBackend.run_model(build(), [X])
    for got, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


REFUSED = {
    "at most 1 inputs": lambda: calling(
        body(N("Neg", ["a"], ["b"])), N("F", ["x", "x"], ["y"], domain="f")
    ),
    "at most 1 outputs": lambda: calling(
        body(N("Neg", ["a"], ["b"])), N("F", ["x"], ["y", "z"], domain="f")
    ),
    "without cycles": lambda: calling(
        body(N("Neg", ["t"], ["b"]), N("Neg", ["b"], ["t"]))
    ),
    "valid ONNX graph": lambda: calling(body(N("Neg", ["a"], ["c"]))),
    "attributes that are no graphs": lambda: calling(
        body(N("Neg", ["a"], ["b"]), attributes=["g"]),
        N("F", ["x"], ["y"], domain="f", g=make_graph([], "g", [], [])),
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_no_call_is_refused(message, tmp_path):
    path = tmp_path / "model.onnx"
    write(REFUSED[message], path)
    with pytest.raises(ReadError, match=message):
        read(path)
