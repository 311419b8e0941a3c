"""The text of programs: `parsed` reads what `str` writes as the same program."""

from __future__ import annotations

import copy
import dataclasses
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.codegen import pipeline
from burnish.codegen.arrange import arrange
from burnish.codegen.arrange.pipeline import PHASES, Facts, build_classes
from burnish.codegen.pipeline import Options, generate
from burnish.codegen.program import (
    Assign,
    Attribute,
    BinOp,
    Block,
    Call,
    Conditional,
    Constant,
    Expression,
    Host,
    If,
    Keyed,
    Layer,
    Level,
    ListOrTuple,
    Literal,
    Loop,
    Method,
    Name,
    Program,
    Slice,
    Source,
    Statement,
    Subscript,
    UnaryOp,
    Unwritten,
    Value,
    Weight,
)
from tests.codegen.arrange.test_calls import network
from tests.codegen.arrange.test_structure import encoder, pyramid
from tests.harness.examples import examples
from tests.harness.program_text import parsed

TEXT = """\
weight fc_weight 'fc.weight': of s0(16, transposed) float32[4, 4]
input x: float32[batch, 4]
input keep: any[...] = None
n: host nonnegative int64[] = x.shape[0,]
h: float32[batch, 4] = nn.Linear(4, 4, bias=False, weight=fc_weight)(x)  # a.0:Block#1
y: float32[batch, 4] = if (n > 1):
    t: float32[batch, 4] = (h + ops.tanh(h))
    return t
else:
    return h
z: float32[batch, 4], rows: float32[n, 4] = loop:
    @count n
    @index i: host int64[]
    @carry s: float32[batch, 4] = y
    @collected 1
    u: float32[batch, 4] = ops.clip(s, -1.0, inf)
    return u, u[i,]
w: float32[4] = loop:
    @items x
    @index row: float32[4]
    @beside other: float32[4] = z
    @carry total: float32[4] = x[0,]
    v: float32[4] = (total + (row * other))
    return v
return z, rows, w
output 'z': float32[batch, 4]
output 'rows': float32['2*n', _]
output 'w': float32[4]
unknown 'Foo': 'a', 'b'
"""


def test_a_text_is_read_as_what_it_says() -> None:
    program = parsed(TEXT)
    assert str(program) == TEXT
    x, keep = program.inputs
    assert (x.shape, keep.dtype, keep.shape) == (("batch", 4), None, None)
    assert program.optional == {keep: None}
    n, h, y, z, w = program.body.statements
    assert n.targets[0].host
    assert n.targets[0].nonnegative
    assert h.scope == (Level("a"), Level("0", "Block", 1))
    assert isinstance(y, If)
    assert isinstance(z, Loop)
    assert z.initial == y.targets
    assert isinstance(w, Loop)
    assert w.iterables() == ((w.index, x), *w.beside)
    assert program.outputs[1] == ("float32", ("2*n", None))
    assert program.unknown == {"Foo": ["a", "b"]}


def test_indented_text_is_the_same() -> None:
    assert str(parsed(textwrap.indent(TEXT, "    "))) == TEXT


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("input x: float32[batch", "expected a declaration as printed"),
        ("y: float32[4] = ops.tanh(absent)\nreturn y", "declared, got absent"),
        ("return\nnothing", "expected a program's line, got 'nothing'"),
        ("input x: float32[4]", "expected a block that ends with return"),
        ("return _unary(1)", "expected the arguments of _unary as printed, got 1"),
    ],
)
def test_other_text_is_refused(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parsed(line)


WORDS = st.sampled_from(["x", "é²", "", "if", "ops", "/a/b.0", "x", "it's", 'a"b', "l"])
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(width=32, allow_nan=False)
    | WORDS
    | st.just(...),
    lambda inner: st.lists(inner, max_size=2) | st.tuples(inner, inner),
    max_leaves=4,
)
SHAPES = st.none() | st.lists(
    st.integers(0, 9) | st.sampled_from(["n", "2*n", "_", "a b", "it's"]) | st.none(),
    max_size=3,
).map(tuple)
LEVELS = st.builds(Level, WORDS, WORDS, st.integers(0, 2))
OPERATORS = ["+", "@", "**", "//", "<=", "and", "or", "is not", "not in", "<<", "%"]


