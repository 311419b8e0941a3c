"""Names from a file become legal names that hide nothing the source calls."""

from __future__ import annotations

import builtins

import pytest

from burnish.codegen.identifier import Identifier, free


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("print", "print_"),
        ("Max", "max_"),
        ("l", "l_"),
        ("input", "input"),
        ("class", "class_"),
        ("layer.0/weight", "layer_0_weight"),
        ("a-b", "a_b"),
        ("0", "n0"),
        ("", "value"),
    ],
)
def test_variable(text, name):
    assert Identifier.variable(text) == name


@pytest.mark.parametrize("name", ["abs", "float", "int", "max", "range", "round"])
def test_what_the_source_calls_is_not_hidden(name):
    assert not hasattr(builtins, Identifier.variable(name))
    assert free(Identifier.variable(name), {f"{name}_"}) == f"{name}_2"
