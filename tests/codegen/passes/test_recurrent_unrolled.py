"""Steps through a whole sequence, written out, are one recurrent layer."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays

TIME, BATCH, SIZE, HIDDEN = 3, 2, 3, 4
BARE = "zero = Constant<value_ints=[0]>() k = MatMul(x, Wt) "
PRODUCT = "zero = Constant<value_ints=[0]>() kx = MatMul(x, Wt) k = Add(kx, b) "


def lstm(t: int, row: int | None = None) -> str:
    """Step t, of h{t} and c{t}, which makes h{t + 1} and c{t + 1}; row: of x."""
    return f"""at{t} = Constant<value_int={t if row is None else row}>()
    k{t} = Gather<axis=0>(k, at{t}) a{t} = MatMul(h{t}, Rt) s{t} = Add(k{t}, a{t})
    i{t}, f{t}, g{t}, o{t} = Split<axis=1, num_outputs=4>(s{t})
    si{t} = Sigmoid(i{t}) sf{t} = Sigmoid(f{t}) tg{t} = Tanh(g{t}) so{t} = Sigmoid(o{t})
    u{t} = Mul(sf{t}, c{t}) v{t} = Mul(si{t}, tg{t}) c{t + 1} = Add(u{t}, v{t})
    tc{t} = Tanh(c{t + 1}) h{t + 1} = Mul(so{t}, tc{t}) """


def gru(t: int) -> str:
    """Step t, of h{t}, which makes h{t + 1}; gates in Keras' order: z, r, n."""
    return f"""at{t} = Constant<value_int={t}>() k{t} = Gather<axis=0>(k, at{t})
    m{t} = MatMul(h{t}, Rt) a{t} = Add(m{t}, d)
    xz{t}, xr{t}, xn{t} = Split<axis=1, num_outputs=3>(k{t})
    hz{t}, hr{t}, hn{t} = Split<axis=1, num_outputs=3>(a{t})
    rs{t} = Add(xr{t}, hr{t}) r{t} = Sigmoid(rs{t}) zs{t} = Add(xz{t}, hz{t})
    z{t} = Sigmoid(zs{t}) rn{t} = Mul(r{t}, hn{t}) ns{t} = Add(xn{t}, rn{t})
    n{t} = Tanh(ns{t}) e{t} = Sub(h{t}, n{t}) w{t} = Mul(e{t}, z{t})
    h{t + 1} = Add(w{t}, n{t}) """


LSTM = "".join(map(lstm, range(TIME)))
GRU = "".join(map(gru, range(TIME)))
SPLIT = """zero = Constant<value_ints=[0]>()
    p0, p1, p2 = Split<axis=0, num_outputs=3>(x) """


def rnn(t: int, activation: str) -> str:
    """Step t of an RNN, whose product is of its row alone, as Keras has it."""
    return f"""x{t} = Squeeze(p{t}, zero) kx{t} = MatMul(x{t}, St) k{t} = Add(kx{t}, e)
    a{t} = MatMul(h{t}, Ut) s{t} = Add(k{t}, a{t}) h{t + 1} = {activation}(s{t}) """


RNN = "".join(rnn(t, "Tanh") for t in range(TIME))
STACK = "".join(f"u{t}s = Unsqueeze(h{t}, zero) " for t in range(1, TIME + 1))
STACK += f"y = Concat<axis=0>({', '.join(f'u{t}s' for t in range(1, TIME + 1))})"
LAST = "y = Identity(h3)"

LAYERS = {
    "LSTM, every h": (PRODUCT + LSTM + STACK, "y, _ = self.lstm(x, "),
    "LSTM, the last states": (
        PRODUCT + LSTM + "y = Add(h3, c3)",
        "_, state = self.lstm(x, ",
    ),
    "LSTM, an h between": (PRODUCT + LSTM + "y = Add(h2, h3)", "[1]"),
    "LSTM without biases": (BARE + LSTM + LAST, "nn.LSTM(3, 4, bias=False)"),
    "GRU, every h": (PRODUCT + GRU + STACK, "y, _ = self.gru(x, "),
    "RNN, every h": (SPLIT + RNN + STACK, "y, _ = self.rnn(x, "),
    "RNN, the last h": (SPLIT + RNN + LAST, "_, h = self.rnn(x, "),
    "RNN with relu": (
        SPLIT + RNN.replace("Tanh", "Relu") + LAST,
        'nonlinearity="relu"',
    ),
    "GRU, the last h": (PRODUCT + GRU + LAST, "_, h = self.gru(x, "),
}
MISSES = {
    "a row is left out": PRODUCT + lstm(0) + lstm(1) + "y = Identity(h2)",
    "rows in another order": PRODUCT + lstm(0) + lstm(1, 2) + lstm(2, 1) + LAST,
    "a c between is read": PRODUCT + LSTM + "y = Add(h3, c2)",
    "a gate is read": PRODUCT + LSTM + "y = Add(h3, si1)",
    "another matrix at one step": PRODUCT + LSTM.replace("h1, Rt", "h1, Ot") + LAST,
    "a step starts again": PRODUCT + LSTM.replace("sf1, c1", "sf1, c0") + LAST,
    "the product is read": PRODUCT + LSTM + "p = ReduceMax(k) y = Add(h3, p)",
    "rows of a Split in another order": SPLIT.replace("p0, p1", "p1, p0") + RNN + LAST,
    "an RNN's step is left out": SPLIT
    + rnn(0, "Tanh")
    + rnn(1, "Tanh")
    + "y = Neg(h2)",
    "other activations": SPLIT + RNN.replace("Tanh", "Relu", 1) + LAST,
    "another bias at one step": SPLIT + RNN.replace("kx1, e", "kx1, ex") + LAST,
    "no bias at one step": SPLIT + RNN.replace("Add(kx1, e)", "Identity(kx1)") + LAST,
    "a matrix is read": PRODUCT + LSTM + "p = ReduceMax(Rt) y = Add(h3, p)",
}


