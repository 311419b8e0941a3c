"""Two recurrent layers, one of them backwards, are one of two directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from tests.codegen.passes.forms import becomes, form, stays

SIZES = {"x": "5,2,3"}
"""Time, batch, features; the layers make four."""
START = """z = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>()
    end = Constant<value_ints=[-1]>() far = Constant<value_ints=[-2147483647]>() """
TWO = """r = Slice(x, end, far, z, end) a, ah, ac = LSTM<hidden_size=4>(x, W1, R1, B1)
    b, bh, bc = LSTM<hidden_size=4>(r, W2, R2, B2) f = Squeeze(a, one)
    s = Squeeze(b, one) """
BACK = "t = Slice(s, end, far, z, end) "
BY_BATCH = """xt = Transpose<perm=[1, 0, 2]>(x) r = Slice(x, end, far, one, end)
    rt = Transpose<perm=[1, 0, 2]>(r) a, ah, ac = LSTM<hidden_size=4>(xt, W1, R1, B1)
    b, bh, bc = LSTM<hidden_size=4>(rt, W2, R2, B2) p = Squeeze(a, one)
    f = Transpose<perm=[1, 0, 2]>(p) q = Squeeze(b, one)
    s = Transpose<perm=[1, 0, 2]>(q) t = Slice(s, end, far, one, end) """
JOIN = "y = Concat<axis=-1>(f, t)"
LAST = """k = Squeeze(ah, z) l = Squeeze(bh, z) y = Concat<axis=-1>(k, l)"""
GRU = START + (TWO + BACK + JOIN).replace(", ac", "").replace(", bc", "").replace(
    "LSTM<hidden_size=4>", "GRU<hidden_size=4, linear_before_reset=1>"
)

MERGED = {
    "every h": (START + TWO + BACK + JOIN, "self.lstm = nn.LSTM(3, 4, bid"),
    "batch first": (START + BY_BATCH + JOIN, "batch_first=True, bidirectional=True)"),
    "the last h": (START + TWO + LAST, "ops.concat([state[0][0], state[0][1]], "),
    "states that keep their axis": (
        START + TWO + "y = Concat<axis=-1>(ah, bh)",
        "ops.split(state[0], num=2)",
    ),
    "a sum": (START + TWO + BACK + "y = Add(f, t)", "ops.split(y, num=2, axis=2)"),
    "a sum by batch": (START + BY_BATCH + "y = Add(f, t)", "ops.split(y, num=2, axi"),
    "the other order": (START + TWO + BACK + "y = Concat<axis=2>(t, f)", "ops.concat"),
    "a GRU": (GRU, "self.gru = nn.GRU(3, 4, bidirectional=True)"),
}
APART = {
    "results in the order of time reversed": START + TWO + "y = Concat<axis=-1>(f, s)",
    "both are read": START + TWO + BACK + "v = Add(t, s) y = Concat<axis=-1>(f, v)",
    "another sequence": START + "n = Neg(x) " + TWO.replace("(x, e", "(n, e") + LAST,
    "along the batch": START + TWO.replace("far, z", "far, one") + LAST,
    "one starts from the other's end": START
    + TWO.replace("R1, B1)", "R1, B1, , s1, s2)").replace("B2)", "B2, , ah, ac)")
    + BACK
    + JOIN,
    "a part": START.replace("-2147483647", "-4") + TWO + LAST,
    "other options": START
    + TWO.replace(
        "LSTM<hidden_size=4>(r, W2, R2, B2)", "LSTM<hidden_size=4>(r, W2, R2)"
    )
    + LAST,
}


def model(text: str) -> Any:
    rng, rows = np.random.default_rng(0), 12 if "GRU" in text else 16
    shapes = {"W": (1, rows, 3), "R": (1, rows, 4), "B": (1, 2 * rows)}
    held = {f"{k}{i}": v for k, v in shapes.items() for i in (1, 2)}
    held |= {f"s{i}": (1, 2, 4) for i in (1, 2) if f"s{i}" in text}
    weights = {k: rng.normal(size=v).astype(np.float32) for k, v in held.items()}
    sizes = {"x": "2,5,3"} if "xt" in text else SIZES
    return form(text, weights=weights, **sizes)


@pytest.mark.parametrize("name", MERGED)
def test_layers_of_both_directions_are_one(name: str) -> None:
    text, line = MERGED[name]
    source = becomes(model(text))
    assert source.count("nn.LSTM(") + source.count("nn.GRU(") == 1, source
    assert "bidirectional=True" in source
    assert line in source, source
    assert "::-1" not in source, source


@pytest.mark.parametrize("name", APART)
def test_other_layers_stay_apart(name: str) -> None:
    stays(model(APART[name]), "bidirectional")


def test_two_pairs_in_a_row_are_layers_of_one() -> None:
    above = """q = Slice(u, end, far, z, end)
        c, ch, cc = LSTM<hidden_size=4>(u, W3, R3, B3)
        d, dh, dc = LSTM<hidden_size=4>(q, W4, R4, B4) g = Squeeze(c, one)
        h = Squeeze(d, one) w = Slice(h, end, far, z, end) y = Concat<axis=-1>(g, w)"""
    text = START + TWO + BACK + JOIN.replace("y =", "u =") + above
    made, rng = model(text), np.random.default_rng(1)
    for i in (3, 4):
        for name, shape in (("W", (1, 16, 8)), ("R", (1, 16, 4)), ("B", (1, 32))):
            array = rng.normal(size=shape).astype(np.float32)
            made.graph.initializer.append(numpy_helper.from_array(array, f"{name}{i}"))
    assert "nn.LSTM(3, 4, num_layers=2, bidirectional=True)" in becomes(made)
