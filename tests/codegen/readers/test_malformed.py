"""Nodes that parse but that nothing could run: one error, which names the node."""

import numpy as np
import pytest
from onnx import AttributeProto as T

from burnish.codegen import pipeline
from burnish.codegen.errors import ConversionError
from tests.codegen.readers.hostile import N, floats, info, ints, model, write

X = [info("x", [2, 3, 4])]


def one(kind, inputs=("x",), tensors=(), opset=18, **attributes):
    node = N(kind, list(inputs), ["y"], name="culprit", **attributes)
    return model([node], X, tensors=tensors, opset=opset)


def bounds():
    held = [ints("from", [0]), ints("to", [1]), ints("axes", [0, 1])]
    return one("Slice", ["x", "from", "to", "axes"], held)


def least():
    return one("Clip", ["x", "min"], [floats("min", [0.0, 1.0])])


def pads():
    held = [ints("pads", [0, 0]), floats("value", 0.0), ints("axes", [0, 1])]
    return one("Pad", ["x", "pads", "value", "axes"], held)


def no_value():
    made = one("HardSigmoid", beta=0.5)
    made.graph.node[0].attribute.add(name="alpha", type=1, ref_attr_name="elsewhere")
    return made


def no_text():
    made = one("Pad", ["x", "pads"], [ints("pads", [0] * 6)], mode="edge")
    made.graph.node[0].attribute[0].s = b"\xff\xff"
    return made


def untyped_loss():
    """A body that ONNX makes from the types of inputs, of which there are none."""
    nodes = [
        N("Lost", ["x"], ["h"], domain="nobody", name="culprit"),
        N("SoftmaxCrossEntropyLoss", ["h", "t"], ["y"], ignore_index=2),
    ]
    inputs = [*X, info("t", [2], 7)]
    return model(nodes, inputs, domains=["nobody"], opset=13)


def cropped():
    """Two sizes for one axis; a body that ONNX makes slices both."""
    node = N("CenterCropPad", ["x", "sizes"], ["y"], name="culprit")
    return model([node], [info("x", [2]), info("sizes", [2], 7)], [info("y", [3])])


def kernel():
    """Output sizes follow from the kernel's, and nothing says what those are."""
    nodes = [N("ConvTranspose", ["x", "w"], ["y"], "culprit", auto_pad="SAME_UPPER")]
    inputs = [*X, info("w", [3, 2, "k"])]
    return model(nodes, inputs, [info("y", [2, 2, 4])])


def reshaped():
    """A weight in a shape of more elements, too large to be computed at once."""
    held = [floats("w", [1.0, 2.0, 3.0, 4.0]), ints("sizes", [1, 2**31 - 1])]
    nodes = [
        N("Reshape", ["w", "sizes"], ["r"], "culprit"),
        N("Add", ["x", "r"], ["y"]),
    ]
    return model(nodes, [info("x", [1])], [info("y", [1, 2**31 - 1])], tensors=held)


def vectors(count, length):
    fields = {"coefficients": [1.0] * count, "support_vectors": [1.0] * length}
    fields |= {"n_supports": count, "kernel_type": "LINEAR", "rho": [1.0]}
    node = N("SVMRegressor", ["x"], ["y"], "culprit", domain="ai.onnx.ml", **fields)
    outputs = [info("y", [1, 1])]
    return model([node], [info("x", [1, 4])], outputs, domains=["ai.onnx.ml"])


def in_attribute(made, kind=None, **fields):
    """Other fields of the first node's first attribute."""
    attribute = made.graph.node[0].attribute[0]
    for field in "ifs":
        attribute.ClearField(field)
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(attribute, name).extend(value)
        else:
            setattr(attribute, name, value)
    attribute.type = attribute.type if kind is None else kind
    return made


def repeated():
    made = one("Softmax", axis=1)
    made.graph.node[0].attribute.add(name="axis", type=T.INT, i=2)
    return made


