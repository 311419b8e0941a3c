"""Long lines break where a formatter would break them."""

from __future__ import annotations

import pytest

from burnish.codegen.program import (
    Attribute,
    BinOp,
    Call,
    Literal,
    Method,
    ModuleCall,
    SelfAttr,
    Subscript,
    Value,
)
from burnish.codegen.render.layout import laid_out
from tests.harness.ruff import formatted


@pytest.mark.parametrize("width", range(3, 60))
def test_a_chain_of_calls_breaks_as_a_formatter_breaks_it(width):
    x = Value("x", "float32", (2, 3))
    product = BinOp("@", x, Literal("a" * width))
    for start in (x, product, ModuleCall(SelfAttr(("value",)), (x,))):
        chain = Method(start, "reshape", (Literal(2), Literal(-1), Literal(8)))
        chain = Method(Attribute(chain, "mT"), "transpose", (Literal("b" * width),))
        chain = Method(Subscript(chain, (Literal(0),)), "sum", (Literal(1),))
        for expression in (chain, Call("ops.concat", (x, chain), (("axis", chain),))):
            lines = laid_out("value = ", expression, {x: "x"}, 4)
            source = "\n".join(["def f(x):", *lines, ""])
            assert formatted(source) == source


@pytest.mark.parametrize("width", range(1, 40, 3))
def test_the_last_operand_of_two_breaks_as_a_formatter_breaks_it(width):
    x = Value("x", "float32", (2, 3))
    long = Call("f", (Literal("a" * width), Literal("b" * 30)))
    for last in (BinOp("-", Attribute(x, "mT"), long), long):
        for operator in "@*":
            made = BinOp(operator, Attribute(x, "mT"), last)
            lines = laid_out("value = ", made, {x: "x"}, 4)
            source = "\n".join(["def f(x):", *lines, ""])
            assert formatted(source) == source


@pytest.mark.parametrize("width", range(3, 90, 3))
def test_a_chain_of_operands_breaks_as_a_formatter_breaks_it(width):
    x = Value("x", "float32", (2, 3))
    call = Call("ops.select", (Literal("a" * width), x), (("axis", Literal(-1)),))
    for left in (BinOp("+", x, call), BinOp("+", call, x), BinOp("-", call, call)):
        for expression in (BinOp("+", left, call), BinOp("-", left, x)):
            lines = laid_out("value = ", expression, {x: "x"}, 4)
            source = "\n".join(["def f(x):", *lines, ""])
            assert formatted(source) == source
