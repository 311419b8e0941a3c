"""Long lines break where a formatter would break them."""

from __future__ import annotations

from collections.abc import Iterable

from burnish.codegen.program import (
    Attribute,
    BinOp,
    Call,
    Expression,
    Literal,
    Method,
    ModuleCall,
    SelfAttr,
    Subscript,
    Value,
)
from burnish.codegen.render.layout import laid_out
from tests.harness.ruff import formatted

X = Value("x", "float32", (2, 3))


def unchanged(expressions: Iterable[Expression]) -> None:
    """One function for each expression; the formatter starts once for all of them."""
    source = "\n\n".join(
        "\n".join(["def f(x):", *laid_out("value = ", expression, {X: "x"}, 4), ""])
        for expression in expressions
    )
    assert formatted(source) == source


def test_a_chain_of_calls_breaks_as_a_formatter_breaks_it() -> None:
    def chains(width: int) -> Iterable[Expression]:
        product = BinOp("@", X, Literal("a" * width))
        for start in (X, product, ModuleCall(SelfAttr(("value",)), (X,))):
            chain = Method(start, "reshape", (Literal(2), Literal(-1), Literal(8)))
            last = (Literal("b" * width),)
            chain = Method(Attribute(chain, "mT"), "transpose", last)
            chain = Method(Subscript(chain, (Literal(0),)), "sum", (Literal(1),))
            yield chain
            yield Call("ops.concat", (X, chain), (("axis", chain),))

    unchanged(chain for width in range(3, 60) for chain in chains(width))


def test_the_last_operand_of_two_breaks_as_a_formatter_breaks_it() -> None:
    def products(width: int) -> Iterable[Expression]:
        long = Call("f", (Literal("a" * width), Literal("b" * 30)))
        for last in (BinOp("-", Attribute(X, "mT"), long), long):
            for operator in "@*":
                yield BinOp(operator, Attribute(X, "mT"), last)

    unchanged(made for width in range(1, 40, 3) for made in products(width))


def test_a_chain_of_operands_breaks_as_a_formatter_breaks_it() -> None:
    def sums(width: int) -> Iterable[Expression]:
        condition = (Literal("a" * width), X)
        call = Call("ops.select", condition, (("axis", Literal(-1)),))
        for left in (BinOp("+", X, call), BinOp("+", call, X), BinOp("-", call, call)):
            yield BinOp("+", left, call)
            yield BinOp("-", left, X)

    unchanged(total for width in range(3, 90, 3) for total in sums(width))


def test_a_long_path_stands_in_brackets_where_it_fits_then() -> None:
    def paths(width: int) -> Iterable[Expression]:
        path = SelfAttr(("a" * 35, "b" * width))
        return path, Attribute(path, "weight")

    unchanged(path for width in range(22, 45) for path in paths(width))
