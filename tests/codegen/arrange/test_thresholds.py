"""Thresholds of merged constructors: one part fewer is no evidence."""

from __future__ import annotations

import pytest

from burnish.codegen.arrange.merge.comprehensions import with_runs
from burnish.codegen.arrange.merge.progressions import progression
from burnish.codegen.program import Call, Expression, Literal, Repeat, UnaryOp


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
