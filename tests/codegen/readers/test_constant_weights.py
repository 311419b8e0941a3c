"""Constant nodes in a layer's weight slot are its weights: they train."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

from burnish import Tensor
from burnish.codegen.evaluator import evaluated
from burnish.codegen.pipeline import generate, write
from tests.codegen.readers.hostile import N, floats, info, ints, model
from tests.harness.imported import load_class

RANDOM = np.random.default_rng(0)
CONVOLUTION, MATRIX = 5 * 3 * 3 + 5, 4 * 4 + 4


def constant(name, *shape):
    return N("Constant", [], [name], value=floats("v", RANDOM.normal(size=shape)))


def graph(nodes, inputs, outputs):
    return h.make_graph(nodes, "body", inputs, outputs)


def layers(before, x):
    """A convolution and a product with its bias, of constants."""
    return [
        constant(f"{before}w", 5, 3, 3),
        constant(f"{before}b", 5),
        N("Conv", [x, f"{before}w", f"{before}b"], [f"{before}c"], pads=[1, 1]),
        constant(f"{before}m", 4, 4),
        constant(f"{before}n", 4),
        N("MatMul", [f"{before}c", f"{before}m"], [f"{before}p"]),
        N("Add", [f"{before}p", f"{before}n"], [f"{before}y"]),
    ]


def branches():
    then = graph(layers("a", "x"), [], [info("ay")])
    other = graph(layers("e", "x"), [], [info("ey")])
    node = N("If", ["c"], ["y"], then_branch=then, else_branch=other)
    return model([node], [info("x", ["n", 3, 4]), info("c", [], T.BOOL)])


def nested():
    """In a branch in a loop's body."""
    inner = [
        constant("m", 4, 4),
        N("MatMul", ["a", "m"], ["p"]),
        constant("n", 4),
        N("Add", ["n", "p"], ["t"]),
    ]
    then = graph(inner, [], [info("t")])
    other = graph([N("Neg", ["a"], ["e"])], [], [info("e")])
    body = graph(
        [
            N("If", ["c"], ["b"], then_branch=then, else_branch=other),
            N("Identity", ["go"], ["on"]),
        ],
        [info("i", [], T.INT64), info("go", [], T.BOOL), info("a")],
        [info("on", [], T.BOOL), info("b")],
    )
    ports = [info("x", ["n", 3, 4]), info("c", [], T.BOOL)]
    return model(
        [N("Loop", ["three", "", "x"], ["y"], body=body)],
        ports,
        tensors=[ints("three", 3)],
    )


def frozen():
    """Everything is a Constant of the main graph, as freezing leaves it."""
    norm = [constant(name, 5) for name in ("g", "h", "mean")]
    norm.append(N("Constant", [], ["var"], value=floats("v", np.ones(5))))
    names = ["az", "g", "h", "mean", "var"]
    nodes = [
        *layers("a", "x"),
        N("Identity", ["ay"], ["az"]),
        *norm,
        N("BatchNormalization", names, ["y"]),
    ]
    return model(nodes, [info("x", ["n", 3, 4])])


def turned():
    """A matrix that is turned on its way to the product."""
    nodes = [
        constant("m", 4, 4),
        N("Transpose", ["m"], ["t"], perm=[1, 0]),
        N("MatMul", ["x", "t"], ["p"]),
        constant("n", 4),
        N("Add", ["p", "n"], ["y"]),
    ]
    return model(nodes, [info("x", ["n", 3, 4])])


