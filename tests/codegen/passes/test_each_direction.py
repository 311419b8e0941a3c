"""A layer whose directions are taken apart again is read as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays

RANDOM = np.random.default_rng(0)
WEIGHTS = {
    name: RANDOM.standard_normal(shape).astype(np.float32)
    for name, shape in {"W": (2, 16, 3), "R": (2, 16, 4), "B": (2, 32)}.items()
}
HALVES = """zero = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>()
    two = Constant<value_ints=[2]>() end = Constant<value_ints=[-1]>()
    far = Constant<value_ints=[2147483647]>() a, ah, ac =
    LSTM<hidden_size=4, direction="bidirectional">(x, W, R, B)
    p = Slice(a, zero, one, one) f = Squeeze(p, one) q = Slice(a, one, two, one)
    b = Squeeze(q, one) """
BY_INDEX = """first = Constant<value_int=0>() second = Constant<value_int=1>()
    f = Gather<axis=1>(a, first) b = Gather<axis=1>(a, second) """
EVERY = "y = Concat<axis=-1>(f, b)"
ENDS = """k = Slice(f, end, far, zero) h = Squeeze(k, zero)
    m = Slice(b, zero, one, zero) n = Squeeze(m, zero) y = Concat<axis=-1>(h, n)"""


def model(text: str, time: str = "time") -> Any:
    return form(text, weights=WEIGHTS, x=f"{time},2,3")


@pytest.mark.parametrize("time", ["time", "5"])
@pytest.mark.parametrize("by_index", [False, True], ids=["slices", "indices"])
def test_every_h_of_both(time, by_index):
    text = HALVES + EVERY
    if by_index:
        text = HALVES[: HALVES.index("p = ")] + BY_INDEX + EVERY
    source = becomes(model(text, time), "y, _ = self.lstm(x)")
    assert "bidirectional=True" in source
    assert "return y" in source


@pytest.mark.parametrize("time", ["time", "5"])
def test_ends_are_states(time):
    source = becomes(model(HALVES + ENDS, time), "_, state = self.lstm(x)")
    assert "state[0][0], state[0][1]" in source


OTHERS = {
    "the other order": EVERY.replace("f, b", "b, f"),
    "along the batch": EVERY.replace("-1", "1"),
    "one direction twice": EVERY.replace("f, b", "f, f"),
    "its first h": ENDS.replace(
        "Slice(f, end, far, zero)", "Slice(f, zero, one, zero)"
    ),
    "a start": ENDS.replace("Slice(b, zero, one, zero)", "Slice(b, end, far, zero)"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_readers(case):
    source = stays(model(HALVES + OTHERS[case]), "return y\n")
    assert "state[0][0], state[0][1]" not in source


def test_lengths_end_elsewhere():
    text = HALVES.replace("R, B)", "R, B, lengths)") + ENDS
    made = form(text, weights=WEIGHTS, x="5,2,3", lengths="int32[2]")
    x = RANDOM.standard_normal((5, 2, 3)).astype(np.float32)
    stays(made, "state[0]", feeds={"x": x, "lengths": np.array([5, 5], np.int32)})
