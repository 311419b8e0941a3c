"""LSTM, GRU and RNN nodes in a row are one of PyTorch's layers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.codegen.passes.forms import becomes, form, stays

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OPTIONS = {"LSTM": "", "GRU": "linear_before_reset=1, ", "RNN": ""}
RANDOM = np.random.default_rng(0)


def weights(kind, *layers, directions=1, hidden=4, bias=True, peepholes=False):
    """W, R, B and P of each layer, by the sizes of what the layers read."""
    rows = GATES[kind] * hidden
    made = {}
    for number, size in enumerate(layers):
        shapes = {"W": (rows, size), "R": (rows, hidden)}
        if bias:
            shapes["B"] = (2 * rows,)
        if peepholes:
            shapes["P"] = (3 * hidden,)
        for name, shape in shapes.items():
            array = RANDOM.standard_normal((directions, *shape)) / 2
            made[f"{name}{number}"] = array.astype(np.float32)
    return made


def two(kind, *, h="", first="x", last="y"):
    """Two layers of one direction, as both exporters of PyTorch's write them."""
    run = f"{kind}<{OPTIONS[kind]}hidden_size=4>"
    states = [f",,{h}{i}" if h else "" for i in range(2)]
    return f"""o = Constant<value_ints=[1]>()
        a, h1 = {run}({first}, W0, R0, B0{states[0]}) s = Squeeze(a, o)
        b, h2 = {run}(s, W1, R1, B1{states[1]}) {last} = Squeeze(b, o)"""


@pytest.mark.parametrize("kind", GATES)
def test_layers_in_a_row_are_one(kind):
    model = form(two(kind), weights=weights(kind, 3, 4), x="time,batch,3")
    name = kind.lower()
    becomes(model, f"self.{name} = nn.{kind}(3, 4, num_layers=2)", "return y")


@pytest.mark.parametrize("name", ["W0", "R1", "B0"])
def test_a_weight_that_is_an_output_too_is_the_layers_and_the_files(name):
    """In its own layout each: no layer can have both."""
    model = form(two("GRU"), weights=weights("GRU", 3, 4), x="time,batch,3")
    model.graph.output.add().name = name
    kind = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
    model.graph.output[1].type.CopyFrom(kind)
    becomes(
        model, "self.gru = nn.GRU(3, 4, num_layers=2)", f"return y, self.{name.lower()}"
    )


def test_a_gru_that_resets_before_the_product():
    """Of two that differ in it neither is a layer of the other."""
    text, held = two("GRU"), weights("GRU", 3, 4)
    early = text.replace("linear_before_reset=1, ", "")
    line = "self.gru = nn.GRU(3, 4, num_layers=2, reset_after=False)"
    becomes(form(early, weights=held, x="time,batch,3"), line)
    mixed = text.replace("linear_before_reset=1, ", "", 1)
    source = becomes(form(mixed, weights=held, x="time,batch,3"))
    assert source.count("nn.GRU(") == 2
    assert source.count("reset_after=False") == 1


def test_batch_comes_first_where_axes_are_swapped():
    text = f"""f = Transpose<perm=[1,0,2]>(x) {two("GRU", first="f", last="e")}
        y = Transpose<perm=[1,0,2]>(e)"""
    model = form(text, weights=weights("GRU", 3, 4), x="batch,time,3")
    source = becomes(model, "self.gru = nn.GRU(3, 4, num_layers=2, batch_first=True)")
    assert "transpose" not in source


DIRECTIONS = """c = Constant<value_ints=[0,0,-1]>()
    a = LSTM<hidden_size=4, direction="bidirectional">(x, W0, R0, B0)
    m = Transpose<perm=[0,2,1,3]>(a) s = Reshape(m, c)
    b = LSTM<hidden_size=4, direction="bidirectional">(s, W1, R1, B1)
    n = Transpose<perm=[0,2,1,3]>(b) y = Reshape(n, c)"""


def test_both_directions():
    held = weights("LSTM", 3, 8, directions=2)
    becomes(
        form(DIRECTIONS, weights=held, x="time,batch,3"),
        "self.lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True)",
    )


PEEPHOLES = """o = Constant<value_ints=[1]>()
    a = LSTM<hidden_size=4>(x, W0, R0, B0, , , , P0) s = Squeeze(a, o)
    b = LSTM<hidden_size=4>(s, W1, R1, B1, , , , P1) y = Squeeze(b, o)"""


def test_peepholes_are_weights_of_the_layer():
    held = weights("LSTM", 3, 4, peepholes=True)
    becomes(
        form(PEEPHOLES, weights=held, x="time,batch,3"),
        "self.lstm = nn.LSTM(3, 4, num_layers=2, peepholes=True)",
        "return y",
    )


def test_peepholes_of_both_directions_without_a_bias():
    text = DIRECTIONS.replace("B0)", ", , , , P0)").replace("B1)", ", , , , P1)")
    held = weights("LSTM", 3, 8, directions=2, bias=False, peepholes=True)
    source = becomes(form(text, weights=held, x="time,batch,3"))
    assert "nn.LSTM(" in source
    assert "bias=False" in source
    assert "peepholes=True" in source


