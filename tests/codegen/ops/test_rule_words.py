"""Functions that rules write exist in the runtime."""

import ast
from pathlib import Path

import pytest

import burnish.codegen.ops
from burnish import Tensor, nn, ops

FILES = sorted(Path(burnish.codegen.ops.__file__).parent.rglob("*.py"))
HOMES = {"call": ops, "layer": nn, "method": Tensor, "made": Tensor}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_name_that_a_rule_writes_exists(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        home = HOMES.get(node.func.id)
        place = 1 if node.func.id == "method" else 0
        if home is None or len(node.args) <= place:
            continue
        name = node.args[place]
        if isinstance(name, ast.Constant):
            assert hasattr(home, name.value), f"line {node.lineno}: {name.value}"
