"""Names from a file become legal names that hide nothing the source calls."""

from __future__ import annotations

import builtins

import pytest

from burnish.codegen.names.identifier import Identifier, free


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


@pytest.mark.parametrize("text", ["json", "JSON", "numpy", "Numpy", "burnish", "io"])
def test_a_module_hides_none_that_it_needs(text):
    assert Identifier.module(text) == f"{text.lower()}_model"


@pytest.mark.parametrize("text", ["resnet18", "my_net", "print", "class"])
def test_another_module_is_named_as_a_variable(text):
    assert Identifier.module(text) == Identifier.variable(text)


@pytest.mark.parametrize("name", ["abs", "float", "int", "max", "range", "round"])
def test_what_the_source_calls_is_not_hidden(name):
    assert not hasattr(builtins, Identifier.variable(name))
    assert free(Identifier.variable(name), {f"{name}_"}) == f"{name}_2"