def test_states_cut_from_one_tensor_are_given_whole():
    text = f"""z = Constant<value_ints=[0]>() t = Constant<value_ints=[2]>()
        k = Constant<value_ints=[1]>()
        h0 = Slice(h, z, k, z) h1s = Slice(h, k, t, z)
        {two("GRU", h="g").replace("g0", "h0").replace("g1", "h1s")}"""
    model = form(text, weights=weights("GRU", 3, 4), x="5,2,3", h="2,2,4")
    source = becomes(model, "y, _ = self.gru(x, h)")
    assert "num_layers=2" in source


def test_zeros_are_no_states():
    text = f"""z = ConstantOfShape(n) {
        two("GRU", h="z").replace("z0", "z").replace("z1", "z")
    }"""
    held = {**weights("GRU", 3, 4), "n": np.int64([1, 2, 4])}
    becomes(form(text, weights=held, x="5,2,3"), "y, _ = self.gru(x)")


def test_last_states_of_all_layers_are_joined():
    text = two("GRU").replace("y = Squeeze(b, o)", "y = Concat<axis=0>(h1, h2)")
    model = form(text, weights=weights("GRU", 3, 4), x="5,2,3")
    becomes(model, "_, h = self.gru(x)", "return h")


def test_the_last_state_of_one_layer():
    text = two("GRU").replace("y = Squeeze(b, o)", "y = Mul(h2, h2)")
    source = becomes(form(text, weights=weights("GRU", 3, 4), x="5,2,3"))
    assert "num_layers=2" in source


@pytest.mark.parametrize("state", ["h2", "h3"])
def test_the_last_state_of_one_layer_before_two(state):
    """The second and the third are one before the first is seen to come before them."""
    layer = "GRU<linear_before_reset=1, hidden_size=4>"
    text = f"""o = Constant<value_ints=[1]>()
        a, h1 = {layer}(x, W0, R0, B0) s = Squeeze(a, o)
        p = Transpose<perm=[1,2,0]>(s) r = Transpose<perm=[2,0,1]>(p)
        b, h2 = {layer}(r, W1, R1, B1) t = Squeeze(b, o)
        c, h3 = {layer}(t, W2, R2, B2) g = Mul({state}, {state}) y = Add(g, h1)"""
    source = becomes(form(text, weights=weights("GRU", 3, 4, 4), x="5,2,3"))
    assert "num_layers=3" in source


@pytest.mark.parametrize(
    ("change", "held"),
    [
        (
            lambda t: t.replace("y = Squeeze(b, o)", "e = Squeeze(b, o) y = Add(e, s)"),
            {},
        ),
        (lambda t: t.replace("=4>(s", '=4, direction="reverse">(s'), {}),
        (lambda t: t, {"hidden": 6}),
    ],
    ids=["both are read", "one goes back", "sizes differ"],
)
def test_what_stays_two_layers(change, held):
    arrays = weights("GRU", 3, 4)
    text = change(two("GRU"))
    if held:
        other = weights("GRU", 3, 4, **held)
        arrays |= {name: other[name] for name in ("W1", "R1", "B1")}
        text = text.replace("hidden_size=4>(s", "hidden_size=6>(s")
    stays(form(text, weights=arrays, x="5,2,3"), "num_layers")


def test_without_simplifying_the_numbers_are_the_same():
    model = form(two("LSTM"), weights=weights("LSTM", 3, 4), x="time,batch,3")
    stays(model, "num_layers", simplify=False)


@pytest.mark.parametrize("joined", [False, True], ids=["the one below", "the first"])
def test_a_layer_that_starts_from_anothers_end_is_its_own(joined):
    text = """o = Constant<value_ints=[1]>()
    a, ah, ac = LSTM<hidden_size=4>(x, W0, R0, B0, , h0, c0) s = Squeeze(a, o)
    b, bh, bc = LSTM<hidden_size=4>(s, W1, R1, B1, , h1, c1) t = Squeeze(b, o)
    c, ch, cc = LSTM<hidden_size=4>(t, W2, R2, B2, , ah, ac) y = Squeeze(c, o)"""
    if not joined:
        text = text.replace("h1, c1", "ah, ac").replace(", ah, ac) y", ", bh, bc) y")
    rng = np.random.default_rng(0)
    shapes = {"W": (1, 16, 4), "R": (1, 16, 4), "B": (1, 32)}
    shapes |= {"h": (1, 2, 4), "c": (1, 2, 4)}
    arrays = {
        name: rng.normal(size=shape).astype(np.float32)
        for kind, shape in shapes.items()
        for name in (f"{kind}{i}" for i in range(3))
        if name in text
    }
    source = stays(form(text, weights=arrays, x="5,2,4"), "num_layers=3")
    assert ("num_layers=2" in source) == joined