def steps(text: str, **shapes: str) -> Any:
    size = int(shapes.get("x", f"{SIZE}").rpartition(",")[2])
    rng = np.random.default_rng(0)
    rows = (4 if "c0" in text else 3) * HIDDEN
    held = {"Wt": (size, rows), "Rt": (HIDDEN, rows), "b": (rows,), "d": (rows,)}
    held |= {"St": (size, HIDDEN), "Ut": (HIDDEN, HIDDEN), "e": (HIDDEN,)}
    held |= {"ex": (HIDDEN,)}
    held |= {"Ot": held["Rt"], "qb": (3 * HIDDEN,), "qd": (3 * HIDDEN,)}
    held |= {"Qt": (HIDDEN, 3 * HIDDEN), "Vt": (HIDDEN, 3 * HIDDEN)}
    weights = {k: rng.normal(size=v).astype(np.float32) for k, v in held.items()}
    given = {"x": f"{TIME},{BATCH},{SIZE}", "h0": f"{BATCH},{HIDDEN}"}
    if "c0" in text:
        given["c0"] = given["h0"]
    return form(text, weights=weights, **given | shapes)


@pytest.mark.parametrize("name", LAYERS)
def test_steps_through_a_sequence_are_a_layer(name: str) -> None:
    text, line = LAYERS[name]
    source = becomes(steps(text))
    assert line in source, source
    for word in ("sigmoid", "Linear", "Cell", "for ", "stack"):
        assert word not in source, source


def test_the_batch_may_be_open() -> None:
    model = steps(PRODUCT + LSTM + STACK, x="3,n,3", h0="n,4", c0="n,4")
    assert "nn.LSTM(3, 4)" in becomes(model)


def test_a_layer_above_reads_the_one_below() -> None:
    """The first one's results are replaced before the second one is looked at."""
    above = re.sub(r"\b(?=[a-z]+[0-9])", "q", GRU + LAST).replace("(k,", "(q,")
    above = above.replace("Rt", "Qt").replace("d)", "qd)")
    below = PRODUCT + LSTM + STACK.replace("y =", "ys =")
    text = below + " qx = MatMul(ys, Vt) q = Add(qx, qb) " + above.replace("qh0", "h0")
    source = becomes(steps(text))
    assert "y, _ = self.lstm(x, " in source, source
    assert "nn.GRU(4, 4)" in source, source


@pytest.mark.parametrize("name", MISSES)
def test_other_steps_stay(name: str) -> None:
    stays(steps(MISSES[name]), "nn.LSTM(", "nn.GRU(", "nn.RNN(")


def test_a_step_that_transposes_the_matrix_stays() -> None:
    turned = RNN.replace("kx1 = MatMul(x1, St)", "kx1 = Gemm<transB=1>(x1, St)")
    stays(steps(SPLIT + turned + LAST, x=f"{TIME},{BATCH},{HIDDEN}"), "nn.RNN(")


def _in_module(path: str) -> Any:
    model = steps(SPLIT + RNN + LAST)
    for node in model.graph.node:
        if node.op_type in ("Add", "MatMul", "Tanh"):
            node.name = f"/{path}/{node.output[0]}"
    return model


@pytest.mark.parametrize("path", ["cell", "encoder/cell", "lstm/gru_cell"])
def test_steps_of_a_module_stay_its_authors_loop(path: str) -> None:
    stays(_in_module(path), "nn.RNN(")


def test_steps_of_a_cell_that_a_layer_has_as_its_own_are_the_layer() -> None:
    becomes(_in_module("simple_rnn/simple_rnn_cell"), "self.simple_rnn = nn.RNN(3, 4)")


def test_a_layer_whose_input_is_of_its_own_size_knows_its_sequence() -> None:
    text = PRODUCT + LSTM + LAST
    swapped = re.sub(r"Add\((k\d), (a\d)\)", r"Add(\2, \1)", text)
    assert swapped != text
    for each in (text, swapped):
        assert "nn.LSTM(4, 4)" in becomes(steps(each, x=f"{TIME},{BATCH},{HIDDEN}"))


def test_a_state_that_broadcasts_stays() -> None:
    stays(steps(PRODUCT + LSTM + LAST, h0="1,4"), "nn.LSTM(")