@st.composite
def programs(draw: Any) -> Program:
    """Programs with every kind of expression and statement."""
    source = Source(4, draw(st.booleans()), draw(st.booleans()), draw(st.booleans()))
    weights = [
        Weight(
            draw(WORDS),
            "float32",
            (2, 2),
            lambda: np.zeros((2, 2), "float32"),
            trained=draw(st.booleans()),
            source=draw(st.sampled_from([None, source])),
            persistent=draw(st.booleans()),
        )
        for _ in range(2)
    ]

    def value(host: bool = False) -> Value:
        dtype = draw(st.sampled_from([None, "float32", "int64"]))
        return Value(draw(WORDS), dtype, draw(SHAPES), host, draw(st.booleans()))

    inputs = [value() for _ in range(2)]

    def expression(seen: list[Value], depth: int = 2) -> Expression:
        def one() -> Expression:
            return expression(seen, depth - 1)

        def several() -> tuple[Expression, ...]:
            return tuple(one() for _ in range(draw(st.integers(0, 2))))

        def options() -> tuple[tuple[str, Expression], ...]:
            return (("axis", one()),) if draw(st.booleans()) else ()

        leaves = [
            lambda: draw(st.sampled_from([*seen, *weights])),
            lambda: Literal(draw(PLAIN)),
            lambda: Name(draw(st.sampled_from(["self.device", "i"]))),
            lambda: Constant(np.array([[1, 2]], "int64")),
        ]
        trees = [
            lambda: Call("ops.tanh", several(), options()),
            lambda: Call("abs", (one(),)),
            lambda: Unwritten("self.foo", several(), options(), "Foo", 2),
            lambda: Method(one(), "sum", several(), options()),
            lambda: Attribute(draw(st.sampled_from(seen)), "T"),
            lambda: BinOp(draw(st.sampled_from(OPERATORS)), one(), one()),
            lambda: UnaryOp(draw(st.sampled_from(["-", "~", "not "])), one()),
            lambda: Conditional(one(), one(), one()),
            lambda: ListOrTuple(several(), draw(st.sampled_from(["[]", "()"]))),
            lambda: Keyed((("a", one()), ("it's", one()))),
            lambda: Subscript(one(), (one(), Slice(None, one()))),
            lambda: Subscript(one(), (one(),)),
            lambda: Layer(
                "Linear", (2, draw(PLAIN)), {"bias": False}, {"weight": weights[0]}, ()
            ),
            lambda: Host(np.array([one(), one()], object).reshape(2, 1), "int64"),
        ]
        return draw(st.sampled_from(leaves if depth == 0 else [*leaves, *trees]))()

    def block(seen: list[Value], depth: int) -> Block:
        statements: list[Statement] = []
        seen = list(seen)
        for _ in range(draw(st.integers(0, 3))):
            kind = draw(st.sampled_from(["assign", "if", "loop"] if depth else [""]))
            targets = tuple(value() for _ in range(draw(st.integers(1, 2))))
            scope = tuple(draw(st.lists(LEVELS, max_size=2)))
            if kind == "if":
                branches = block(seen, depth - 1), block(seen, depth - 1)
                statements.append(If(targets, scope, expression(seen), *branches))
            elif kind == "loop":
                going, index, carried = value(), value(True), value()
                inner = block([*seen, going, index, carried], depth - 1)
                made = Loop(targets, scope, expression(seen), None, None, going, index)
                made.carried, made.initial = (carried,), (expression(seen),)
                made.collected, made.body = draw(st.integers(0, 1)), inner
                statements.append(made)
            else:
                statements.append(Assign(targets, scope, expression(seen)))
            seen += targets
        return Block(statements, [expression(seen) for _ in range(2)])

    optional = {inputs[1]: draw(PLAIN)} if draw(st.booleans()) else {}
    outputs = [("float32", draw(SHAPES)), (None, None)]
    return Program(inputs, optional, block(inputs, 1), ["y", "it's"], outputs)


def test_a_list_of_a_dict_of_literals_is_no_literal() -> None:
    dicts = ListOrTuple((Keyed((("a", Literal(None)),)),), "[]")
    program = Program([], {}, Block([], [dicts]), ["y"], [(None, None)])
    assert _same(parsed(str(program)), program)


def _structure(part: Any, seen: dict[int, int]) -> Any:
    """Nested tuples that are equal for programs that are the same but for arrays."""
    if isinstance(part, np.ndarray):
        return part.dtype, part.shape, _structure(part.tolist(), seen)
    if isinstance(part, float):
        return "float", repr(part)
    if isinstance(part, list | tuple):
        return type(part), tuple(_structure(each, seen) for each in part)
    if isinstance(part, dict):
        return _structure([*part.items()], seen)
    if not dataclasses.is_dataclass(part):
        return None if callable(part) else (type(part), part)
    if isinstance(part, Value | Weight | Source):
        if id(part) in seen:
            return seen[id(part)]
        seen[id(part)] = len(seen)
    held = [(f.name, getattr(part, f.name)) for f in dataclasses.fields(part)]
    return type(part), _structure(held, seen)


def _same(one: Program, other: Program) -> bool:
    return bool(_structure(one, {}) == _structure(other, {}))


@given(programs())
@settings(max_examples=examples(50), deadline=None)
def test_what_is_printed_is_parsed_as_the_same(program: Program) -> None:
    read = parsed(str(program))
    assert _same(read, program)
    assert str(read) == str(program)


@pytest.mark.parametrize(
    "item", ["(None + None)", "(1 < 2)", "(1 if None else 2)", "(1 or 2)"]
)
def test_a_list_of_computed_numbers_is_no_plain_list(item: str) -> None:
    text = TEXT.replace("u[i,]", f"[{item}]")
    assert str(parsed(text)) == text


def test_other_programs_are_distinguished() -> None:
    one = parsed(TEXT)
    for before, after in (
        ("inf", "1.0"),
        ("n > 1", "n >= 1"),
        ("#1", ""),
        ("s0(16", "s0(9"),
    ):
        assert not _same(one, parsed(TEXT.replace(before, after)))


@pytest.mark.parametrize(
    "build", [lambda: encoder(2), pyramid, lambda: network(*["/block"] * 3)]
)
def test_programs_of_models_are_the_same_before_each_phase(
    build: Callable[[], onnx.ModelProto],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lifted: list[Program] = []

    def keep(program: Program, *given: Any) -> Any:
        lifted.append(copy.deepcopy(program))
        return arrange(program, *given)

    monkeypatch.setattr(pipeline, "arrange", keep)
    onnx.save(build(), tmp_path / "model.onnx")
    generate(tmp_path / "model.onnx", Options())
    [program] = lifted
    facts = Facts()
    for phase in PHASES[: PHASES.index(build_classes)]:
        assert _same(parsed(str(program)), program)
        phase(program, facts)
