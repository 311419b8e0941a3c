"""Classes from scopes: the same numbers as one flat class, every weight once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burnish import serialize
from burnish.codegen.arrange import arrange
from burnish.codegen.arrange.classes.as_layer import Submodule
from burnish.codegen.arrange.classes.containers import as_loop
from burnish.codegen.arrange.classes.members import Members
from burnish.codegen.program import (
    Assign,
    BinOp,
    Block,
    Call,
    Expression,
    Layer,
    Level,
    Plan,
    Program,
    Scope,
    Statement,
    Value,
    Weight,
    pruned,
)
from burnish.codegen.render.page import Header, render
from burnish.codegen.render.words import text
from tests.harness.examples import examples
from tests.harness.ruff import lint_later
from tests.harness.source import check_source, floats, graph, node

HEADER = Header("title", ("Imported.",), (), {})
WORDS = (
    "block", "blocks", "to", "train", "forward", "device", "map", "self", "0", "1", "2",
    "5", "", "class", "é²", "Model", "nn", "x", "conv1", "weight", "visit", "layers",
)  # fmt: skip


@st.composite
def programs(draw: Any) -> Program:
    """A graph of small layers, free weights and functions in any scopes."""
    levels = [
        Level(word)
        for word in draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5))
    ]
    scopes = st.lists(st.sampled_from(levels), max_size=3).map(tuple)
    inputs = [
        Value("images", "float32", ("batch", 3)),
        Value("mask", "float32", ("batch", 3)),
    ]
    pool = [_weight(f"w{i}", (3,), i) for i in range(draw(st.integers(1, 3)))]
    seen: list[Expression] = list(inputs)
    statements = []
    scope: Scope = ()
    for place in range(draw(st.integers(1, 14))):
        if draw(st.integers(0, 2)):
            scope = draw(scopes)
        kind = draw(st.integers(0, 6))
        a = draw(st.sampled_from(seen[-3:])) if kind else draw(st.sampled_from(seen))
        b = draw(st.sampled_from(seen))
        expression: Expression = BinOp("+", a, b)
        if kind < 3:
            given = {"weight": _weight(f"l{place}.weight", (3, 3), place)}
            given["bias"] = _weight(f"l{place}.bias", (3,), place)
            expression = Layer("Linear", (3, 3), {}, given, (a,))
        elif kind == 3:
            expression = BinOp("*", a, draw(st.sampled_from(pool)))
        elif kind == 4:
            expression = Call("ops.tanh", (a,))
        made = Value("", "float32", ("batch", 3))
        statements.append(Assign((made,), scope, expression))
        seen.append(made)
    count = draw(st.integers(1, 3))
    results = [seen[-1], *draw(st.lists(st.sampled_from(seen), max_size=count - 1))]
    names = [f"y{i}" for i in range(len(results))]
    return Program(inputs, {}, pruned(Block(statements, list(results))), names, [])


@st.composite
def stacks(draw: Any) -> Program:
    """Numbered blocks with one body, and what exporters and authors do to them.

    Gaps, blocks that run twice or out of order, weights, tables and sizes from outside,
    results that the whole model hands on, lists inside lists.
    """
    inputs = [Value(name, "float32", ("batch", 3)) for name in ("images", "mask")]
    shared = _weight("table", (3,), 5)
    body = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["linear", "linear", "add", "own", "shared", "tanh"]),
                st.sampled_from(
                    [(), ("fc",), ("mlp", "fc1"), ("0",), ("1",), ("2", "0")]
                ),
                st.integers(0, 2),
            ),
            min_size=1,
            max_size=4,
        )
    )
    numbers = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    outer = draw(st.sampled_from([("layers",), (), ("encoder", "layers"), ("to",)]))
    kind_ = draw(st.sampled_from(["", "Sequential"]))
    stem = draw(st.sampled_from(["", "block", "layer_", "b-"]))
    statements: list[Statement] = []
    weights: dict[Any, Weight] = {}
    seen: list[Expression] = list(inputs)
    x: Expression = inputs[0]
    for turn, number in enumerate(numbers):
        entering = x
        odd = draw(st.integers(0, 7)) == 0
        for place, (kind, inner, other) in enumerate(body):
            second = (entering, inputs[1], draw(st.sampled_from(seen)) if odd else x)[
                other
            ]
            key = (number if draw(st.integers(0, 3)) else turn + 10, place)
            if kind == "linear":
                path = ".".join((*outer, f"{stem}{number}", *inner, f"l{turn}{place}"))
                shapes = {"weight": (3, 3), "bias": (3,)}
                given = {n: _weight(f"{path}.{n}", s, turn) for n, s in shapes.items()}
                expression: Expression = Layer("Linear", (3, 3), {}, given, (x,))
            elif kind == "own":
                weight = weights.setdefault(
                    key, _weight(f"{key[0]}.gamma", (3,), place)
                )
                expression = BinOp("*", x, weight)
            elif kind == "shared":
                expression = BinOp("*", shared, x)
            elif kind == "tanh":
                expression = Call("ops.tanh", (x,))
            else:
                expression = BinOp("+", x, second)
            x = Value("", "float32", ("batch", 3))
            scope = tuple(map(Level, (*outer, f"{stem}{number}", *inner)))
            if outer:
                around = Level(outer[-1], kind_)
                scope = (*scope[: len(outer) - 1], around, *scope[len(outer) :])
            statements.append(Assign((x,), scope, expression))
            seen.append(x)
    results = [x, *draw(st.lists(st.sampled_from(seen), max_size=1))]
    names_ = [f"y{i}" for i in range(len(results))]
    return Program(inputs, {}, pruned(Block(statements, results)), names_, [])


def _weight(path: str, shape: tuple[int, ...], seed: int) -> Weight:
    values = np.random.default_rng(seed + 7 * len(shape)).normal(size=shape) * 0.3
    return Weight(path, "float32", shape, lambda: values.astype(np.float32))


def numbers(plan: Plan, text: str) -> tuple[np.ndarray, ...]:
    """The outputs of the generated model with its weights, which must fit exactly."""
    scope: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "generated", "exec"), scope)
    model = scope["Model"].from_bytes(
        serialize.to_bytes({path: w.read() for path, w in plan.weights})
    )
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(2, 3)).astype(np.float32) for _ in range(2)]
    found = model(*given)
    found = found if isinstance(found, tuple) else (found,)
    return tuple(np.asarray(y) for y in found)


def scopes_of(program: Program) -> list[Scope]:
    return [s.scope for s in program.body.statements]


@settings(max_examples=examples(50), suppress_health_check=list(HealthCheck))
@given(programs() | stacks())
def test_any_scopes_give_the_numbers_of_one_flat_class(program):
    scopes = scopes_of(program)
    flat = arrange(program, flat=True)
    expected = numbers(flat, render(flat, HEADER))
    for statement, scope in zip(program.body.statements, scopes, strict=True):
        statement.scope = scope
    plan = arrange(program)
    text = render(plan, HEADER)
    found = numbers(plan, text)
    stored = [id(weight) for _, weight in plan.weights]
    paths = [path for path, _ in plan.weights]
    assert len(stored) == len(set(stored)) == len(set(paths))
    for y, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6, err_msg=text)


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(programs() | stacks())
def test_ruff_has_no_wish(program):
    text = render(arrange(program), HEADER)
    lint_later(text)


def test_a_part_that_is_given_more_than_the_first_is_no_loop():
    x, y, z, mask = (Value(name) for name in ("x", "y", "z", "mask"))
    first = Submodule(Call("Block"), [], (x,), (y,))
    second = Submodule(Call("Block"), [], (mask, y), (z,))
    assert as_loop([first, second], "block") is None


def program_in(*scopes: str) -> Program:
    """A chain of additions and (in scopes that end in "fc") layers, one a scope."""
    x = Value("images", "float32", ("batch", 3))
    inputs, statements = [x, Value("mask", "float32", ("batch", 3))], []
    for place, scope in enumerate(scopes):
        expression: Expression = BinOp("+", x, inputs[1])
        if scope.endswith("fc"):
            shapes = {"weight": (3, 3), "bias": (3,)}
            given = {n: _weight(f"l{place}.{n}", s, place) for n, s in shapes.items()}
            expression = Layer("Linear", (3, 3), {}, given, (x,))
        x = Value("", "float32", ("batch", 3))
        levels = tuple(map(Level, scope.split("/")))
        statements.append(Assign((x,), levels, expression))
    return Program(inputs, {}, pruned(Block(statements, [x])), ["y"], [])


@pytest.mark.parametrize(
    "scopes",
    [
        ("heads.0.1", "heads.1/fc"),
        ("heads.0.1", "heads.0/fc", "heads.2/fc"),
        ("heads.0/fc", "heads.0.1/fc", "heads.2"),
        ("heads.0.0.0", "heads.1/fc", "heads.0.1/fc", "heads.0/fc"),
    ],
    ids=" ".join,
)
def test_lists_in_lists_of_which_some_hold_nothing(scopes):
    test_any_scopes_give_the_numbers_of_one_flat_class.hypothesis.inner_test(
        program_in(*scopes)
    )


def test_a_list_of_which_nothing_is_left_is_a_gap():
    """What would be in it may be known already, or a function."""
    members = Members()
    for name in ("heads.0", "heads.2.1"):
        members.list_of(name)
    own = members.place(members.list_of("heads"), 1, Call("nn.Tanh"), [])
    made = dict(members.listed(Block([Assign((Value("y"),), (), own)], [])))
    assert text(made["heads"], {}) == "[nn.Identity(), nn.Tanh()]"


def test_heads_in_front_of_rows_keep_their_width():
    """A batch of one was written into the reshape: -1 is the rows, not the heads."""
    made = [
        node("MatMul", "x enc.fc.weight", "h", "/enc/fc/MatMul"),
        node("Reshape", "h sizes", "r", "/enc/Reshape"),
        node("Relu", "r", "y", "/Relu"),
    ]
    weights = {"enc.fc.weight": floats(8, 8), "sizes": np.int64([1, 6, -1, 8])}
    check_source(
        graph(made, weights, x=(6, "rows", 8)), "return self.fc(x).reshape(1, 6, -1, 8)"
    )


def test_a_slice_of_a_sequential_is_no_module():
    """torch's newer exporter writes `self.out[1:](x)` as a module of its own."""
    made = [
        node("MatMul", "x block.out.0.weight", "a"),
        node("Tanh", "a", "b"),
        node("MatMul", "b block.out.2.weight", "c"),
        node("Relu", "c", "y"),
    ]
    cut = "block.out.slice(1, None, None)"
    inside = (("block.out.0",), ("block",), (cut, f"{cut}.2"), ())
    for each, scopes in zip(made, inside, strict=True):
        entry = each.metadata_props.add(key="pkg.torch.onnx.name_scopes")
        block = ["block"] if scopes else []
        entry.value = repr(["", *dict.fromkeys([*block, *scopes]), "n"])
    weights = {f"block.out.{n}.weight": floats(4, 4, seed=n) for n in (0, 2)}
    text = check_source(graph(made, weights, x=("batch", 4)))
    assert "slice" not in text
    assert "self.out[2](ops.tanh(self.out[0](x)))" in text, text
