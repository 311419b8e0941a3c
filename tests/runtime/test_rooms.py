"""Packages of layers and of operators are small, and say what they hold."""

import ast
from pathlib import Path

import pytest

from burnish import nn, ops

MOST = 16
"""Files of one package, beside its `__init__`."""

PACKAGES = [
    file.parent
    for package in (nn, ops)
    for file in sorted(Path(str(package.__file__)).parent.rglob("__init__.py"))
]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: f"{p.parent.name}.{p.name}")
def test_a_package_is_small_and_says_what_it_holds(package):
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    assert len([*package.glob("*.py")]) - 1 <= MOST
