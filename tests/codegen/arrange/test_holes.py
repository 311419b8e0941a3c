"""Holes: opening a class and filling it again, without a count of integers."""

from __future__ import annotations

import pytest

from burnish.codegen.arrange.analysis.holes import Hole, as_expression, filled, holes_in
from burnish.codegen.arrange.analysis.opening import opened
from burnish.codegen.arrange.analysis.structural_hash import signature
from burnish.codegen.program import (
    Assign,
    Block,
    Call,
    ClassPlan,
    Expression,
    ListOrTuple,
    Literal,
    Method,
    ModuleCall,
    Repeat,
    SelfAttr,
    Value,
)
from tests.harness.program_text import parsed


def plan(*members: Expression, statement: str = "y: float32[2] = ops.relu(x)"):
    text = f"input x: float32[2]\n{statement}\nreturn y\noutput 'y': float32[2]"
    program = parsed(text)
    named = [(f"m{i}", made) for i, made in enumerate(members)]
    return ClassPlan("Block", named, program.inputs, program.body)


def same(hole: Hole) -> Expression:
    return as_expression(hole.value)


LINEAR = Call("nn.Linear", (Literal(4), Literal(8)))
MEMBERS = {
    "a layer": (LINEAR, "in_features=4 out_features=8"),
    "of equal sizes": (
        Call("nn.Linear", (Literal(4), Literal(4))),
        "in_features=4 out_features=4",
    ),
    "a shape": (
        Call("nn.Param", (Call("nn.init.zeros"), Literal((1, 4, 6)))),
        "size=4 size=6",
    ),
    "a list": (ListOrTuple((LINEAR, Call("nn.ReLU"))), "in_features=4 out_features=8"),
    "a repeat": (
        Repeat(Call("Part"), Literal(3)),
        "depth=3",
    ),
    "an option": (
        Call("nn.Conv2d", (Literal(3), Literal(8), Literal(5))),
        "in_channels=3 out_channels=8 kernel_size=5 stride=1 padding=0 dilation=1"
        " groups=1",
    ),
}
STATEMENTS = {
    "a reshape": ("y: float32[2] = x.reshape(3, 1, -1)", "reshape=3 reshape=1"),
    "a slice": ("y: float32[2] = x[_slice(start=2, stop=7),]", "start=2 stop=7"),
    "zeros": ("y: float32[2] = Tensor.zeros((2, 1, 3))", "shape=2 shape=3"),
    "an index": ("y: float32[2] = x[1,]", ""),
}
PLANS = {name: (plan(made), holes) for name, (made, holes) in MEMBERS.items()}
PLANS |= {k: (plan(statement=made), holes) for k, (made, holes) in STATEMENTS.items()}


@pytest.mark.parametrize(("given", "holes"), PLANS.values(), ids=PLANS)
def test_holes_and_back(given, holes):
    """What was not written, a default, is a hole too and is left out again."""
    made, found = opened(given, {})
    spelled = " ".join(f"{hole.slot.parameter}={hole.value}" for hole in found)
    assert spelled == holes
    assert {*holes_in(made)} == {*found}
    assert signature(filled(made, same)) == signature(given)


def test_a_default_that_changes_is_written():
    made, found = opened(plan(MEMBERS["an option"][0]), {})
    stride = next(hole for hole in found if hole.slot.parameter == "stride")
    changed = filled(made, lambda h: Literal(2) if h is stride else same(h))
    ((_, conv),) = changed.members
    assert isinstance(conv, Call)
    assert [name for name, _ in conv.options] == ["stride"]


def test_two_sizes_of_one_number_are_two_holes():
    """Filling one leaves the other, wherever it is."""
    given = plan(LINEAR, LINEAR)
    made, (first, _, second, _) = opened(given, {})
    assert first.value == second.value
    assert first != second
    changed = filled(made, lambda h: Literal(5) if h is second else same(h))
    assert signature(changed) == signature(
        plan(LINEAR, Call("nn.Linear", (Literal(5), Literal(8))))
    )


def test_switches_are_holes_where_defaults_are_given():
    """An argument of a class of the source, and whether an attention is causal."""
    x = Value("x")
    attends = Call("ops.scaled_dot_product_attention", (x, x, x))
    block = Block([Assign((Value("y"),), (), attends)], [])
    part = Call("Part", (Literal(4),), (("flag", Literal(True)),))
    given = ClassPlan("Block", [("m", part)], [x], block)
    parameters, defaults = {"Part": ["dim", "flag"]}, {"Part": {"flag": False}}
    made, found = opened(given, parameters, defaults)
    values = {hole.slot.parameter: hole.value for hole in found}
    assert values == {"dim": 4, "flag": True, "is_causal": False}
    assert signature(filled(made, same)) == signature(given)
    on = filled(made, lambda h: Literal(h.slot.parameter == "is_causal" or h.value))
    (statement,) = on.block.statements
    assert isinstance(statement, Assign)
    assert isinstance(statement.expression, Call)
    assert [name for name, _ in statement.expression.options] == ["is_causal"]


def test_a_base_class_has_holes():
    begin = Method(SelfAttr(("super",)), "__init__", (Literal(4), Literal(8)))
    given = plan()
    given.base, given.members = "nn.Linear", [("", begin)]
    given.block = Block(
        [Assign((Value("y"),), (), ModuleCall(SelfAttr(("",)), ()))], []
    )
    _, found = opened(given, {})
    assert [hole.value for hole in found] == [4, 8]
