"""Expressions as text: what Python reads is what was meant, and ruff has no wish."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burnish.codegen.program import (
    Attribute,
    BinOp,
    Call,
    Conditional,
    Expression,
    ListOrTuple,
    Literal,
    Method,
    Name,
    Repeat,
    SelfAttr,
    Slice,
    Subscript,
    UnaryOp,
    Value,
)
from burnish.codegen.render.words import literal, number, quoted, text
from tests.harness.examples import examples
from tests.harness.ruff import formatted

A, B, C = Value("a"), Value("b"), Value("c")
NAMES = {A: "a", B: "b", C: "c"}
SCOPE = {"a": 5, "b": -3, "c": 2}

INFIX: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "/": operator.truediv,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "**": lambda a, b: a ** (abs(b) % 4),
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}


def meant(e: Expression) -> Any:
    """The value of a tree, without any text."""
    match e:
        case Value():
            return SCOPE[NAMES[e]]
        case Literal(value=value):
            return value
        case BinOp(operator="and", left=left, right=right):
            return meant(left) and meant(right)
        case BinOp(operator="or", left=left, right=right):
            return meant(left) or meant(right)
        case BinOp(operator="**", left=left, right=right):
            return meant(left) ** meant(right)
        case BinOp(operator=sign, left=left, right=right):
            return INFIX[sign](meant(left), meant(right))
        case UnaryOp(operator="-", operand=operand):
            return -meant(operand)
        case UnaryOp(operator="~", operand=operand):
            return ~meant(operand)
        case UnaryOp(operand=operand):
            return not meant(operand)
        case Conditional(then=then, condition=condition, otherwise=otherwise):
            return meant(then) if meant(condition) else meant(otherwise)
        case Call(function="max", args=args):
            return max(*map(meant, args))
        case ListOrTuple(items=items, brackets=brackets):
            return (tuple if brackets == "()" else list)(map(meant, items))
        case Subscript(target=target, keys=(Slice() as key,)):
            return meant(target)[_slice(key)]
        case Subscript(target=target, keys=(key,)):
            return meant(target)[meant(key)]
        case Method(target=target, name="__add__", args=(other,)):
            return meant(target).__add__(meant(other))
        case Attribute(target=target):
            return meant(target).real
    raise TypeError(e)


def _slice(key: Slice) -> slice:
    parts = (key.start, key.stop, key.step)
    return slice(*(None if p is None else meant(p) for p in parts))


numbers = st.sampled_from([A, B, C]) | st.integers(-3, 9).map(Literal)


def _grown(e: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    bound = st.none() | e
    powers = st.integers(-1, 3).map(Literal) | st.just(C)
    signs = [sign for sign in INFIX if sign != "**"]
    listed = st.lists(e, min_size=1, max_size=4).map(tuple)
    displays = st.builds(ListOrTuple, listed, st.sampled_from(["[]", "()"]))
    one = st.sampled_from([Literal(0), Literal(-1), A])
    return st.one_of(
        st.builds(BinOp, st.sampled_from(signs), e, e),
        st.builds(BinOp, st.just("**"), e, powers),
        st.builds(UnaryOp, st.sampled_from(["-", "~", "not "]), e),
        st.builds(Conditional, e, e, e),
        st.builds(lambda args: Call("max", (ListOrTuple(args),)), listed),
        st.builds(lambda d, k: Subscript(d, (k,)), displays, one),
        st.builds(
            lambda d, *bounds: Subscript(
                Subscript(d, (Slice(*bounds),)), (Literal(0),)
            ),
            displays,
            bound,
            bound,
            bound,
        ),
        st.builds(lambda d: Subscript(d, (Literal(0),)), displays),
        st.builds(lambda t, o: Method(t, "__add__", (o,)), e, e),
        st.builds(lambda t: Attribute(t, "real"), e),
    )


trees = st.recursive(numbers, _grown, max_leaves=9)


_FAILURES = (ArithmeticError, AttributeError, TypeError, IndexError, ValueError)


def _outcome(compute: Callable[[], Any]) -> Any:
    try:
        value = compute()
    except _FAILURES as error:
        return type(error)
    return type(value), value


any_tree = pytest.mark.filterwarnings(
    "ignore::SyntaxWarning",  # a number that is called, say
    "ignore:Bitwise inversion:DeprecationWarning",  # what is a tensor is a bool here
    "ignore:NotImplemented should:DeprecationWarning",  # int.__add__ of a float
)
"""Trees are made of anything, and read by Python: some are what nobody writes."""


@any_tree
def test_python_reads_what_was_meant_and_the_formatter_leaves_it_alone():
    """One page of all trees for the formatter, which is a process of its own."""
    lines = []

    @settings(max_examples=examples(400), suppress_health_check=[HealthCheck.too_slow])
    @given(trees)
    def is_read(tree):
        words = text(tree, NAMES)
        lines.append(f"x = {words}")
        scope = {"__builtins__": {"max": max}, **SCOPE}
        read = _outcome(lambda: eval(words, scope))
        assert read == _outcome(lambda: meant(tree)), words

    is_read()
    page = "\n".join(line for line in lines if len(line) <= 88) + "\n"
    wished = formatted(page).splitlines()
    assert [
        pair
        for pair in zip(page.splitlines(), wished, strict=True)
        if len(set(pair)) > 1
    ] == []


def _forms(*parts: Expression) -> list[Expression]:
    """Every kind of expression over the parts, in each of its places."""
    a, b, c = parts
    return [
        *(BinOp(sign, a, b) for sign in INFIX if sign != "**"),
        BinOp("**", a, Literal(2)),
        *(UnaryOp(sign, a) for sign in ("-", "~", "not ")),
        UnaryOp("-", UnaryOp("-", a)),
        Conditional(a, b, c),
        Call("max", (ListOrTuple((a, b)),)),
        Subscript(ListOrTuple((a, b)), (Literal(0),)),
        Attribute(a, "real"),
        Method(a, "__add__", (b,)),
    ]


@pytest.mark.parametrize("sign", [1, -1])
@any_tree
def test_every_kind_inside_every_kind(sign):
    scope = {"__builtins__": {"max": max}, **SCOPE}
    for inner in _forms(Literal(7 * sign), A, C):
        for place in range(3):
            parts = [B, Literal(4), A]
            parts[place] = inner
            for tree in _forms(*parts):
                words = text(tree, NAMES)
                read = _outcome(lambda words=words: eval(words, scope))
                assert read == _outcome(lambda tree=tree: meant(tree)), words


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (UnaryOp("-", UnaryOp("-", A)), "a"),
        (UnaryOp("-", UnaryOp("-", UnaryOp("-", A))), "-a"),
        (UnaryOp("-", Literal(-3)), "3"),
        (BinOp("**", UnaryOp("-", UnaryOp("-", A)), Literal(2)), "a**2"),
        (UnaryOp("-", UnaryOp("~", A)), "-~a"),
        (UnaryOp("-", UnaryOp("-", BinOp("==", A, A))), "+(a == a)"),
        (UnaryOp("-", UnaryOp("-", UnaryOp("not ", A))), "+(not a)"),
        (UnaryOp("-", UnaryOp("-", BinOp("+", A, A))), "a + a"),
        (
            UnaryOp("-", UnaryOp("-", Conditional(BinOp("<", A, B), A, B))),
            "+(a < b if a else b)",
        ),
    ],
)
def test_no_minus_undoes_a_minus(tree, words):
    """Linters take -(-a) for a decrement of C's; that of a bool is an int."""
    assert text(tree, NAMES) == words
    assert _outcome(lambda: eval(words, dict(SCOPE))) == _outcome(lambda: meant(tree))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1e-5, "1e-5"),
        (0.5, "0.5"),
        (3.0, "3.0"),
        (1e20, "1e20"),
        (1e16, "1e16"),
        (-1e9, "-1e9"),
        (1e5, "100000.0"),
        (1.5e-10, "1.5e-10"),
        (2e-100, "2e-100"),
        (1e100, "1e100"),
        (-0.0, "-0.0"),
        (math.inf, 'float("inf")'),
        (-math.inf, 'float("-inf")'),
        (math.nan, 'float("nan")'),
    ],
)
def test_floats(value, words):
    assert number(value) == words
    assert repr(eval(words)) == repr(value)


