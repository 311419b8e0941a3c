"""Axes of one input that share a name take sizes of their own, as in onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from burnish.codegen.backend import BurnishBackend
from burnish.codegen.readers.sizes.input_axes import rename_input_axes
from burnish.errors import InputError
from tests.codegen.readers.hostile import N, floats, info, ints, model

RANDOM = np.random.default_rng(0)


def x(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def turned():
    nodes = [N("Transpose", ["x"], ["t"], perm=[1, 0]), N("Relu", ["t"], ["y"])]
    return model(nodes, [info("x", ["N", "N"])], [info("y", ["N", "N"])])


def picture():
    """The batch has the same name too, and what the file says of sums of it is false"""
    nodes = [
        N("Conv", ["x", "w"], ["h"]),
        N("Shape", ["h"], ["s"]),
        N("Slice", ["s", "zero", "one"], ["batch"]),
        N("Concat", ["batch", "rest"], ["sizes"], axis=0),
        N("Reshape", ["h", "sizes"], ["y"]),
    ]
    tensors = [floats("w", x(2, 3, 3, 3)), ints("zero", [0]), ints("one", [1])]
    tensors.append(ints("rest", [-1]))
    ports = [info("x", ["N", 3, "N", "N"])], [info("y", ["N", "2*N"])]
    made = model(nodes, *ports, tensors=tensors)
    made.graph.value_info.append(info("h", ["N", 2, "N - 2", "N - 2"]))
    return made


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize(
    ("build", "shape"), [(turned, (3, 4)), (picture, (2, 3, 7, 9))]
)
def test_axes_of_one_input_may_differ(build, shape):
    made, given = build(), x(*shape)
    got = BurnishBackend.prepare(made).run([given])[0]
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(made.SerializeToString())
    (expected,) = session.run(None, {"x": given})
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


TOWERS = {
    "apart": [N("Relu", ["a"], ["y"]), N("Tanh", ["b"], ["z"])],
    "joined": [N("Relu", ["a"], ["t"]), N("Concat", ["t", "b"], ["y"], axis=-2)],
    "scored": [N("Transpose", ["b"], ["t"]), N("MatMul", ["a", "t"], ["y"])],
    "softmax of scores": [
        N("Transpose", ["b"], ["t"]),
        N("MatMul", ["a", "t"], ["s"]),
        N("Mul", ["s", "two"], ["u"]),
        N("Softmax", ["u"], ["y"]),
    ],
    "sized": [N("Relu", ["a"], ["y"]), N("Shape", ["b"], ["z"])],
}


def towers(nodes):
    ports = [info("a", ["N", 4]), info("b", ["N", 4])]
    made = model(nodes, ports, tensors=[floats("two", 2.0)])
    names = [name for node in nodes for name in node.output if name in "yz"]
    del made.graph.output[:]
    kinds = dict.fromkeys(names, 1) | ({"z": 7} if nodes[1].op_type == "Shape" else {})
    made.graph.output.extend(info(name, None, kind) for name, kind in kinds.items())
    return made


@pytest.mark.oracle("onnxruntime")
@pytest.mark.parametrize("name", TOWERS)
def test_inputs_that_nothing_ties_may_differ(name):
    """The file calls both batches N; onnxruntime takes any two sizes."""
    runtime = pytest.importorskip("onnxruntime")
    made = towers(TOWERS[name])
    session = runtime.InferenceSession(made.SerializeToString())
    prepared = BurnishBackend.prepare(made)
    for rows in ((3, 3), (3, 5), (1, 5)):
        given = {key: x(count, 4) for key, count in zip("ab", rows, strict=True)}
        expected = session.run(None, given)
        for got, one in zip(prepared.run(list(given.values())), expected, strict=True):
            np.testing.assert_allclose(got, one, rtol=1e-5, atol=1e-6)


TIED = {
    "sum": [N("Add", ["a", "b"], ["y"])],
    "beside": [N("Concat", ["a", "b"], ["y"], axis=1)],
    "inner": [N("Transpose", ["a"], ["t"]), N("MatMul", ["t", "b"], ["y"])],
    "later": [
        N("Transpose", ["b"], ["t"]),
        N("MatMul", ["a", "t"], ["s"]),
        N("MatMul", ["s", "a"], ["u"]),
        N("Add", ["u", "a"], ["y"]),
    ],
}


def test_a_new_name_is_nowhere_in_the_file():
    made = model(
        [N("Relu", ["a"], ["r"]), N("NonZero", ["r"], ["p"]), N("Shape", ["p"], ["y"])],
        [info("a", ["N", 4]), info("b", ["N", 4])],
        [info("y", None, 7), info("z", ["N", 4])],
    )
    made.graph.node.append(N("Tanh", ["b"], ["z"]))
    made.graph.value_info.append(info("p", [2, "N_2"], 7))
    sizes, _ = BurnishBackend.prepare(made).run([np.ones((3, 4), "f"), x(5, 4)])
    assert sizes.tolist() == [2, 12]


def test_tensors_of_a_sequence_keep_their_name():
    seq = helper.make_tensor_sequence_value_info("s", 1, ["N", 4])
    nodes = [
        N("SequenceAt", ["s", "first"], ["t"]),
        N("Concat", ["t", "b"], ["y"], axis=1),
    ]
    tensors = [ints("first", 0)]
    given = [info("a", ["N", 4]), info("b", ["N", 4]), seq]
    made = model([*nodes, N("Relu", ["a"], ["z"])], given, ["y", "z"], tensors)
    said: list[str] = []
    rename_input_axes(ir.from_proto(made), said.append)
    assert said == []


def test_decisions_are_told_in_the_order_of_inputs():
    shapes = {"a": "NM", "b": "NK", "c": "KM", "d": "MN"}
    nodes = [N("Relu", [name], [f"y{name}"]) for name in shapes]
    made = model(nodes, [info(name, list(axes)) for name, axes in shapes.items()])
    del made.graph.output[:]
    said: list[str] = []
    rename_input_axes(ir.from_proto(made), said.append)
    assert [(line[7], line[-4:-1]) for line in said] == [
        ("b", "N_2"),
        ("d", "N_3"),
        ("d", "M_3"),
        ("c", "M_2"),
        ("c", "K_2"),
    ]


@pytest.mark.parametrize("name", TIED)
def test_inputs_that_an_operator_ties_share_a_size(name):
    made = model(TIED[name], [info("a", ["N", 4]), info("b", ["N", 4])])
    with pytest.raises(InputError, match="with N=3 as a"):
        BurnishBackend.prepare(made).run([x(3, 4), x(5, 4)])


def test_a_name_of_several_inputs_is_one_size():
    """A mask (length, length) goes with its ids (batch, length)."""
    nodes = [N("MatMul", ["mask", "x"], ["y"])]
    made = model(nodes, [info("x", ["b", "L", 4]), info("mask", ["L", "L"])])
    made.graph.output[0].CopyFrom(onnx.ValueInfoProto(name="y"))
    prepared = BurnishBackend.prepare(made)
    assert prepared.run([x(2, 3, 4), x(3, 3)])[0].shape == (2, 3, 4)
    with pytest.raises(InputError, match="L"):
        prepared.run([x(2, 3, 4), x(3, 4)])
