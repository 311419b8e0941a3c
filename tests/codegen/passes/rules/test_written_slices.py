"""Writes to a slice at constant places."""

from __future__ import annotations

import pytest

from tests.codegen.passes.forms import becomes, form, stays

#: x[1:3] = tanh(x)[:2], with the rows as constant places.
ROWS = """d = Constant<value_ints=[2,1]>() p = Constant<value_ints=[1,2]>()
    i = Reshape(p, d) a = Constant<value_ints=[0]>() b = Constant<value_ints=[2]>()
    t = Tanh(x) u = Slice(t, a, b) y = ScatterND(x, i, u)"""


def test_rows_amid_others():
    becomes(
        form(ROWS, x="4,3"),
        "return ops.concat([x[:1], ops.tanh(x)[:2], x[3:]])",
    )


def test_the_last_rows():
    becomes(form(ROWS, x="3,3"), "return ops.concat([x[:1], ops.tanh(x)[:2]])")


def test_columns():
    """The places have an index for each axis, as PyTorch's older exporter counts."""
    text = """p = Constant<value_ints=[0,1,0,2,1,1,1,2]>()
    d = Constant<value_ints=[2,2,2]>() i = Reshape(p, d)
    o = Constant<value_ints=[1]>() n = Constant<value_ints=[3]>()
    t = Tanh(x) u = Slice(t, o, n, o) y = ScatterND(x, i, u)"""
    becomes(
        form(text, x="2,4"),
        "return ops.concat([x[:, :1], ops.tanh(x)[:, 1:3], x[:, 3:]], axis=-1)",
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[1,2]>()\n", "[2,1]>()\n"),
        ("[1,2]>()\n", "[0,2]>()\n"),
        ("[1,2]>()\n", "[-2,-1]>()\n"),
        ("ScatterND(x", 'ScatterND<reduction="add">(x'),
    ],
    ids=["backwards", "every second row", "from the end", "sum"],
)
def test_other_writes_stay(old, new):
    assert old in ROWS
    stays(form(ROWS.replace(old, new), x="4,3"), "ops.concat")


def test_rows_of_an_unknown_number_stay():
    stays(form(ROWS, x="b,3"), "ops.concat")
