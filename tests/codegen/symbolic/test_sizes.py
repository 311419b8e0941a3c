"""Sizes with names: equal ones are equal, however they are written."""

from __future__ import annotations

import numpy as np
import pytest

from burnish.codegen.symbolic.sizes import evaluated, names_in, parse, unequal

EQUAL = {
    "b*t": "t*b",
    "2*b + b": "3*b",
    "(b + 1)*t": "b*t + t",
    "b - b": 0,
    "(4*b)//4": "b",
    "(b*t*32)//(b*t*8)": 4,
    "3*4": 12,
    "(3*b - 6)//(0 - 3)": "2 - b",
    "b + -2 + -2": "b - 4",
    "-(b - 3)": "3 - b",
}


@pytest.mark.parametrize(("one", "other"), EQUAL.items())
def test_equal_sizes_are_equal(one, other):
    assert parse(one) == parse(other)


@pytest.mark.parametrize(
    "text", ["s0/2", "Max(1, b)", "?x:0", "a.b", "b//3", "x y", "", "1.5", "True"]
)
def test_what_is_no_sum_of_products_is_one_name(text):
    assert parse(text).name is not None


ROUNDED = ["6*((b + 1)//6)", "t*((b + 1)//6)", "b - 6*(b//6) - 2", "2 - 3*b"]


@pytest.mark.parametrize("text", ["b", "2*b*t + 1", "(b)//(3)", 7, *ROUNDED])
def test_a_size_is_read_as_it_is_written(text):
    assert parse(parse(text).dim) == parse(text)


def test_what_a_rounded_quotient_leaves_is_not_nothing():
    """As TensorFlow rounds an axis up to whole blocks."""
    size = parse("2*b + 12")
    whole = parse(str(parse(6) * (size // parse(6))))
    assert (size - whole).value is None
    assert parse(str(size - whole)) == size - whole


DIFFER = {("b", -1): True, ("b + 2", 1): True, ("b", 1): False, ("b", "t"): False}


@pytest.mark.parametrize(("pair", "must"), DIFFER.items())
def test_sizes_that_must_differ(pair, must):
    assert unequal(*map(parse, pair)) is must


def test_a_quotient_that_is_not_whole_is_none():
    assert parse("3*b").divided(parse(2)) is None
    assert parse("b").divided(parse("t")) is None
    assert parse("b").divided(parse(0)) is None


@pytest.mark.parametrize(
    ("text", "names", "sizes", "number"),
    [
        ("2*(h - 3)//(2) + w", {"h", "w"}, {"h": 8, "w": 1}, 6),
        ("3*((?h - 4)//(4)) + 3", {"?h"}, {"?h": 25}, 18),
        ("-h + 9", {"h"}, {"h": 4}, 5),
        ("h + 1", {"h"}, {}, None),
        ("(h)//(w)", {"h", "w"}, {"h": 4, "w": 0}, None),
        ("floor(h/2)", {"floor", "h"}, {"h": 4}, None),
        ("number of rows", set(), {}, None),
    ],
)
def test_sizes_are_evaluated(text, names, sizes, number):
    size = parse(text)
    assert names_in(size) == names
    assert evaluated(size, sizes) == number
    several = {name: np.array([value, value]) for name, value in sizes.items()}
    if number is not None:
        assert evaluated(size, several).tolist() == [number, number]
