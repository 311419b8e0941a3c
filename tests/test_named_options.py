"""Messages, docstrings and pages name options and arguments that exist.

Every `--option` is one of the command it is named with; every `name=True` is a
parameter of something in Burnish, or stands in a list of what is named of others.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from burnish.codegen.cli import parser

ROOT = Path(__file__).parent.parent
SOURCE = [
    *sorted((ROOT / "runtime").rglob("*.py")),
    *sorted((ROOT / "codegen").rglob("*.py")),
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*\b(?!-)")  # whole ones: no "--no-"
COMMAND = re.compile(r"\bburnish ([a-z]+)\b([^`|;\n]*)")
ARGUMENT = re.compile(r"(?<![\w.-])([a-z_]\w*)=(?:True|False|None)\b")

#: Options of other programs that our texts name, with a word of the text beside them.
OTHERS = {
    "--embeded": "did you mean --embed?",
    "--no-cache-dir": "pip install",
    "--no-deps": "pip wheel",
    "--repo-type": "hf download",
    "--rm": "docker run",
    "--shm-size": "container",
    "--std": "c++17",
    "--strict": "mypy",
    "--target": "pip install",
    "--wheel-dir": "pip wheel",
}

#: Arguments of other libraries that our texts name.
OF_OTHERS = {
    "affine": "torch.nn",
    "allow_pickle": "numpy.load",
    "do_constant_folding": "torch.onnx.export",
    "dynamo": "torch.onnx.export",
    "export_params": "torch.onnx.export",
    "external_data": "torch.onnx.export",
    "keep_initializers_as_inputs": "torch.onnx.export",
    "optimize": "torch.onnx.export",
    "weights_only": "torch.load",
}


@cache
def _commands() -> dict[str, set[str]]:
    """Options by command; "" has those before any."""
    top = parser()
    found = {"": _options(top)}
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                found[name] = _options(command)
    return found


@cache
def _options_of_programs() -> set[str]:
    """The options that programs beside the command add to their parsers."""
    return {
        argument.value
        for folder in ("runtime", "models", "benchmarks", "tests")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        if getattr(node.func, "attr", "") == "add_argument"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def _options(of: argparse.ArgumentParser) -> set[str]:
    return {name for action in of._actions for name in action.option_strings}


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    """What a source file names something with: strings, arguments and fields."""
    kept = (ast.JoinedStr, ast.Constant, ast.FunctionDef, ast.AnnAssign)
    tree = ast.parse(path.read_text("utf-8"))
    return tuple(node for node in ast.walk(tree) if isinstance(node, kept))


def _texts(path: Path) -> Iterator[str]:
    """The page, or the strings of a source file: f-strings without what they insert."""
    content = path.read_text("utf-8")
    if path.suffix != ".py":
        yield content
        return
    inside: set[int] = set()
    for node in _nodes(path):
        if isinstance(node, ast.JoinedStr):
            parts = [p for p in node.values if isinstance(p, ast.Constant)]
            inside.update(map(id, parts))
            yield "".join(str(part.value) for part in parts)
        elif isinstance(node, ast.Constant) and id(node) not in inside:
            yield str(node.value)


@cache
def _parameters() -> frozenset[str]:
    """Names that something in Burnish takes by keyword, and fields of its classes."""
    names: set[str] = set()
    for path in [*SOURCE, *sorted((ROOT / "models").rglob("*.py"))]:
        for node in _nodes(path):
            if isinstance(node, ast.FunctionDef):
                taken = node.args
                names |= {a.arg for a in (*taken.args, *taken.kwonlyargs)}
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    return frozenset(names)


#: Cells of Burnish run in test_burn_to_burnish.py; others name other libraries.
_TABLE = ROOT / "docs" / "burn-to-burnish.md"


# One test: each would parse the whole source again in a process of its own.
def test_options_and_arguments_that_are_named_exist() -> None:
    commands = _commands()
    every = set().union(*commands.values(), _options_of_programs())
    arguments = _parameters() | OF_OTHERS.keys()
    wrong = []
    for path in [*SOURCE, *PAGES]:
        for text in _texts(path):
            for option in OPTION.findall(text):
                near = OTHERS.get(option, "\0")
                if option not in every and near not in text.lower():
                    wrong.append((path, option, text[:200]))
            for name, rest in COMMAND.findall(text):
                for option in OPTION.findall(rest) if name in commands else ():
                    if option not in commands[name]:
                        wrong.append((path, f"{name} {option}", text[:200]))
            for name in ARGUMENT.findall(text) if path != _TABLE else ():
                if name not in arguments:
                    wrong.append((path, f"{name}=", text[:200]))
    assert wrong == []


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_commands_that_are_named_exist(path: Path) -> None:
    named = re.findall(r"(?:`|^)burnish ([a-z][a-z-]*)", path.read_text("utf-8"), re.M)
    assert set(named) <= set(_commands())
