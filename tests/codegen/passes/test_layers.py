"""Layers that exporters write with operators of their own."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays

RANDOM = np.random.default_rng(0)
GROUPS = """g = Constant<value_ints=[0,2,-1]>() one = Constant<value_floats=[1.0,1.0]>()
    zero = Constant<value_floats=[0.0,0.0]>() r = Reshape(x, g)
    n = InstanceNormalization(r, one, zero) s = Shape(x) b = Reshape(n, s)
    m = Mul(b, w) y = Add(m, c)"""


def by_channel(*shape):
    return {
        "w": RANDOM.standard_normal(shape).astype(np.float32),
        "c": RANDOM.standard_normal(shape).astype(np.float32),
    }


@pytest.mark.parametrize("shape", [(6, 1, 1), (1, 6, 1, 1)])
def test_groups_are_normal(shape):
    model = form(GROUPS, weights=by_channel(*shape), x="batch,6,4,5")
    becomes(model, "self.norm = nn.GroupNorm(2, 6)")


@pytest.mark.parametrize("shape", [(6,), (1, 6)])
def test_groups_of_features_are_normal(shape):
    model = form(GROUPS, weights=by_channel(*shape), x="batch,6")
    becomes(model, "self.norm = nn.GroupNorm(2, 6)")


@pytest.mark.parametrize("shape", [(6, 1), (1, 6, 1)])
def test_groups_of_one_channel_are_normal(shape):
    text = """one = Constant<value_floats=[1.0,1.0,1.0,1.0,1.0,1.0]>()
        zero = Constant<value_floats=[0.0,0.0,0.0,0.0,0.0,0.0]>()
        n = InstanceNormalization(x, one, zero) m = Mul(n, w) y = Add(m, c)"""
    model = form(text, weights=by_channel(*shape), x="batch,6,5")
    becomes(model, "self.norm = nn.GroupNorm(6, 6)")


def test_weights_of_ones_train():
    held = {"val_3": np.ones((6, 1, 1), np.float32), "c": by_channel(6, 1, 1)["c"]}
    text = GROUPS.replace("Mul(b, w)", "Mul(b, val_3)")
    becomes(
        form(text, weights=held, x="batch,6,4,5"),
        "self.norm = nn.GroupNorm(2, 6)",
    )


@pytest.mark.parametrize(
    ("change", "shape"),
    [
        (("[0.0,0.0]", "[0.0,1.0]"), (6, 1, 1)),
        (("[0,2,-1]", "[-1,2,12]"), (6, 1, 1)),
        (("Add(m, c)", "Add(m, c)"), (5,)),
    ],
    ids=["groups are moved apart", "groups of other elements", "by column"],
)
def test_what_is_no_norm_of_groups(change, shape):
    model = form(GROUPS.replace(*change), weights=by_channel(*shape), x="2,6,4,5")
    stays(model, "GroupNorm")


WHERE = """t = Constant<value_float=20.0>() g = Greater(x, t) s = Softplus(x)
    y = Where(g, x, s)"""


def test_softplus_that_is_x_where_x_is_large():
    becomes(form(WHERE, x="2,3"), "return ops.softplus(x)")
    stays(form(WHERE.replace("20.0", "1.0"), x="2,3"), "return ops.softplus(x)")


SPREAD = """m = ReduceMax<axes=[2], keepdims=1>(x) s = Shape(x) e = Expand(m, s)
    y = Sub(x, e)"""


def test_what_is_broadcast_anyway_is_not_expanded():
    source = stays(form(SPREAD, opset=17, x="a,b,3"), "expand")
    assert "x - " in source
    kept = SPREAD.replace("Sub(x, e)", "Sub(m, e)")
    assert "expand" in becomes(form(kept, opset=17, x="a,b,3"))


@pytest.mark.parametrize("shape", [(3, 1, 1), (1, 3, 1, 1), (1,)])
def test_a_slope_for_each_channel(shape):
    slope = RANDOM.standard_normal(shape).astype(np.float32)
    model = form("y = PRelu(x, w)", weights={"w": slope}, x="2,3,4,4")
    source = becomes(model)
    assert "nn.PReLU(" in source
