"""Nesting and naming keep the meaning, whatever the program."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burnish.codegen.program import Block, ClassPlan, Plan, Value, pruned
from burnish.codegen.render.page import Header, render
from tests.harness.examples import examples
from tests.harness.programs import FUNCTIONS, meaning, programs
from tests.harness.ruff import lint_later

HEADER = Header("title", ("Imported.",), (), {})
MANY = settings(
    max_examples=examples(150),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def source(inputs: list[Value], block: Block) -> str:
    return render(Plan([ClassPlan("Model", [], inputs, pruned(block))], []), HEADER)


def run(text: str, given: list[int]) -> Any:
    body = text[text.index("class Model") :]
    functions = {name.removeprefix("ops."): f for name, f in FUNCTIONS.items()}
    scope = {"nn": SimpleNamespace(Module=object), "ops": SimpleNamespace(**functions)}
    exec(compile(body, "generated", "exec"), scope)
    return scope["Model"]().forward(*given)


@MANY
@given(programs(), st.lists(st.integers(-5, 50), min_size=3, max_size=3))
def test_source_means_what_the_program_means(program, numbers):
    inputs, block = program
    numbers = numbers[: len(inputs)]
    expected = meaning(block, dict(zip(inputs, numbers, strict=True)))
    text = source(inputs, block)
    found = run(text, numbers)
    assert (found if len(expected) > 1 else (found,)) == tuple(expected), text


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(programs())
def test_ruff_has_no_wish(program):
    text = source(*program)
    lint_later(text)
