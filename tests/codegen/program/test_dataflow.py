"""Reads, definitions, last uses and orders, on programs in their text form."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from burnish.codegen.program import (
    Flow,
    Loop,
    Program,
    Statement,
    Value,
    defined,
    demand_order,
    last_uses,
    operands,
    reads,
    values_in,
)
from tests.harness.program_text import parsed

TEXT = """\
input x: float32[2, 4]
a: float32[2, 4] = ops.relu(x)
dead: float32[2, 4] = ops.tanh(a)
y: float32[2, 4] = loop:
    @count 3
    @index i: host int64[]
    @carry c: float32[2, 4] = a
    d: float32[2, 4] = (c + x)
    return d
z: float32[2, 4] = (y * y)
return (z + a)
output 'z': float32[2, 4]
"""


@pytest.fixture
def program() -> Program:
    return parsed(TEXT)


def hints(values: Iterable[Value]) -> str:
    return " ".join(value.hint for value in values)


def named(program: Program, hint: str) -> Statement:
    return next(s for s in program.body.statements if s.targets[0].hint == hint)


def test_reads_and_operands_of_a_loop(program):
    """A loop's own values are read inside it and are not its operands."""
    loop = named(program, "y")
    assert isinstance(loop, Loop)
    assert hints(reads(loop)) == "a c x d"
    assert hints(operands(loop)) == "a x"
    assert hints(defined(loop)) == "y i c d"


def test_reads_of_a_block_have_its_results(program):
    assert hints(reads(program.body)) == "x a a c x d y y z a"
    assert hints(operands(program.body)) == "x x"
    assert hints(values_in(program.body.results)) == "z a"


def test_last_uses(program):
    last = {value.hint: place for value, place in last_uses(program.body).items()}
    assert last == {"x": 2, "a": 4, "c": 2, "d": 2, "y": 3, "z": 4}


def test_flow(program):
    flow = Flow(program.body)
    a, y, z = (named(program, hint) for hint in "ayz")
    assert [s.targets[0].hint for s in flow.readers_of(a)] == ["dead", "y"]
    assert flow.makers(y) == [a]
    assert flow.makers(z) == [y]  # once, although it is read twice
    assert not flow.is_read_outside(y.targets[0], {z})
    assert flow.is_read_outside(a.targets[0], {y})
    assert flow.is_read_outside(z.targets[0], set(program.body.statements))  # a result


ORDERS = {
    "what is needed comes just before its reader": ("d", {"d": "bc", "c": "a"}, "bacd"),
    "of two ends the first": ("ba", {"b": "c", "a": "c"}, "cba"),
    "a diamond": ("d", {"d": "bc", "b": "a", "c": "a"}, "abcd"),
    "what nothing needs is left out": ("b", {"b": "a", "z": "a"}, "ab"),
    "a cycle ends where it was entered": ("a", {"a": "b", "b": "a"}, "ba"),
    "a node twice": ("aa", {}, "a"),
    "nothing": ("", {"a": "b"}, ""),
}


@pytest.mark.parametrize(("ends", "needs", "order"), ORDERS.values(), ids=ORDERS)
def test_demand_order(ends, needs, order):
    assert "".join(demand_order(ends, lambda node: needs.get(node, ""))) == order


def test_demand_order_is_not_recursive():
    """A chain longer than Python's stack."""
    chain = demand_order([100_000], lambda n: [n - 1] if n else [])
    assert [*chain] == list(range(100_001))