def recurrent():
    nodes = [
        constant("w", 1, 20, 4),
        constant("r", 1, 20, 5),
        constant("b", 1, 40),
        N("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=5),
    ]
    return model(nodes, [info("x", [2, 3, 4])])


def shaped():
    """Biases and scales of channels, as they are and behind views."""
    nodes = [
        constant("w", 5, 3, 3),
        N("Conv", ["x", "w"], ["c"], pads=[1, 1]),
        constant("scale", 1, 5, 1),
        N("Mul", ["c", "scale"], ["s"]),
        constant("shift", 5),
        N("Reshape", ["shift", "to"], ["t"]),
        N("Add", ["t", "s"], ["a"]),
        constant("u", 5, 2, 1),
        N("ConvTranspose", ["a", "u"], ["d"]),
        constant("bias", 2, 1),
        N("Add", ["d", "bias"], ["y"]),
    ]
    to = ints("to", [1, -1, 1])
    return model(nodes, [info("x", ["n", 3, 4])], tensors=[to])


CASES = {
    "branches": (branches, 2 * (CONVOLUTION + MATRIX)),
    "a branch in a body": (nested, MATRIX),
    "a frozen model": (frozen, CONVOLUTION + MATRIX + 10),
    "a turned matrix": (turned, MATRIX),
    "numbers for each channel": (shaped, CONVOLUTION + 5 + 5 * 2 + 2),
    "a recurrent layer": (recurrent, 20 * 4 + 20 * 5 + 40),
}


def test_paddles_factors_train_and_are_of_a_block(tmp_path):
    """A convolution and learnable factors around its activation, several times."""
    nodes, x = [], "x"
    for i in range(8):
        weights = {f"conv1d_{i}.w_0": (5, 3 if i == 0 else 5, 1)}
        weights |= {f"rep_block_{i}.{part}_{n}": (1,) for part in "wb" for n in "01"}
        nodes += [constant(name, *shape) for name, shape in weights.items()]
        conv, w0, w1, b0, b1 = weights
        nodes += [
            N("Conv", [x, conv], [f"a{i}"]),
            N("Mul", [f"a{i}", w0], [f"b{i}"]),
            N("Add", [f"b{i}", b0], [f"c{i}"]),
            N("HardSwish", [f"c{i}"], [f"d{i}"]),
            N("Mul", [f"d{i}", w1], [f"e{i}"]),
            N("Add", [f"e{i}", b1], [x := f"y{i}"]),
        ]
    path = tmp_path / "factors.onnx"
    onnx.save(model(nodes, [info("x", ["n", 3, 8])], [info("y7")]), path)
    generated = generate(path)
    assert generated.parameters == 5 * 3 + 7 * 5 * 5 + 8 * 4
    assert "for _ in range(7)]" in generated.text
    assert "return self.blocks(x)" in generated.text


def filled(name, *shape, value=0.5):
    """A weight that only its shape and one number are stored of."""
    sizes, number = ints(f"{name}_shape", list(shape)), floats("v", np.array([value]))
    return sizes, N("ConstantOfShape", [sizes.name], [name], value=number)


def test_weights_of_one_number_train(tmp_path):
    """As ONNX's light models have them; the small ones are stored."""
    made = [filled("w", 5, 3, 1), filled("s", 5), filled("b", 5), filled("m", 8, 6)]
    norm = [floats(name, RANDOM.random(5)) for name in ("g", "h", "mean", "var")]
    nodes = [
        *(node for _, node in made),
        N("Conv", ["x", "w"], ["c"]),
        N("BatchNormalization", ["c", "g", "h", "mean", "var"], ["n"]),
        N("Unsqueeze", ["s", "one"], ["s1"]),
        N("Mul", ["n", "s1"], ["t"]),
        N("Unsqueeze", ["b", "one"], ["b1"]),
        N("Add", ["t", "b1"], ["u"]),
        N("MatMul", ["u", "m"], ["y"]),
    ]
    tensors = [*norm, ints("one", [1]), *(sizes for sizes, _ in made)]
    path = tmp_path / "light.onnx"
    built = model(nodes, [info("x", ["n", 3, 8])], tensors=tensors)
    onnx.save(built, path)
    generated = generate(path)
    write(generated, tmp_path)
    assert generated.parameters == 5 * 3 + 2 * 5 + 8 * 6
    assert "nn.Buffer" not in generated.text
    module = load_class(tmp_path / "light.py").from_file(tmp_path / "light.safetensors")
    x = RANDOM.normal(size=(2, 3, 8)).astype(np.float32)
    (expected,) = evaluated(built, {"x": x})
    np.testing.assert_allclose(module(x).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_a_weight_of_one_number_that_is_an_output_stays_a_node(tmp_path):
    sizes, fill = filled("w", 4, 5)
    nodes = [fill, N("MatMul", ["x", "w"], ["y"])]
    path = tmp_path / "output.onnx"
    ports = [info("x", ["n", 4])], [info("y"), info("w")]
    onnx.save(model(nodes, *ports, tensors=[sizes]), path)
    assert generate(path).parameters == 0


@pytest.mark.parametrize("sizes", [(1 << 15, 1 << 10), (1 << 20, 1)])
def test_a_few_bytes_do_not_become_a_large_file(sizes, tmp_path):
    """One weight that is too large for a file of this size, and many that are."""
    made = [filled(f"w{i}", *sizes) for i in range(1 if sizes[1] > 1 else 80)]
    nodes = [node for _, node in made]
    nodes += [N("MatMul", [f"x{i}", f"w{i}"], [f"y{i}"]) for i in range(len(made))]
    ports = [info(f"x{i}", ["n", sizes[0]]) for i in range(len(made))]
    path = tmp_path / "bomb.onnx"
    ends = [info(f"y{i}") for i in range(len(made))]
    onnx.save(model(nodes, ports, ends, tensors=[sizes for sizes, _ in made]), path)
    assert generate(path).parameters == 0


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_constants_in_weight_slots_train(case, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    build, count = case
    made = build()
    path = tmp_path / "frozen.onnx"
    onnx.save(made, path)
    generated = generate(path)
    write(generated, tmp_path)
    assert generated.parameters == count
    assert "nn.Buffer" not in generated.text
    module = load_class(tmp_path / "frozen.py").from_file(
        tmp_path / "frozen.safetensors"
    )
    assert module.num_params == count
    session = runtime.InferenceSession(made.SerializeToString())
    x = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
    for flag in (True, False) if len(made.graph.input) > 1 else (True,):
        feeds = {"x": x, "c": np.array(flag)}
        (expected,) = session.run(
            None, {i.name: feeds[i.name] for i in session.get_inputs()}
        )
        got = module(*list(feeds.values())[: len(made.graph.input)])
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_a_table_beside_weights_stays_a_table(tmp_path):
    """The constants that the main graph reads, where weights are initializers."""
    nodes = [
        N("MatMul", ["x", "fc.weight"], ["h"]),
        constant("filters", 6, 2),
        N("MatMul", ["h", "filters"], ["y"]),
    ]
    weight = floats("fc.weight", RANDOM.normal(size=(4, 6)))
    path = tmp_path / "filters.onnx"
    onnx.save(model(nodes, [info("x", ["n", 4])], tensors=[weight]), path)
    assert generate(path).parameters == 24


@pytest.mark.parametrize("producer", ["", "pytorch"])
def test_a_recurrent_layers_constants_train_beside_weights(producer, tmp_path):
    """A scripted GRU has its weights as Constants, its neighbours' are initializers."""
    nodes = [
        N("MatMul", ["x", "fc.weight"], ["h"]),
        *(constant("/Constant_1", 1, 15, 6), constant("/Constant_2", 1, 15, 5)),
        constant("/Constant_3", 1, 30),
        N(
            "GRU",
            ["h", "/Constant_1", "/Constant_2", "/Constant_3"],
            ["y"],
            hidden_size=5,
        ),
    ]
    weight = floats("fc.weight", RANDOM.normal(size=(4, 6)))
    path = tmp_path / "scripted.onnx"
    made = model(nodes, [info("x", [2, 3, 4])], tensors=[weight])
    made.producer_name = producer
    onnx.save(made, path)
    generated = generate(path)
    assert generated.parameters == 24 + 15 * 6 + 15 * 5 + 30
    write(generated, tmp_path)
    load_class(tmp_path / "scripted.py").from_file(tmp_path / "scripted.safetensors")


@pytest.mark.parametrize(("producer", "more"), [("", 54 + 2), ("pytorch", 0)])
def test_a_filter_beside_weights_is_a_buffer_of_pytorchs_authors(
    producer, more, tmp_path
):
    nodes = [
        N("Conv", ["x", "conv.weight"], ["h"]),
        *(constant("/Constant_1", 2, 3, 3, 3), constant("/Constant_2", 2)),
        N("Conv", ["h", "/Constant_1", "/Constant_2"], ["y"]),
    ]
    weight = floats("conv.weight", RANDOM.normal(size=(3, 3, 1, 1)))
    path = tmp_path / "filtered.onnx"
    made = model(nodes, [info("x", [1, 3, 8, 8])], tensors=[weight])
    made.producer_name = producer
    onnx.save(made, path)
    assert generate(path).parameters == 9 + more


@pytest.mark.parametrize(("producer", "trained"), [("pytorch", 3), ("", 3 * 4)])
def test_ones_and_zeros_of_pytorchs_norms_are_no_weights(producer, trained, tmp_path):
    """What the older exporter writes for a norm without scale, or without bias."""
    fixed = {"/Constant_1": 1, "/Constant_2": 0, "/Constant_3": 0}
    nodes = [
        N("Constant", [], [name], value=floats("v", np.full(3, number)))
        for name, number in fixed.items()
    ]
    nodes += [
        N("LayerNormalization", ["x", "/Constant_1", "/Constant_2"], ["h"]),
        N("LayerNormalization", ["h", "norm.weight", "/Constant_3"], ["y"]),
    ]
    weight = floats("norm.weight", RANDOM.normal(size=3))
    path = tmp_path / "norms.onnx"
    made = model(nodes, [info("x", ["n", 3])], tensors=[weight])
    made.producer_name = producer
    onnx.save(made, path)
    generated = generate(path)
    assert generated.parameters == trained
    if producer:
        assert "nn.LayerNorm(3, elementwise_affine=False)" in generated.text
        assert "nn.LayerNorm(3, bias=False)" in generated.text


def test_a_threshold_is_a_number(tmp_path):
    nodes = [
        N("Greater", ["x", "limit"], ["more"]),
        N("Where", ["more", "x", "w"], ["y"]),
    ]
    limit, weight = floats("limit", np.array(0.5)), floats("w", np.ones((4,)))
    path = tmp_path / "threshold.onnx"
    onnx.save(model(nodes, [info("x", ["n", 4])], tensors=[limit, weight]), path)
    generated = generate(path)
    assert "x > 0.5" in generated.text
    assert generated.parameters == 4


def test_a_constant_with_another_use_is_no_weight(tmp_path):
    nodes = [
        constant("m", 4, 4),
        N("MatMul", ["x", "m"], ["p"]),
        N("Add", ["p", "m"], ["y"]),
    ]
    path = tmp_path / "shared.onnx"
    onnx.save(model(nodes, [info("x", [4, 4])]), path)
    assert generate(path).parameters == 0


def one_hot():
    """The numbers of on and off, before a matrix."""
    tensors = [ints("depth", 4), floats("ends", [0.1, 0.9])]
    tensors.append(floats("w", RANDOM.normal(size=(4, 5))))
    nodes = [
        N("OneHot", ["i", "depth", "ends"], ["h"]),
        N("MatMul", ["h", "w"], ["y"]),
    ]
    made = model(nodes, [info("i", ["n"], T.INT64)], tensors=tensors)
    return made, np.array([3, 0, -1, 2]), 20


def angles():
    """Tables of a rotary embedding, behind a matrix."""
    tensors = [floats("w", RANDOM.normal(size=(8, 8)))]
    tensors += [floats(name, RANDOM.normal(size=(2, 5, 4))) for name in ("c", "s")]
    nodes = [
        N("MatMul", ["x", "w"], ["h"]),
        N("RotaryEmbedding", ["h", "c", "s"], ["y"]),
    ]
    made = model(nodes, [info("x", [2, 3, 5, 8])], tensors=tensors, opset=23)
    return made, RANDOM.normal(size=(2, 3, 5, 8)).astype("f4"), 64


def cast():
    """A number that torch's exporter cast, as onnxscript names it."""
    tensors = [floats("int64_1_cast", 1.5), floats("w", RANDOM.normal(size=(4, 4)))]
    nodes = [
        N("MatMul", ["x", "w"], ["h"]),
        N("Sub", ["h", "int64_1_cast"], ["y"]),
    ]
    made = model(nodes, [info("x", ["n", 4])], tensors=tensors)
    return made, RANDOM.normal(size=(2, 4)).astype("f4"), 16


@pytest.mark.parametrize("build", [one_hot, angles, cast])
def test_numbers_that_are_no_weights_do_not_train(build, tmp_path):
    made, x, count = build()
    onnx.save(made, tmp_path / "numbers.onnx")
    source, weights = write(generate(tmp_path / "numbers.onnx"), tmp_path)
    network = load_class(source).from_file(weights)
    (expected,) = evaluated(made, {made.graph.input[0].name: x})
    np.testing.assert_allclose(network(x).numpy(), expected, 1e-5, 1e-5)
    network = network.to("cpu:autodiff")
    assert sum(weight.size for _, weight in network.named_parameters()) == count
    gradients = network(Tensor(x, device="cpu:autodiff")).sum().backward()
    assert all(weight.grad(gradients) is not None for weight in network.parameters())
