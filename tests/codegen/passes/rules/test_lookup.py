"""Rows that are looked up by lists of one number are indexed."""

from __future__ import annotations

import numpy as np

from tests.codegen.passes.forms import becomes, form, stays

PLACES = np.array([[2, 0], [1, -1]])
LISTED = "last = Constant<value_ints=[-1]>() lists = Unsqueeze(places, last)"


def test_rows_by_lists_of_one_number():
    text = f"{LISTED} y = GatherND(x, lists)"
    model = form(text, x="3,4", places="int64[2,2]")
    becomes(model, "return x[places]", feeds=_feeds(3, 4))


def test_lists_that_are_read_elsewhere_too():
    text = f"{LISTED} a = GatherND(x, lists) b = GatherND(x, lists) y = Add(a, b)"
    model = form(text, x="3,4", places="int64[2,2]")
    assert "gather_nd" not in becomes(model, feeds=_feeds(3, 4))


def test_places_of_two_numbers_stay():
    model = form("y = GatherND(x, places)", x="3,4", places="int64[2,2]")
    stays(model, "x[places]", feeds=_feeds(3, 4))


def test_places_of_each_example_stay():
    text = f"{LISTED} y = GatherND<batch_dims=1>(x, lists)"
    model = form(text, x="2,3,4", places="int64[2,2]")
    stays(model, "x[places]", feeds=_feeds(2, 3, 4))


def _feeds(*shape: int) -> dict[str, np.ndarray]:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return {"x": x, "places": PLACES}
