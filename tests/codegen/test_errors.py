"""The generator's errors: one tree, reports of everything that is missing."""

from __future__ import annotations

import re

from burnish.codegen import errors
from burnish.codegen.errors import (
    AttributeNotHonouredError,
    ConversionError,
    UnsupportedError,
    UsageError,
)


def test_the_drawn_tree_is_the_tree():
    drawn = re.findall(r"^[│├└─ ]*(\w+Error) ", errors.__doc__, re.MULTILINE)
    defined = {
        name
        for name, held in vars(errors).items()
        if isinstance(held, type) and issubclass(held, ConversionError)
    }
    assert set(drawn) == defined


def test_exit_codes():
    assert ConversionError("x").exit_code == 1
    assert UsageError("x").exit_code == 2


def test_all_missing_operators_are_in_one_report():
    missing = {"ai.onnx.Foo (opset 18)": ["a", "b"], "my.Bar (opset 1)": ["c"]}
    error = UnsupportedError(missing)
    assert error.missing == missing
    assert str(error).splitlines()[1:] == [
        "  ai.onnx.Foo (opset 18): nodes 'a', 'b'",
        "  my.Bar (opset 1): node 'c'",
    ]


def test_an_attribute_says_what_was_expected():
    error = AttributeNotHonouredError("n", "Attention-23", "mode", 0, 1)
    assert str(error) == "node 'n' (Attention-23): expected mode=0, got 1"
