"""Operators that nobody knows: one report, or methods to fill in."""

import ast
import json
import re

import numpy as np
import onnx
import pytest
from onnx import helper as h

from burnish.codegen import ModelGen
from burnish.codegen.cli import main
from burnish.codegen.errors import UnsupportedError, UsageError
from burnish.codegen.pipeline import Options, generate
from burnish.errors import UnwrittenError
from burnish.serialize import save_file
from tests.codegen.readers.hostile import N, floats, info, ints, model
from tests.harness.imported import load_module
from tests.harness.ruff import formatted, lint_later

NORMAL = np.random.default_rng(0).normal
DOMAINS = ["com.acme", "other.one"]


def blocks():
    """Three blocks with an operator of its own each, and others at the end."""
    nodes, tensors, last = [], [], "x"
    for i in range(3):
        at = f"/blocks.{i}"
        nodes += [
            N("MatMul", [last, f"blocks.{i}.fc.weight"], [f"m{i}"], f"{at}/fc/MatMul"),
            N(
                *("Frobnicate", [f"m{i}", f"blocks.{i}.scale"], [f"f{i}"]),
                name=f"{at}/act/Frobnicate",
                domain="com.acme",
                **{"alpha": 0.5, "kind": "soft", "axes": [1, 2], "lambda": 1},
            ),
            N("Add", [f"f{i}", last], [f"y{i}"], f"{at}/Add"),
        ]
        tensors.append(floats(f"blocks.{i}.fc.weight", NORMAL(size=(4, 4))))
        tensors.append(floats(f"blocks.{i}.scale", np.ones(4)))
        last = f"y{i}"
    nodes += [
        N("Split2", [last, "", "half"], ["p", "q"], "two", domain="com.acme"),
        N("Split2", ["p"], ["n", "o"], "other", domain="other.one"),
        N("Nope", ["n"], ["r"], "nope"),
        N("Relu", ["q"], ["s"]),
        N("Add", ["r", "s"], ["sum"]),
        N("Reshape", ["sum", "rows"], ["y"]),
    ]
    tensors += [floats("half", 0.5), ints("rows", [0, -1])]
    made = model(nodes, [info("x", ["batch", 3, 4])], tensors=tensors, domains=DOMAINS)
    made.graph.value_info.extend(info(f"f{i}", ["batch", 3, 4]) for i in range(3))
    return made


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "odd.onnx"
    onnx.save(blocks(), path)
    return path


def test_the_report_names_all_of_them_and_what_to_do(file, capsys):
    with pytest.raises(UnsupportedError) as caught:
        generate(file)
    for words in (
        str(file),
        "com.acme.Frobnicate (opset 1): nodes '/blocks.0/act/Frobnicate', '/blocks.1",
        "com.acme.Split2 (opset 1): node 'two'",
        "other.one.Split2 (opset 1): node 'other'",
        "ai.onnx.Nope (opset 20): node 'nope'",
        "--rules",
        "allow_unknown=True",
    ):
        assert words in str(caught.value)
    assert main(["generate", str(file), "-o", str(file.parent)]) == 1
    assert "--allow-unknown" in capsys.readouterr().err


@pytest.mark.parametrize("typed", [False, True], ids=["plain", "typed"])
@pytest.mark.parametrize("flat", [False, True], ids=["classes", "flat"])
def test_methods_to_fill_in(file, flat, typed):
    made = generate(file, Options(allow_unknown=True, flat=flat, typed=typed))
    lint_later(made.text)
    assert "options: " in made.text
    assert "--allow-unknown" in made.text
    assert made.text.count("def unknown_frobnicate(") == 1
    assert "kind: str" in made.text
    assert "lambda_: int" in made.text
    assert "float32 (batch, 3, 4) -> float32 (batch, 3, 4)" in made.text
    assert "-> tuple[Tensor, Tensor]:" in made.text
    assert made.unknown["com.acme.Split2 (opset 1)"] == ["two"]
    assert [*made.unknown] == [note.partition(" is ")[0] for note in made.notes]


@pytest.mark.parametrize("inputs", [2, 7, 40])
@pytest.mark.parametrize("kind", ["Attention", "AttentionOfManyWords" * 2, "Op" * 30])
def test_long_stand_ins_are_broken_as_formatters_do(tmp_path, kind, inputs):
    names = [f"x{i}" for i in range(inputs)]
    given = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3])
        for name in names
    ]
    node = onnx.helper.make_node(kind, names, ["y"], domain="com.acme")
    graph = onnx.helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name="y")])
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.acme", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets), tmp_path / "m.onnx")
    text = generate(tmp_path / "m.onnx", Options(allow_unknown=True)).text
    assert formatted(text) == text


