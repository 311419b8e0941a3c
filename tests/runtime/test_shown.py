"""Values in messages: one short line, whatever the value is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish._files.shown import shown

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (-2, "-2"),
        (float("nan"), "nan"),
        ([2, 3], "[2, 3]"),
        ((1,), "(1,)"),
        ({"a": (1, [2])}, "{'a': (1, [...])}"),
        (list(range(99)), "[0, 1, 2, 3, 4, 5, 6, 7, ...]"),
        (set(), "{}"),
        ("a\nb\x1b]0;", r"'a\nb\x1b]0;'"),
        ("x" * 500, "'" + "x" * 76 + "..."),
        (1 << 5000, "an integer of 5001 bits"),
        (slice(1), "a slice"),
        (np.zeros(9), "a ndarray"),
        (type("A" * 500, (), {})(), "a " + "A" * 75 + "..."),
    ],
)
def test_a_value_in_a_message(value, text):
    assert shown(value) == text


@given(st.recursive(SCALARS, lambda s: st.lists(s) | st.dictionaries(st.text(), s)))
def test_it_is_one_short_line_of_ascii(value):
    text = shown(value, 40)
    assert len(text) <= 40
    assert text.isascii()
    assert text.isprintable()


def test_depth_and_doubling_cost_nothing():
    deep = wide = []
    for _ in range(100_000):
        deep, wide = [deep], [wide, wide]
    assert shown(deep) == "[[[...]]]"
    assert shown(wide) == "[[[...], [...]], [[...], [...]]]"
