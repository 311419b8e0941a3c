"""Steps of a written-out loop that take a weight apart share the parts."""

from __future__ import annotations

import numpy as np
import pytest

from burnish.codegen.account import Account
from burnish.codegen.passes.cse.share_parts import share_parts
from tests.codegen.passes.forms import becomes, form
from tests.codegen.passes.models import model_of

STEPS = """zero = Constant<value_ints=[0]>() two = Constant<value_ints=[2]>()
    p, q = Split<axis=0, num_outputs=2>(b) a = Add(x, p) c = Mul(a, q)
    r, s = Split<axis=0, num_outputs=2>(b) d = Relu(c) e = Add(d, r) y = Mul(e, s)"""
"""A step is x + p, times q, of the halves p and q of b."""
PLACES = """i = Constant<value_int=0>() j = Constant<value_int={}>()
    p = Gather(b, i) a = Add(x, p) q = Gather(b, j) y = Mul(a, q)"""
B = np.float32([1.5, 2.5, 3.5, 4.5])


def test_parts_that_steps_take_again_are_one_weight() -> None:
    source = becomes(form(STEPS, weights={"b": B}, x="3,2"))
    assert source.count("nn.Param(") == 2, source


@pytest.mark.parametrize(("place", "shared"), [(0, True), (1, False)])
def test_equal_places_only_are_shared(place: int, shared: bool) -> None:
    rows = np.stack([B, B + 1])
    model = model_of(PLACES.format(place), weights={"b": rows}, x="3,4")
    assert share_parts(model, Account()) == shared
    assert [n.op_type for n in model.graph].count("Gather") == 2 - shared


def test_places_of_other_shapes_are_not_shared() -> None:
    text = """p = Gather(b, i) s = ReduceMax<keepdims=0>(p) q = Gather(b, j)
        h = ReduceMax(q, o) a = Add(x, h) y = Mul(a, s)"""
    places = np.arange(6)
    weights = {"b": np.stack([B, B + 1, B, B, B, B]), "o": np.array([0])}
    weights |= {"i": places.reshape(2, 3), "j": places.reshape(3, 2)}
    becomes(form(text, weights=weights, x="2,4"))


def test_modules_have_parts_of_their_own() -> None:
    model = model_of(PLACES.format(0), weights={"b": np.stack([B, B + 1])}, x="3,4")
    for place, node in enumerate(model.graph):
        node.name = f"/l.{place // 2}/{node.op_type}"
    assert not share_parts(model, Account())
