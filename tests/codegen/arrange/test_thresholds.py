"""Thresholds of arranging, with both sides and the false positive each prevents."""

from __future__ import annotations

import numpy as np
import pytest

from burnish.codegen.arrange.classes.buffer_init import start
from burnish.codegen.arrange.classes.members import is_mask
from burnish.codegen.arrange.merge.alignment import Alignment
from burnish.codegen.arrange.merge.comprehensions import with_runs
from burnish.codegen.arrange.merge.progressions import progression
from burnish.codegen.program import (
    Assign,
    Block,
    Call,
    Expression,
    Literal,
    Name,
    Repeat,
    UnaryOp,
    Value,
    Weight,
)


def _linear(*sizes: int) -> list[Expression]:
    return [Call("nn.Linear", (Literal(size), Literal(4))) for size in sizes]


def _blocks(*flags: bool) -> list[Expression]:
    return [Call("Block", (), (("shift", Literal(flag)),)) for flag in flags]


@pytest.mark.parametrize(
    ("sizes", "is_one"),
    [((8, 16), False), ((8, 16, 24), True), ((8, 16, 32), False), ((8, 8), True)],
)
def test_two_sizes_are_always_in_progression_and_no_evidence(
    sizes: tuple[int, ...], is_one: bool
) -> None:
    assert (progression(_linear(*sizes)) is not None) == is_one


@pytest.mark.parametrize(
    ("flags", "is_one"),
    [
        ((False, True, False), True),
        ((False, True, True, False), False),
        ((True, False, False), True),
    ],
    ids=["in turn", "no rule", "the first alone"],
)
def test_switches_follow_a_rule_or_none(flags: tuple[bool, ...], is_one: bool) -> None:
    assert (progression(_blocks(*flags)) is not None) == is_one


@pytest.mark.parametrize(
    ("sizes", "is_loop"),
    [
        ((8, 8), False),
        ((8, 8, 8), True),
        ((8, 16, 24), False),
        ((8, 16, 24, 32), True),
    ],
    ids=["two equal", "three equal", "three growing", "four growing"],
)
def test_short_runs_are_written_out(sizes: tuple[int, ...], is_loop: bool) -> None:
    made = with_runs(Call("nn.Sequential", tuple(_linear(*sizes))))
    assert isinstance(made, Call)
    looped = [
        part
        for part in made.args
        if isinstance(part, UnaryOp) and isinstance(part.operand, Repeat)
    ]
    assert bool(looped) == is_loop
    assert len(made.args) == (1 if is_loop else len(sizes))


def _table(*numbers: float) -> Weight:
    array = np.array(numbers, np.float32)
    return Weight("table", "float32", array.shape, lambda: array, trained=False)


@pytest.mark.parametrize(
    ("numbers", "function"),
    [
        ((0, 1), "nn.init.zeros"),
        ((0, 1, 2), "nn.init.arange"),
        ((1, 0.01), "nn.init.zeros"),
        ((1, 10000 ** (-1 / 3), 10000 ** (-2 / 3)), "nn.init.frequencies"),
    ],
)
def test_two_numbers_of_a_buffer_follow_several_rules(
    numbers: tuple[float, ...], function: str
) -> None:
    """Else a pair such as a flag's two values would count as positions."""
    made = start(_table(*numbers))
    assert isinstance(made, Call | Name)
    assert (made.function if isinstance(made, Call) else made.text) == function


@pytest.mark.parametrize(("low", "is_one"), [(-50, True), (-49, False)])
def test_small_biases_are_no_mask(low: float, is_one: bool) -> None:
    """Else a learned bias of distances would be called `mask`."""
    assert is_mask(_table(0, low, 0)) == is_one


def line(count: int) -> tuple[Block, Value]:
    """`count` functions, each of the one before it, behind a tanh."""
    x = Value("x", "float32", ("batch", 4))
    statements, before = [], x
    for word in ("tanh", *["exp"] * count):
        after = Value("", "float32", ("batch", 4))
        statements.append(Assign((after,), (), Call(f"ops.{word}", (before,))))
        before = after
    return Block(statements, [before]), x


@pytest.mark.parametrize(("count", "is_part"), [(40, True), (41, False)])
def test_a_long_gap_is_no_optional_part(count: int, is_part: bool) -> None:
    """Else two different forwards would be one with a condition around nearly all."""
    (whole, x), (other, y) = line(count), line(0)
    assert (Alignment(whole, other).run({x: y}) is not None) == is_part