@given(st.floats())
def test_any_float_comes_back(value):
    assert repr(eval(number(value))) == repr(value)


@given(st.text(), st.binary())
def test_any_string_comes_back(words, data):
    assert eval(quoted(words)) == words
    assert eval(literal(data)) == data
    assert "\n" not in quoted(words)


@settings(max_examples=examples(5))
@given(st.lists(st.text(max_size=30), min_size=100, max_size=100))
def test_strings_are_quoted_as_the_formatter_does(many):
    lines = "".join(f"x = {quoted(words)}\n" for words in many)
    assert formatted(lines) == lines


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ((1,), "(1,)"),
        ((), "()"),
        ([], "[]"),
        ([1, (2.0, "a")], '[1, (2.0, "a")]'),
        (None, "None"),
        (True, "True"),
        ('say "a"', "'say \"a\"'"),
        ("it's", '"it\'s"'),
        (b"\x00a", 'b"\\x00a"'),
        (..., "..."),
    ],
)
def test_literals(value, words):
    assert literal(value) == words


SPELLING = [
    (Subscript(A, (Slice(),)), "a[:]"),
    (Subscript(A, (Slice(), Literal(0))), "a[:, 0]"),
    (Subscript(A, (Slice(None, BinOp("+", B, C)),)), "a[: b + c]"),
    (Subscript(A, (Slice(B, None, Literal(-1)),)), "a[b::-1]"),
    (Subscript(A, (Literal(...), Literal(None))), "a[..., None]"),
    (Subscript(Literal(-1), (Literal(0),)), "(-1)[0]"),
    (Attribute(Literal(1), "real"), "(1).real"),
    (Attribute(UnaryOp("-", A), "T"), "(-a).T"),
    (UnaryOp("-", BinOp("**", A, B)), "-(a**b)"),
    (BinOp("**", UnaryOp("-", A), B), "(-a) ** b"),
    (BinOp("@", A, Attribute(B, "mT")), "a @ b.mT"),
    (Call("f", (UnaryOp("*", A),)), "f(*a)"),
    (SelfAttr(("layers", 0, "conv")), "self.layers[0].conv"),
    (Repeat(Call("Block"), Literal(2)), "[Block() for _ in range(2)]"),
    (Method(Name("self"), "f", (), (("a", Literal(1)),)), "self.f(a=1)"),
]


@pytest.mark.parametrize(("tree", "words"), SPELLING)
def test_spelling(tree, words):
    assert text(tree, NAMES) == words


def test_the_formatter_spells_them_so():
    page = "".join(f"{words}\n" for _, words in SPELLING)
    assert formatted(page) == page
