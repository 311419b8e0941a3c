"""Writes to every place of a tensor, and zeros beside one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays

#: m[:, :] = tanh(x) as exporters count the places.
WRITTEN = """sh = Shape(x) z = Constant<value_int=0>() o = Constant<value_int=1>()
    n0 = Gather(sh, z) n1 = Gather(sh, o) a = Range(z, n0, o) b = Range(z, n1, o)
    l = Constant<value_ints=[-1]>() d = Constant<value_ints=[-1,1]>()
    r = Reshape(a, d) m = Add(r, b) s = Shape(m) pe = Expand(r, s) qe = Expand(b, s)
    pu = Unsqueeze(pe, l) qu = Unsqueeze(qe, l) i = Concat<axis=-1>(pu, qu)
    u = Tanh(x) y = ScatterND(x, i, u)"""


def test_a_write_to_every_place():
    becomes(form(WRITTEN, x="b,t"), "return ops.tanh(x)")


def test_an_axis_of_one_element():
    """Its places are folded to a constant."""
    becomes(form(WRITTEN, x="1,t"), "return ops.tanh(x)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Concat<axis=-1>(pu, qu)", "Concat<axis=-1>(qu, pu)"),
        ("ScatterND(x", 'ScatterND<reduction="add">(x'),
        (
            "b = Range(z, n1, o)",
            "h = Constant<value_int=-1>() e = Constant<value_int=-5>()"
            " b = Range(h, e, h)",
        ),
        (
            "n0 = Gather(sh, z)",
            "n0 = Constant<value_int=2>() f = Constant<value_ints=[2,4]>()",
        ),
    ],
    ids=["axes change places", "sum", "from the end on", "some rows only"],
)
def test_other_writes_stay(old, new):
    assert old in WRITTEN
    text = WRITTEN.replace(old, new)
    if "f = " in new:
        text = text.replace("u = Tanh(x)", "k = Slice(x, zs, f) u = Tanh(k)")
        text = text.replace(
            "sh = Shape(x)", "sh = Shape(x) zs = Constant<value_ints=[0,0]>()"
        )
    stays(form(text, x="4,4"), "return ops.tanh(x)")


BESIDE = "zeros = Constant<value = float[1,2,3] {0,0,0,0,0,0}>()"


@pytest.mark.parametrize(
    ("joined", "ends"), [("x, zeros", "(0, 2)"), ("zeros, x", "(2, 0)")]
)
def test_zeros_beside_a_tensor_pad_it(joined, ends):
    model = form(f"{BESIDE} y = Concat<axis=1>({joined})", x="1,4,3")
    becomes(model, f"return ops.pad(x, pad_width=((0, 0), {ends}, (0, 0)))")


def test_other_numbers_beside_a_tensor_stay():
    text = BESIDE.replace("{0,", "{1,")
    stays(form(f"{text} y = Concat<axis=1>(x, zeros)", x="1,4,3"), "ops.pad")


def test_zeros_between_two_tensors_stay():
    text = f"{BESIDE} t = Tanh(x) y = Concat<axis=1>(x, zeros, t)"
    stays(form(text, x="1,4,3"), "ops.pad")


def test_zeros_that_are_an_example_of_their_own_stay():
    stays(form(f"{BESIDE} y = Concat<axis=0>(x, zeros)", x="1,2,3"), "ops.pad")


def test_a_weight_of_zeros_stays():
    """A token of a class starts as zeros."""
    zeros = np.zeros((1, 1, 3), np.float32)
    stays(form("y = Concat<axis=1>(w, x)", x="1,4,3", weights={"w": zeros}), "ops.pad")
