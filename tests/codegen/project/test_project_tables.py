"""[[tool.burnish.model]]: its settings, and the messages for mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from burnish.codegen.errors import UsageError
from burnish.codegen.project import tables
from tests.harness.projects import project

MODEL = '[[tool.burnish.model]]\nsource = "net.onnx"\nmodule = "my_app.net"\n'


def read(folder: Path, text: str) -> tables.Project:
    (folder / "pyproject.toml").write_text(text)
    return tables.read(folder)


def test_every_key(tmp_path: Path) -> None:
    more = (
        'weights = "embed"\ndtype = "float16"\ntyped = true\nflat = true\n'
        f'simplify = false\nsha256 = "{"A" * 64}"\nrules = ["my_rules"]\n'
        'template-dir = "pages"\nstandalone = true\nselftest = true\n'
        "allow-unknown = true\ndequantize = true\n"
    )
    (table,) = read(tmp_path, MODEL + more).models
    assert table.source == tmp_path / "net.onnx"
    assert table.target == tmp_path / "my_app" / "net.py"
    assert table.sha256 == {"": "a" * 64}
    assert table.rules == ("my_rules",)
    assert table.template_dir == tmp_path / "pages"
    spelled = (
        "--half --embed --flat --typed --standalone --selftest --allow-unknown "
        "--dequantize"
    )
    spelled += " --no-simplify"
    assert tables.options(table).spelled() == spelled


def test_a_name_is_an_option_where_it_is_not_the_models(tmp_path: Path) -> None:
    text = MODEL.replace("my_app.net", "my_app.other") + 'weights = "none"\n'
    (table,) = read(tmp_path, text).models
    assert tables.options(table).spelled() == "--name other --no-weights"


@pytest.mark.parametrize(
    ("there", "settings", "expected"),
    [
        ("src/my_app", "", "src"),
        ("my_app", "", "."),
        ("src", "", "src"),
        ("docs", "", "."),
        ("my_app", 'package-dir = "lib"', "lib"),
    ],
)
def test_where_packages_lie(
    tmp_path: Path, there: str, settings: str, expected: str
) -> None:
    (tmp_path / there).mkdir(parents=True)
    found = read(tmp_path, f"[tool.burnish]\n{settings}\n{MODEL}").packages
    assert found == tmp_path / expected


def test_a_project_is_found_from_its_folders(tmp_path: Path) -> None:
    project(tmp_path)
    found = tables.found(tmp_path / "src" / "my_app")
    assert found is not None
    assert found.root == tmp_path
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "pyproject.toml").write_text("[project]\n")
    assert tables.found(tmp_path / "other") is None


MISTAKES = {
    "no TOML": ("[tool", ["expected TOML"]),
    "no table": ("[tool]\nburnish = 1", ["[tool.burnish]", "expected a table", "1"]),
    "one table": ("[tool.burnish.model]\nsource='a'", ["model: expected a list"]),
    "a list of texts": (
        "[tool.burnish]\nmodel = ['a']",
        ["number 1", "a table", "'a'"],
    ),
    "a word that is near": (
        MODEL + "weigths = 'none'",
        ["weigths (did you mean weights"],
    ),
    "an unknown word": (
        "[tool.burnish]\nmodule = 'a'\n" + MODEL,
        ["[tool.burnish]: module (did you mean model?)"],
    ),
    "no source": (
        "[[tool.burnish.model]]\nmodule = 'a.net'",
        ["number 1 (a.net): source: expected a value"],
    ),
    "no module": (
        "[[tool.burnish.model]]\nsource = 'a'",
        ["number 1: module: expected"],
    ),
    "a file": (
        MODEL.replace("my_app.net", "my_app/net.py"),
        ["module: expected a dotted name such as my_app.mnist", "'my_app/net.py'"],
    ),
    "a word of Python": (
        MODEL.replace("my_app.net", "my_app.class"),
        ["module: expected a module's name such as class_ at the end, got 'class'"],
    ),
    "a source above": (
        MODEL.replace("net.onnx", "../net.onnx"),
        ["source: expected a path inside the project", "'../net.onnx'"],
    ),
    "a source elsewhere": (
        MODEL.replace("net.onnx", "/net.onnx"),
        ["source: expected a path inside the project", "'/net.onnx'"],
    ),
    "a type": (MODEL + "typed = 1", ["typed: expected true or false, got 1"]),
    "a choice": (
        MODEL + "weights = 'inline'",
        ["weights: expected one of file, embed, none, got 'inline'"],
    ),
    "a dtype": (MODEL + "dtype = 'half'", ["dtype: expected one of float16, float32"]),
    "a digest": (MODEL + "sha256 = 'abc'", ["sha256: expected 64 hexadecimal digits"]),
    "a digest of a file": (
        MODEL + "sha256 = {'net.onnx' = 1}",
        ["sha256: expected 64 hexadecimal digits, got 1"],
    ),
    "rules": (MODEL + "rules = [1]", ["rules: expected a list of texts, got 1"]),
    "twice": (
        MODEL + MODEL,
        ["number 2 (my_app.net): module: expected a module of its own", "number 1"],
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_name_table_and_key(tmp_path: Path, text: str) -> None:
    written, words = MISTAKES[text]
    with pytest.raises(UsageError) as caught:
        read(tmp_path, written)
    message = str(caught.value)
    assert str(tmp_path / "pyproject.toml") in message
    for word in words:
        assert word in message
