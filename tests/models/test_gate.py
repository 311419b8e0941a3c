"""Generated text reads as if a person had written it: each rule of that is a test."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from burnish import nn, ops
from burnish.models._gallery import ENTRIES, Entry
from tests.harness.ruff import lint_later

every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.module)


def text(entry: Entry) -> str:
    return entry.source.read_text("utf-8")


def classes(entry: Entry) -> list[ast.ClassDef]:
    return [n for n in ast.parse(text(entry)).body if isinstance(n, ast.ClassDef)]


def function(owner: ast.ClassDef, name: str) -> ast.FunctionDef:
    (found,) = (
        n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == name
    )
    return found


@every_entry
def test_formatter_and_linter_are_silent(entry: Entry) -> None:
    lint_later(text(entry))


@every_entry
def test_nothing_is_suppressed_and_no_line_is_too_long(entry: Entry) -> None:
    assert not re.search(r"noqa|type: *ignore|fmt: *off", text(entry))
    assert max(map(len, text(entry).splitlines())) <= 88


@every_entry
def test_no_number_is_spelled_in_double_precision(entry: Entry) -> None:
    for node in ast.walk(ast.parse(text(entry))):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            digits = repr(node.value)
            mantissa = digits.partition("e")[0].replace(".", "").strip("0")
            assert len(mantissa) <= 9, digits


@every_entry
def test_no_name_is_a_number_of_the_file(entry: Entry) -> None:
    """`val_12`, unless an input is called so."""
    tree = ast.parse(text(entry))
    inputs = {a.arg for a in function(classes(entry)[-1], "forward").args.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.arg | ast.Attribute):
            name = getattr(node, "id", None) or getattr(node, "arg", None)
            name = name or getattr(node, "attr", "")
            assert name in inputs or not re.search(r"_\d+$", name), name


@every_entry
def test_no_default_is_spelled_out(entry: Entry) -> None:
    for call in calls(entry):
        target = callee(call)
        if target is None:
            continue
        parameters = inspect.signature(target).parameters
        for keyword in call.keywords:
            if keyword.arg in parameters and isinstance(keyword.value, ast.Constant):
                default = parameters[keyword.arg].default
                same = type(default) is type(keyword.value.value)
                assert not (same and default == keyword.value.value), ast.unparse(call)


def calls(entry: Entry) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(text(entry))):
        if isinstance(node, ast.Call):
            yield node


def callee(call: ast.Call) -> Any:
    """The layer or operator that is called."""
    name = call.func
    if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name):
        return getattr({"nn": nn, "ops": ops}.get(name.value.id), name.attr, None)
    return None


@every_entry
def test_every_class_has_a_body_of_its_own(entry: Entry) -> None:
    bodies = [
        "\n".join(ast.unparse(n) for n in owner.body if isinstance(n, ast.FunctionDef))
        for owner in classes(entry)
    ]
    assert len(set(bodies)) == len(bodies)


@every_entry
def test_every_class_is_short(entry: Entry) -> None:
    """A class is seen at one glance; what is longer has parts that are classes."""
    for owner in classes(entry):
        assert owner.end_lineno is not None
        assert owner.end_lineno - owner.lineno < 60, owner.name


@every_entry
def test_every_class_is_used(entry: Entry) -> None:
    *parts, model = (owner.name for owner in classes(entry))
    assert model == "Model"
    called = {c.func.id for c in calls(entry) if isinstance(c.func, ast.Name)}
    assert set(parts) <= called


@every_entry
def test_a_local_name_is_used_or_rolls(entry: Entry) -> None:
    """Nothing is assigned and not read."""
    for owner in classes(entry):
        body = function(owner, "forward")
        names = [n for n in ast.walk(body) if isinstance(n, ast.Name)]
        read = {n.id for n in names if isinstance(n.ctx, ast.Load)}
        stored = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        assert stored <= read | {"_"}, owner.name


@every_entry
def test_imports_are_those_in_use(entry: Entry) -> None:
    tree = ast.parse(text(entry))
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert imported <= used
