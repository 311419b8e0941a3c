"""Packages are small, and say what comes in, what goes out and what stays true."""

import ast
from pathlib import Path

import pytest

import burnish.codegen

ROOT = Path(burnish.codegen.__file__).parent
PACKAGES = sorted({file.parent for file in ROOT.rglob("*.py")})
MOST = 16
"""Files of one package, beside its `__init__`."""


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_package_says_what_it_does(package: Path) -> None:
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    text = ast.get_docstring(tree) or ""
    for word in ("In: ", "Out: ", "Invariant: "):
        assert word in text, f"the docstring of {package} lacks {word!r}"


def test_packages_are_small() -> None:
    sizes = {str(p.relative_to(ROOT)): len([*p.glob("*.py")]) - 1 for p in PACKAGES}
    assert not {name: files for name, files in sizes.items() if files > MOST}
