"""Output of `--json` has the keys and types of docs/json.md, and no others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnish.codegen.cli import main
from burnish.serialize import load_file, save_file

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "null": type(None),
}
TUNED = "out/mnist.safetensors --onto mnist.onnx -o tuned.onnx"
#: By what they print: the section, which table of it, the command line behind its name.
COMMANDS = {
    "an error": ("any command that fails", 0, "generate none.onnx"),
    "generate": ("generate", 0, "generate mnist.onnx -o again"),
    "generate --diff": ("generate", 1, "generate mnist.onnx -o out --diff"),
    "verify": ("verify", 0, "verify mnist.onnx out"),
    "check": ("check", 0, "check out"),
    "check --diff": ("check", 0, "check out --diff"),
    "inspect": ("inspect", 0, "inspect mnist.onnx"),
    "inspect weights": ("inspect", 1, "inspect out/mnist.safetensors"),
    "inspect --against": ("inspect", 2, "inspect mnist.onnx --against other.onnx"),
    "export": ("export", 0, f"export {TUNED}"),
    "profile": ("profile", 0, "profile out/mnist.py --runs 1"),
    "init": ("init", 0, "init mnist.onnx --package app"),
    "upgrade": ("upgrade", 0, "upgrade mnist.onnx -o newer.onnx --opset 20"),
    "kernels": ("kernels", 0, "kernels info"),
}


def tables() -> dict[str, list[dict[str, str]]]:
    """The rows of each table, by the section that it is in."""
    found: dict[str, list[dict[str, str]]] = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        found[title] = [
            dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", block, re.MULTILINE))
            for block in text.split("| --- | --- | --- |")[1:]
        ]
    return found


TABLES = tables()


def leaves(value: Any, path: str, rows: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Every value that is no list and no object, by its path as the page has it."""
    if isinstance(value, dict) and path not in rows:
        names = any(row.startswith(f"{path}{{}}") for row in rows)
        for key, item in value.items():
            below = f"{path}.{key}" if path else key
            yield from leaves(item, f"{path}{{}}" if names else below, rows)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, f"{path}[]", rows)
    else:
        yield path, value


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """mnist.onnx, its source in out/, and other.onnx with other weights."""
    folder = tmp_path_factory.mktemp("json")
    shipped = resources.files("burnish.models.mnist").joinpath("mnist.onnx")
    (folder / "mnist.onnx").write_bytes(shipped.read_bytes())
    (folder / "app").mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "app"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["generate", "mnist.onnx", "-o", "out"]) == 0
        state = dict(load_file("out/mnist.safetensors"))
        save_file({**state, "conv1.bias": np.ones(8, np.float32)}, "w.safetensors")
        line = "export w.safetensors --onto mnist.onnx -o other.onnx"
        assert main(line.split()) == 0
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_keys_and_types_are_those_of_the_page(
    name: str,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    section, number, line = COMMANDS[name]
    rows = TABLES[section][number]
    monkeypatch.chdir(project)
    capsys.readouterr()
    code = main([*line.split(), "--json"])
    assert code == (1 if name == "an error" else 0)
    printed = json.loads(capsys.readouterr().out)
    found = list(leaves(printed, "", rows))
    for path, value in found:
        assert path in rows, (path, value)
        kinds = re.split(", | or ", rows[path].strip())
        assert any(
            isinstance(value, TYPES[kind])
            and (kind == "boolean" or not isinstance(value, bool))
            for kind in kinds
        ), (path, value, kinds)
    top = {re.split(r"[.\[{]", path)[0] for path in rows}
    optional = {"diffs"} if name == "check" else set()
    assert top - printed.keys() == optional
