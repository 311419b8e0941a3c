"""One golden for each decision that shapes a page."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from burnish.codegen.pipeline import Options, generate
from burnish.codegen.signature import header_of
from tests.harness.source import check_source, floats, graph, node

BATCH = ("batch", 4)


def linear(name: str, before: str, after: str, scope: str) -> list[onnx.NodeProto]:
    inputs = [before, f"{name}.weight", f"{name}.bias"]
    return [node("Gemm", inputs, after, f"/{scope}/Gemm", transB=1)]


def weights(*names: str) -> dict[str, np.ndarray]:
    return {
        f"{name}.{part}": floats(*shape, seed=i)
        for i, name in enumerate(names)
        for part, shape in (("weight", (4, 4)), ("bias", (4,)))
    }


def stack(*numbers: int, residual: bool = True) -> onnx.ModelProto:
    """Blocks `layers.N` of fc and relu, with their input added."""
    nodes, x = [], "x"
    for n in numbers:
        scope = f"layers.{n}"
        nodes += linear(f"{scope}.fc", x, f"a{n}", f"{scope}/fc")
        nodes.append(node("Relu", f"a{n}", f"b{n}", f"/{scope}/Relu"))
        if residual:
            nodes.append(node("Add", [x, f"b{n}"], f"c{n}", f"/{scope}/Add"))
        x = f"c{n}" if residual else f"b{n}"
    nodes.append(node("Identity", x, "y"))
    return graph(nodes, weights(*(f"layers.{n}.fc" for n in numbers)), x=BATCH)


def test_a_chain_nests():
    nodes = [node("Relu", "x", "a"), node("Tanh", "a", "b"), node("Exp", "b", "y")]
    check_source(graph(nodes, x=BATCH), "return ops.exp(ops.tanh(ops.relu(x)))")


def test_a_long_chain_rolls():
    nodes = [node("Tanh", f"v{i}", f"v{i + 1}") for i in range(8)]
    model = graph([node("Exp", "x", "v0"), *nodes, node("Abs", "v8", "y")], x=BATCH)
    check_source(
        model, "y = ops.tanh(ops.tanh(ops.exp(x)))\ny = ops.tanh(ops.tanh(ops.tanh(y)))"
    )


def test_a_residual():
    model = stack(0)
    check_source(model, "return x + ops.relu(self.fc(x))")


def test_repeated_blocks_are_a_loop():
    check_source(
        stack(0, 1, 2),
        "self.layers = [Layer() for _ in range(3)]",
        """
        y = x
        for layer in self.layers:
            y = layer(y)
        return y
        """,
    )


def test_a_gap_is_an_identity():
    text = check_source(stack(0, 2))
    assert "nn.Identity()" in text
    assert "for " not in text


def test_header_tells_source_and_options():
    model = graph([node("Relu", "x", "y")], x=BATCH)
    text = check_source(model, flat=True)
    head = text.split('"""')[1].splitlines()
    assert head[0] == "x -> y"
    assert head[2].startswith("Imported from model")
    assert head[4] == "no weights; options: --flat."


def test_a_long_name_and_all_options_fit(tmp_path):
    onnx.save(stack(0), tmp_path / "model.onnx")
    options = Options("n" * 40, half=True, embed=True, simplify=False, flat=True)
    text = generate(tmp_path / "model.onnx", options).text
    assert max(map(len, text.splitlines())) <= 88
    (tmp_path / "made.py").write_text(text)
    header = header_of(tmp_path / "made.py")
    assert header is not None
    assert header.options == options.spelled()


def test_embedded_weights():
    text = check_source(stack(0), 'WEIGHTS = """', embed=True)
    assert max(map(len, text.splitlines())) <= 88


def test_half_precision():
    check_source(stack(0), embed=True, half=True, rtol=1e-2)


def test_if():
    def branch(kind: str) -> onnx.GraphProto:
        end = helper.make_tensor_value_info("r", TensorProto.FLOAT, BATCH)
        return helper.make_graph([node(kind, "x", "r")], kind, [], [end])

    nodes = [
        node("ReduceSum", "x", "s", keepdims=0),
        node("Greater", "s val_1", "c"),
        node("If", "c", "y", then_branch=branch("Relu"), else_branch=branch("Neg")),
    ]
    model = graph(nodes, {"val_1": np.float32(0)}, x=BATCH)
    check_source(model, "y = ops.relu(x) if x.sum() > 0.0 else -x")


def test_floats_are_short():
    nodes = [node("Mul", "x val_1", "a"), node("LeakyRelu", "a", "y", alpha=1e-5)]
    model = graph(nodes, {"val_1": np.float32(0.1)}, x=BATCH)
    check_source(model, "return ops.leaky_relu(x * 0.1, negative_slope=1e-5)")


def test_optional_host_sizes_have_the_files_names():
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Unsqueeze", "n axis", "u"),
        node("Concat", "u rest", "to", axis=0),
        node("Reshape", "x to", "r"),
        node("Mul", "r r", "q"),
        node("Concat", "u more", "back", axis=0),
        node("Reshape", "q back", "y"),
    ]
    given = {"zero": np.array(0), "axis": np.array([0]), "rest": np.array([2, -1])}
    given["more"] = np.array([-1, 4])
    check_source(graph(nodes, given, x=BATCH), "batch = x.shape[0]")


def test_scan_is_a_for():
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Add", "h e", "h2"), node("Identity", "h2", "out")],
        "body",
        [value(n, TensorProto.FLOAT, [4]) for n in ("h", "e")],
        [value(n, TensorProto.FLOAT, [4]) for n in ("h2", "out")],
    )
    nodes = [node("Scan", "h0 x", "last y", num_scan_inputs=1, body=body)]
    text = check_source(
        graph(nodes, {"h0": floats(4)}, outputs="last y", x=("time", 4))
    )
    assert "    for " in text


def test_many_inputs_break_the_signature():
    names = [f"a_rather_long_input_{c}" for c in "abcdef"]
    nodes = [helper.make_node("Sum", names, ["y"])]
    check_source(graph(nodes, **dict.fromkeys(names, BATCH)))


def test_long_literals_and_strings_break():
    nodes = [node("Einsum", "x x", "y", equation="ij,ij->ij")]
    check_source(graph(nodes, x=BATCH), 'return ops.einsum("ij,ij->ij", x, x)')
