"""Packages of the runtime are small, and say what they hold."""

import ast
from pathlib import Path

import pytest

import burnish

ROOT = Path(burnish.__file__).parent
PACKAGES = [file.parent for file in sorted(ROOT.rglob("__init__.py"))]
MOST = 16
"""Files of one package, beside its `__init__`."""


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_package_is_small_and_says_what_it_holds(package):
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    assert len([*package.glob("*.py")]) - 1 <= MOST
