"""What is public: what pages import, each name declared once by its package."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections import Counter
from pathlib import Path

import pytest

import burnish

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
IMPORT = re.compile(r"^from burnish\S* import (?:\([^)]*\)|.*)$", re.MULTILINE)
MODULES = [
    name
    for _, name, _ in pkgutil.iter_modules(burnish.__path__, "burnish.")
    if name.split(".")[1] not in ("__main__", "codegen", "models", "templates")
]


def _imported() -> set[tuple[str, str]]:
    """Modules of the runtime and names that blocks of the pages import from them."""
    found = set()
    for page in PAGES:
        for line in IMPORT.findall(page.read_text("utf-8")):
            [node] = ast.parse(line).body
            assert isinstance(node, ast.ImportFrom)
            found |= {(node.module or "", alias.name) for alias in node.names}
    return {pair for pair in found if pair[0] in ("burnish", *MODULES)}


def _reexported(module: str) -> set[str]:
    """Names that the file defines, or imports as themselves."""
    path = importlib.import_module(module).__file__
    assert path is not None
    found: set[str] = set()
    for node in ast.walk(ast.parse(Path(path).read_text("utf-8"))):
        match node:
            case ast.ImportFrom(names=names):
                found |= {alias.name for alias in names if alias.asname == alias.name}
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
    return found


@pytest.mark.parametrize(("module", "name"), sorted(_imported()))
def test_what_pages_import_is_public(module: str, name: str) -> None:
    made = importlib.import_module(module)
    public = set(getattr(made, "__all__", ())) | _reexported(module)
    submodule = f"{module}.{name}" in (*MODULES, "burnish.codegen", "burnish.models")
    assert name in public or submodule
    assert not name.startswith("_")


@pytest.mark.parametrize("module", ["burnish", *MODULES])
def test_each_public_name_is_declared_once(module: str) -> None:
    made = importlib.import_module(module)
    names = Counter(getattr(made, "__all__", ()))
    assert [name for name, times in names.items() if times > 1] == []
    assert [name for name in names if name.startswith("_")] == []
    assert [name for name in names if not hasattr(made, name)] == []


def test_modules_that_the_runtimes_page_names_exist() -> None:
    page = (ROOT / "docs" / "runtime.md").read_text("utf-8")
    named = set(re.findall(r"`burnish\.(\w+)[`.]", page))
    assert named
    assert [name for name in named if not _exists(name)] == []


def _exists(name: str) -> bool:
    return f"burnish.{name}" in MODULES or name in burnish.__all__