def lstm(**shapes):
    """An LSTM of 4 features and 4 hidden units, but for the shapes that are given."""
    names = ["W", "R", "B", "", "", "", "P"]
    wanted = {"W": (1, 16, 4), "R": (1, 16, 4), "B": (1, 32), "P": (1, 12)} | shapes
    held = [floats(name, np.ones(shape)) for name, shape in wanted.items()]
    return one("LSTM", ["x", *names], held, hidden_size=4)


def softmax(**fields):
    return in_attribute(one("Softmax", axis=1), **fields)


CASES = {
    "a number in the field of another type": lambda: softmax(f=1.0),
    "a number in two fields": lambda: softmax(f=1.0, i=1),
    "an attribute twice": repeated,
    "an attribute of no type": lambda: softmax(kind=T.UNDEFINED, i=1),
    "a float for an integer": lambda: softmax(kind=T.FLOAT, f=1.0),
    "a list for an integer": lambda: softmax(kind=T.INTS, ints=[1]),
    "text for an integer": lambda: softmax(kind=T.STRING, s=b"1"),
    "an integer for a float": lambda: in_attribute(
        one("LeakyRelu", alpha=0.5), kind=T.INT, i=1
    ),
    "floats for integers": lambda: in_attribute(
        one("ReduceL1", keepdims=1), kind=T.FLOATS, floats=[1.0]
    ),
    "axes for fewer bounds": bounds,
    "two values for one": least,
    "pads for fewer axes": pads,
    "an axis twice": lambda: one("Transpose", perm=[0, 0, 1]),
    "an axis beyond the others": lambda: one("Transpose", perm=[0, 1, 3]),
    "a reference outside of functions": no_value,
    "text that is no UTF-8": no_text,
    "types that nobody knows": untyped_loss,
    "too many outputs": lambda: model([N("Relu", ["x"], ["y", "z"], name="culprit")]),
    "an axis that the input has not": cropped,
    "vectors that do not divide": lambda: vectors(2, 3),
    "a kernel of unknown size": kernel,
    "a weight of fewer elements": reshaped,
    "sizes that do not broadcast": lambda: one(
        "Add", ["x", "w"], [floats("w", [1] * 5)]
    ),
    "an axis beyond any array": lambda: one(
        "Gather", ["x", "i"], [ints("i", [0])], axis=2**62
    ),
    "an LSTM's weights without directions": lambda: lstm(W=(16, 4)),
    "an LSTM's weights of other gates": lambda: lstm(W=(1, 15, 4)),
    "an LSTM's weights of no feature": lambda: lstm(W=(1, 16, 0)),
    "an LSTM's weights of two directions": lambda: lstm(W=(2, 16, 4)),
    "an LSTM's states of two sizes": lambda: lstm(R=(1, 16, 5)),
    "an LSTM's biases without directions": lambda: lstm(B=(32,)),
    "an LSTM's peepholes of other gates": lambda: lstm(P=(1, 16)),
    "no input": lambda: one("Relu", [""]),
    "no attribute": lambda: one("Cast"),
}


def test_weights_of_a_layer_that_fit_each_other_are_read(tmp_path):
    write(lstm, tmp_path / "model.onnx")
    assert "ops.lstm(" in pipeline.generate(tmp_path / "model.onnx").text


@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
def test_the_node_is_named(build, tmp_path):
    path = tmp_path / "model.onnx"
    write(build, path)
    with pytest.raises(ConversionError, match="culprit"):
        pipeline.write(pipeline.generate(path), tmp_path / "out")


@pytest.mark.parametrize("version", [18, 13])
def test_a_domain_imported_twice_has_one_version(version, tmp_path):
    made = one("Relu")
    made.opset_import.add(domain="ai.onnx", version=version)
    write(lambda: made, tmp_path / "model.onnx")
    if version == 18:
        assert "relu" in pipeline.generate(tmp_path / "model.onnx").text
        return
    with pytest.raises(ConversionError, match=r"18 and 13.*remove from opset_import"):
        pipeline.generate(tmp_path / "model.onnx")