def filled_in(text):
    """The source with its methods written."""
    for stand_in, written in {
        '("com.acme.Frobnicate (opset 1)")(x, scale)': "x * scale * alpha",
        '("com.acme.Split2 (opset 1)")(x, y, half)': "x, x * half",
        '("other.one.Split2 (opset 1)")(x)': "x + 1, x",
        '("ai.onnx.Nope (opset 20)")(x)': "-x",
    }.items():
        text = text.replace(f"nn.Unwritten{stand_in}", written)
    assert "nn.Unwritten" not in text
    return text


def test_what_is_filled_in_runs_with_everything_else(file, tmp_path):
    made = ModelGen(out_dir=tmp_path, allow_unknown=True).input(file).run()
    source = tmp_path / "odd.py"
    assert source in made
    x = NORMAL(size=(2, 3, 4)).astype(np.float32)
    model = load_module(source).Model.from_file(tmp_path / "odd.safetensors")
    with pytest.raises(UnwrittenError, match=r"com\.acme\.Frobnicate \(opset 1\): exp"):
        model(x)
    source.write_text(filled_in(source.read_text()))
    stored = onnx.load(file).graph.initializer
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in stored}
    expected = x
    for i in range(3):
        expected = expected @ weights[f"blocks.{i}.fc.weight"] * 0.5 + expected
    expected = -(expected + 1) + np.maximum(expected * 0.5, 0)
    got = load_module(source).Model.from_file(tmp_path / "odd.safetensors")(x).numpy()
    np.testing.assert_allclose(got, expected.reshape(2, -1), rtol=1e-5)


def test_in_bodies_and_of_sizes_that_only_the_run_knows(tmp_path):
    branch = h.make_graph(
        [N("Odd", ["x"], ["t"], "in", domain="com.acme")], "then", [], [info("t")]
    )
    other = h.make_graph([N("Neg", ["x"], ["e"])], "else", [], [info("e")])
    nodes = [
        N("ReduceSum", ["x"], ["sum"], keepdims=0),
        N("Greater", ["sum", "zero"], ["positive"]),
        N("If", ["positive"], ["y"], then_branch=branch, else_branch=other),
    ]
    made = model(
        nodes, [info("x", ["n", "m"])], tensors=[floats("zero", 0)], domains=DOMAINS
    )
    path = tmp_path / "branch.onnx"
    onnx.save(made, path)
    ModelGen(out_dir=tmp_path, allow_unknown=True).input(path).run()
    module = load_module(tmp_path / "branch.py").Model()
    np.testing.assert_array_equal(module(-np.ones((2, 2), np.float32)).numpy(), 1)
    with pytest.raises(UnwrittenError, match="Odd"):
        module(np.ones((2, 2), np.float32))


def test_an_operator_with_a_graph_inside_stays_in_the_report(tmp_path):
    body = h.make_graph([N("Neg", ["x"], ["t"])], "body", [], [info("t")])
    node = N("Around", ["x"], ["y"], "around", domain="com.acme", body=body)
    path = tmp_path / "around.onnx"
    onnx.save(model([node], ["x"], domains=DOMAINS), path)
    with pytest.raises(
        UnsupportedError, match=r"com\.acme\.Around .*graphs inside: node 'around'"
    ):
        generate(path, Options(allow_unknown=True))


def test_words_of_a_file_become_no_code(tmp_path):
    bad = '"""); import os; ("""'
    node = N(f"Odd{bad}", ["x"], ["y"], "n", domain=f"com{bad}", **{f"a{bad}": bad})
    path = tmp_path / "bad.onnx"
    onnx.save(model([node], ["x"], domains=[f"com{bad}"]), path)
    text = generate(path, Options(allow_unknown=True)).text
    (made,) = ast.parse(text).body[2:]
    called = {n.id for n in ast.walk(made) if isinstance(n, ast.Name)}
    assert called == {"nn", "self", "x", "Tensor", "str"}


def test_the_command_says_what_is_to_fill_in(file, tmp_path, capsys):
    words = ["generate", str(file), "-o", str(tmp_path), "--allow-unknown"]
    assert main([*words, "--json"]) == 0
    (made,) = json.loads(capsys.readouterr().out)["generated"]
    assert made["unknown"]["ai.onnx.Nope (opset 20)"] == ["nope"]
    assert main([*words, "--force"]) == 0
    assert "note: ai.onnx.Nope (opset 20) is unknown (node 'nope')" in (
        capsys.readouterr().err
    )
    assert main(["check", str(tmp_path)]) == 0


