"""`burnish init`: what it writes, and that everything else stays."""

from __future__ import annotations

import difflib
import json
import tomllib
from pathlib import Path

import pytest

from burnish.codegen.cli import main
from burnish.codegen.project import tables
from tests.harness.projects import net

pytest.importorskip("tomlkit", reason="tomlkit is not installed: pip install '.[init]'")

Captured = pytest.CaptureFixture[str]

HEAD = """\
# the project

[project]
name = "my-app"  # as on the index
version = "1.0"
dependencies = [
    "numpy",  # arrays
]
"""

SYSTEMS = {
    "none": "",
    "setuptools": '[build-system]\nrequires = ["setuptools"]\n'
    'build-backend = "setuptools.build_meta"\n',
    "hatchling": '[build-system]\nrequires = ["hatchling"]\n'
    'build-backend = "hatchling.build"\n[tool.hatch.version]\npath = "x.py"\n',
    "uv": '[build-system]\nrequires = ["uv_build>=0.9,<1"]\n'
    'build-backend = "uv_build"\n[tool.ruff]\nline-length = 100\n',
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src" / "my_app").mkdir(parents=True)
    (tmp_path / "src" / "my_app" / "__init__.py").touch()
    net(tmp_path / "assets" / "net.onnx")
    (tmp_path / "pyproject.toml").write_text(HEAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("system", SYSTEMS)
def test_only_lines_are_added(system: str, root: Path, capsys: Captured) -> None:
    path = root / "pyproject.toml"
    path.write_text(before := HEAD + "\n" + SYSTEMS[system])
    assert main(["init", "assets/net.onnx"]) == 0
    message = capsys.readouterr().out
    assert "assets/net.onnx -> my_app.net" in message
    text = path.read_text()
    gone = [
        line
        for line in difflib.ndiff(before.splitlines(), text.splitlines())
        if line.startswith("- ")
    ]
    changed = ("- requires", "- build-backend") if system == "uv" else ("- requires",)
    assert [line for line in gone if not line.startswith(changed)] == []
    found = tomllib.loads(text)
    assert "burnish[codegen]" in found["build-system"]["requires"]
    assert found["project"]["dependencies"] == ["numpy", "burnish"]
    (table,) = tables.read(root).models
    assert table.target == root.resolve() / "src/my_app/net.py"
    if system == "hatchling":
        assert found["tool"]["hatch"]["build"]["hooks"]["burnish"] == {}
    if system == "uv":
        assert found["build-system"]["build-backend"].startswith("burnish.")
        assert found["tool"]["burnish"]["backend"] == "uv_build"
    assert main(["init", "assets/net.onnx"]) == 0
    assert path.read_text() == text
    assert "stays as it is" in capsys.readouterr().err
    assert main(["init", "assets/net.onnx", "--json"]) == 0
    assert not json.loads(capsys.readouterr().out)["written"]


def test_another_model_comes_behind_the_first(root: Path) -> None:
    net(root / "assets" / "Other Net.onnx")
    assert main(["init", "assets/net.onnx", "--package", "my_app.models"]) == 0
    assert main(["init", "assets/Other Net.onnx"]) == 0
    assert [table.module for table in tables.read(root).models] == [
        "my_app.models.net",
        "my_app.models.other_net",
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["no.onnx"], "no.onnx: expected a model file or folder, there is none"),
        (["../net.onnx"], "expected a model inside"),
        (["assets/net.onnx", "--package", "my-app"], "module: expected a dotted name"),
    ],
)
def test_mistakes(
    words: list[str], expected: str, root: Path, capsys: Captured
) -> None:
    net(root.parent / "net.onnx")
    assert main(["init", *words]) == 2
    assert expected in capsys.readouterr().err
    assert (root / "pyproject.toml").read_text() == HEAD


def test_without_a_project_or_a_package(root: Path, capsys: Captured) -> None:
    (root / "src/my_app/__init__.py").unlink()
    assert main(["init", "assets/net.onnx"]) == 2
    assert "--package: expected the package" in capsys.readouterr().err
    (root / "pyproject.toml").unlink()
    assert main(["init", "assets/net.onnx"]) == 2
    assert "expected a project's pyproject.toml" in capsys.readouterr().err
