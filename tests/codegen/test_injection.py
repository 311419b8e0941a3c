"""Text from a model file never becomes code.

Every name, doc string, dimension, domain and metadata entry of these models tries to.
What would prove that one succeeded is `builtins.pwned`.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from onnx import FunctionProto, ModelProto, TensorProto, helper, numpy_helper, save

from burnish.codegen.errors import ConversionError
from burnish.codegen.pipeline import Options, generate, write

ACT = "__import__('builtins').__dict__.update(pwned=1)"
PAYLOADS = {
    "docstring": f'"""\n{ACT}\n"""',
    "other quotes": f"'''\n{ACT}\n'''",
    "statement": f"x\n{ACT}\n",
    "carriage return": f"x\r{ACT}\r",
    "comment": f"x  # \n{ACT} #",
    "string": f"' + str({ACT}) + '",
    "double string": f'" + str({ACT}) + "',
    "call": f"x), {ACT}, (y",
    "subscript": f"x'] = {ACT}; y['",
    "expression": ACT,
    "default": f"x={ACT}",
    "annotation": f"x: ({ACT})",
    "f-string": f"{{{ACT}}}",
    "template": f"{{{{ {ACT} }}}}{{% set x = {ACT} %}}{{# #}}",
    "escaped quotes": f'\\"\\"\\"\n{ACT}\n\\"\\"\\"',
    "backslash": "\\",
    "quotes": '"""',
    "unicode line ends": f"x\u2028{ACT}\u2029{ACT}\x85{ACT}\x0c{ACT}",
    "right to left": f"\u202e{ACT}",
    "look-alikes": "\uff45\uff56\uff41\uff4c \ufb01eld\xb2 \u2163",
    "coding line": "-*- coding: utf-7 -*-",
    "dunder": "__class__",
    "keyword": "lambda",
    "builtin": "print",
    "own name": "Model",
    "self": "self",
    "module": "nn",
    "nothing": "",
    "long": "a" * 5000,
}


def hostile(text: str) -> ModelProto:
    """x @ w + b, flattened, through a function; `text` wherever a text may be."""
    x, product, added, made, y = (f"{text}{part}" for part in ("x", "p", "a", "f", "y"))
    weights = {
        f"{text}w": np.eye(3, dtype=np.float32),
        f"{text}b": np.arange(3, dtype=np.float32),
        f"{text}axes": np.array([0, -1]),
    }
    nodes = [
        helper.make_node("MatMul", [x, f"{text}w"], [product], f"{text}1"),
        helper.make_node("Add", [product, f"{text}b"], [added], f"/{text}/{text}2"),
        helper.make_node(f"{text}F", [added], [made], f"{text}3", domain=f"{text}D"),
        helper.make_node("Reshape", [made, f"{text}axes"], [y], f"{text}4"),
    ]
    for node in nodes:
        node.doc_string = text
        for key in ("pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy"):
            node.metadata_props.add(key=key, value=f"['', {text!r}, 'n']")
        node.metadata_props.add(key=text, value=text)
    graph = helper.make_graph(
        nodes,
        text,
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, [f"{text}d", 3])],
        [helper.make_tensor_value_info(y, TensorProto.FLOAT, [f"{text}d", f"{text}e"])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
        doc_string=text,
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(f"{text}D", 1)]
    model = helper.make_model(
        graph,
        functions=[_function(text)],
        opset_imports=opsets,
        producer_name=text,
        producer_version=text,
        doc_string=text,
        domain=text,
        ir_version=10,
    )
    model.metadata_props.add(key=text, value=text)
    return model


def _function(text: str) -> FunctionProto:
    node = helper.make_node("Relu", [f"{text}i"], [f"{text}o"], f"{text}5")
    return helper.make_function(
        f"{text}D",
        f"{text}F",
        [f"{text}i"],
        [f"{text}o"],
        [node],
        [helper.make_opsetid("", 18)],
    )


@pytest.mark.parametrize("flat", [False, True], ids=["structured", "flat"])
@pytest.mark.parametrize("text", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_a_hostile_model_is_only_a_model(
    text: str, flat: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hostile.onnx"
    save(hostile(text), path)
    explained: list[str] = []
    options = Options(flat=flat)
    generated = generate(path, options, explain=explained.append)
    ast.parse(generated.text)
    write(generated, tmp_path)
    source = tmp_path / "hostile.py"

    spec = importlib.util.spec_from_file_location("hostile", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "hostile", module)
    spec.loader.exec_module(module)
    y = module.Model.from_file()(np.full((2, 3), -0.5, np.float32))
    assert not hasattr(builtins, "pwned")
    np.testing.assert_allclose(y.numpy(), [[0, 0.5, 1.5]] * 2)


def test_hostile_sources_are_well_formed(tmp_path: Path) -> None:
    """One call of the formatter and the linter for all of them."""
    for number, text in enumerate(PAYLOADS.values()):
        path = tmp_path / f"hostile{number}.onnx"
        save(hostile(text), path)
        (tmp_path / f"hostile{number}.py").write_text(generate(path).text, "utf-8")
    ruff = pytest.importorskip("ruff.__main__").find_ruff_bin()
    for command in (["format", "--diff"], ["check", "--select=E9,F", "--quiet"]):
        done = subprocess.run(
            [ruff, *command, "--isolated", "--line-length=88", tmp_path],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "name", [f'{"a" * 9}""" + {ACT} + """', "a'b", "a\\", "a\nb", "{{ 1 }}", "a b"]
)
def test_a_hostile_file_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name.replace('/', '')}.onnx"
    save(hostile("x"), path)
    generated = generate(path)
    assert generated.name.isidentifier()
    ast.parse(generated.text)
    exec(compile(generated.text, "hostile", "exec"), {"__name__": "hostile"})
    assert not hasattr(builtins, "pwned")


def test_a_hostile_attribute(tmp_path: Path) -> None:
    model = hostile("x")
    model.graph.node[0].op_type = "Conv"
    model.graph.node[0].attribute.append(helper.make_attribute("auto_pad", ACT))
    path = tmp_path / "hostile.onnx"
    save(model, path)
    with suppress(ConversionError):
        exec(compile(generate(path).text, "hostile", "exec"), {"__name__": "hostile"})
    assert not hasattr(builtins, "pwned")