def test_a_file_without_a_graph_has_no_operators(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_file({"fc.weight": np.ones((2, 2), np.float32)}, path)
    with pytest.raises(UsageError, match="allow_unknown: expected a model file"):
        generate(path, Options(allow_unknown=True))


def in_a_loop():
    body = h.make_graph(
        [
            N("Odd", ["v", "w"], ["after"], "in", domain="com.acme"),
            N("Identity", ["go"], ["on"]),
        ],
        "body",
        [
            info("i", [], onnx.TensorProto.INT64),
            info("go", [], onnx.TensorProto.BOOL),
            info("v"),
        ],
        [info("on", [], onnx.TensorProto.BOOL), info("after")],
    )
    node = N("Loop", ["twice", "", "x"], ["y"], body=body)
    return model(
        [node],
        [info("x", [2, 3])],
        tensors=[ints("twice", 2), floats("w", np.full(3, 2.0))],
        domains=DOMAINS,
    )


def in_a_function():
    imports = [h.make_opsetid("", 20), h.make_opsetid("com.acme", 1)]
    nodes = [N("Odd", ["a", "f"], ["b"], "in", domain="com.acme")]
    function = h.make_function("other.one", "F", ["a", "f"], ["b"], nodes, imports)
    calls = [
        N("F", ["x", "w"], ["once"], "first", domain="other.one"),
        N("F", ["once", "w"], ["y"], "second", domain="other.one"),
    ]
    return model(
        calls,
        [info("x", [2, 3])],
        tensors=[floats("w", np.full(3, 2.0))],
        functions=[function],
        domains=DOMAINS,
    )


@pytest.mark.parametrize("build", [in_a_loop, in_a_function])
def test_in_a_loop_and_in_a_function(tmp_path, build):
    path = tmp_path / "inside.onnx"
    onnx.save(build(), path)
    with pytest.raises(UnsupportedError, match=r"com\.acme\.Odd \(opset 1\): .*'in"):
        generate(path)
    ModelGen(out_dir=tmp_path, allow_unknown=True).input(path).run()
    source = tmp_path / "inside.py"
    text = source.read_text()
    assert text.count("def unknown_odd(") == 1
    written = re.sub(r"nn\.Unwritten\(.*?\)\((\w+), (\w+)\)", r"\1 * \2", text)
    source.write_text(written)
    x = np.ones((2, 3), np.float32)
    made = load_module(source).Model.from_file(tmp_path / "inside.safetensors")
    np.testing.assert_array_equal(made(x).numpy(), 4)


def test_calls_of_one_operator_may_differ(tmp_path):
    """Fewer inputs first, results of their own, options named like arguments."""
    nodes = [
        N("Odd", ["x"], ["a"], "one", domain="com.acme", x=1, self=2),
        N("Odd", ["a", "x"], ["b"], "two", domain="com.acme", x=3, self=4),
        N("Odd", ["b"], ["y", "z"], "three", domain="com.acme"),
    ]
    path = tmp_path / "calls.onnx"
    onnx.save(model(nodes, ["x"], ["y", "z"], domains=DOMAINS), path)
    text = generate(path, Options(allow_unknown=True)).text
    methods = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    assert [ast.unparse(m.args) for m in methods if "unknown" in m.name] == [
        "self, x2: Tensor, y: Tensor | None=None, *, self2: int, x: int",
        "self, x: Tensor",
    ]


def test_sequences_and_optionals_are_said(tmp_path):
    """What the graph says of a value is the method's annotation."""
    tensor = h.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
    listed = h.make_tensor_sequence_value_info("s", onnx.TensorProto.FLOAT, None)
    maybe = h.make_value_info("o", h.make_optional_type_proto(tensor))
    nodes = [
        N("SequenceConstruct", ["x", "x"], ["q"]),
        N("Parts", ["q", "x"], ["s", "o"], "parts", domain="com.acme"),
        N("ConcatFromSequence", ["s"], ["y"], axis=0),
        N("OptionalHasElement", ["o"], ["z"]),
        N("Chosen", ["o"], ["v"], "chosen", domain="com.acme"),
    ]
    made = model(nodes, [info("x", ["n", 2])], ["y", "z", "v"], domains=DOMAINS)
    made.graph.value_info.extend([listed, maybe])
    path = tmp_path / "lists.onnx"
    onnx.save(made, path)
    for typed in (False, True):
        text = generate(path, Options(allow_unknown=True, typed=typed)).text
        methods = {
            n.name: (ast.unparse(n.args), ast.unparse(n.returns))
            for n in ast.walk(ast.parse(text))
            if isinstance(n, ast.FunctionDef) and "unknown" in n.name
        }
        assert methods == {
            "unknown_parts": (
                "self, x: list[Tensor], y: Tensor",
                "tuple[list[Tensor], Tensor | None]",
            ),
            "unknown_chosen": ("self, x: Tensor | None", "Tensor"),
        }
        assert "list[Tensor], float32 (n, 2) -> list[Tensor], Tensor | None" in text
