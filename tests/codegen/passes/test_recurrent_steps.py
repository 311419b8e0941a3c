"""Steps of an LSTM or a GRU, gate by gate, are calls of PyTorch's cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays
from tests.harness.source import check_source

BATCH, SIZE, HIDDEN = 2, 3, 4
SUM = "a = Gemm<transB=1>(h, R, d) k = Gemm<transB=1>(x, W, b) s = Add(a, k) "
BARE = "a = Gemm<transB=1>(h, R) k = Gemm<transB=1>(x, W) s = Add(a, k) "
TURNED = """a = MatMul(h, Rt) ab = Add(a, d) k = MatMul(x, Wt) kb = Add(b, k)
    s = Add(kb, ab) """
GATES = "i, f, g, o = Split<axis=1, num_outputs=4>(s) "
KERAS = "i, f, o, g = Split<axis=-1, num_outputs=4>(s) "
CELL = """si = Sigmoid(i) sf = Sigmoid(f) tg = Tanh(g) so = Sigmoid(o)
    u = Mul(sf, c) v = Mul(si, tg) n = Add(u, v) t = Tanh(n) y = Mul(so, t)"""
THIRDS = """k = Gemm<transB=1>(x, W, b) a = Gemm<transB=1>(h, R, d)
    xr, xz, xn = Split<axis=1, num_outputs=3>(k)
    hr, hz, hn = Split<axis=1, num_outputs=3>(a)
    r0 = Add(hr, xr) r = Sigmoid(r0) z0 = Add(hz, xz) z = Sigmoid(z0)
    m = Mul(hn, r) n0 = Add(xn, m) n = Tanh(n0) """
GRU = THIRDS + "e = Sub(h, n) w = Mul(e, z) y = Add(w, n)"
CONVEX = (
    THIRDS
    + """one = Constant<value_float=1.0>() q = Sub(one, z)
    p = Mul(q, n) w = Mul(z, h) y = Add(p, w)"""
)
FIRST = """R1, R2, R3 = Split<axis=0, num_outputs=3>(R) k = Gemm<transB=1>(x, W, b)
    xr, xz, xn = Split<axis=1, num_outputs=3>(k) hr = Gemm<transB=1>(h, R1)
    hz = Gemm<transB=1>(h, R2) r0 = Add(hr, xr) r = Sigmoid(r0) z0 = Add(hz, xz)
    z = Sigmoid(z0) rh = Mul(r, h) m = Gemm<transB=1>(rh, R3) n0 = Add(xn, m)
    n = Tanh(n0) e = Sub(h, n) w = Mul(e, z) y = Add(w, n)"""


def sliced(value: str, *names: str, rows: tuple[int, ...] = ()) -> str:
    """The text of a Slice of HIDDEN columns for each name, from the first on.

    rows: from which one on, and before which one.
    """
    made = [f"{value}_ax = Constant<value_ints={[0, 1] if rows else [1]}>()"]
    for i, name in enumerate(names):
        begin, end = [HIDDEN * i], [HIDDEN * (i + 1)]
        made += [
            f"{name}_b = Constant<value_ints={[*rows[:1], *begin]}>()",
            f"{name}_e = Constant<value_ints={[*rows[1:], *end]}>()",
            f"{name} = Slice({value}, {name}_b, {name}_e, {value}_ax)",
        ]
    return " ".join(made) + " "


EARLY = CELL.replace("t = Tanh(n)", "t = Tanh(n) p = Exp(n)").replace("y =", "q =")
CUT = GRU.replace(
    "xr, xz, xn = Split<axis=1, num_outputs=3>(k)", sliced("k", "xr", "xz", "xn")
).replace("hr, hz, hn = Split<axis=1, num_outputs=3>(a)", sliced("a", "hr", "hz", "hn"))
CUT_ROWS = CUT.replace(
    sliced("a", "hr", "hz", "hn"), sliced("a", "hr", "hz", "hn", rows=(0, 1 << 31))
)
BROADCAST = SUM + GATES + "c = Constant<value_float=0.0>() " + CELL

STEPS = {
    "LSTM": (SUM + GATES + CELL, "nn.LSTMCell(3, 4)"),
    "LSTM without biases": (BARE + GATES + CELL, "nn.LSTMCell(3, 4, bias=False)"),
    "LSTM, one bias": (SUM.replace("R, d", "R") + GATES + CELL, "nn.LSTMCell(3, 4)"),
    "LSTM, gates in Keras' order": (SUM + KERAS + CELL, "nn.LSTMCell(3, 4)"),
    "LSTM, products of matrices": (TURNED + GATES + CELL, "nn.LSTMCell(3, 4)"),
    "LSTM, a state that broadcasts": (BROADCAST, "nn.LSTMCell(3, 4)"),
    "LSTM, c is read before h is made": (
        SUM + GATES + EARLY + " y = Add(p, q)", "nn.LSTMCell(3, 4)",
    ),
    "LSTM before opset 8": (
        SUM + "i, f, g, o = Split<axis=1, split=[4, 4, 4, 4]>(s) "
        + "c = Constant<value=float {0.5}>() " + CELL,
        "nn.LSTMCell(3, 4)",
    ),
    "LSTM, gates cut one by one": (
        SUM + sliced("s", *"ifgo") + CELL, "nn.LSTMCell(3, 4)",
    ),
    "GRU": (GRU, "nn.GRUCell(3, 4)"),
    "GRU, a convex sum": (CONVEX, "nn.GRUCell(3, 4)"),
    "GRU, gates cut one by one": (CUT, "nn.GRUCell(3, 4)"),
    "GRU, gates cut one by one from all rows": (CUT_ROWS, "nn.GRUCell(3, 4)"),
}  # fmt: skip
MISSES = {
    "a gate is an output of more": SUM + GATES + CELL.replace("y =", "y0 =")
    + " y = Add(y0, si)",
    "no tanh": SUM + GATES + CELL.replace("Tanh(g)", "Relu(g)"),
    "two gates are one": SUM + GATES + CELL.replace("Sigmoid(o)", "Sigmoid(f)"),
    "two gates are cut at one place": SUM
    + sliced("s", *"ifgo").replace("Slice(s, f_b, f_e", "Slice(s, i_b, i_e") + CELL,
    "gates of the rows behind the first": CUT.replace(
        sliced("a", "hr", "hz", "hn"), sliced("a", "hr", "hz", "hn", rows=(1, 2))
    ),
    "a gate is cut across two blocks": SUM
    + sliced("s", *"ifgo").replace("o_b = Constant<value_ints=[12]", "o_b = "
    "Constant<value_ints=[10]").replace("[16]", "[14]") + CELL,
    "the gates are read by others": SUM + GATES + CELL.replace("y =", "q =")
    + " m = ReduceMax(s) y = Add(q, m)",
    "clipped gates": SUM.replace("s =", "e =")
    + "l = Constant<value_float=-0.5>() u0 = Constant<value_float=0.5>() "
    + "s = Clip(e, l, u0) " + GATES + CELL,
    "a peephole": SUM + GATES + "p = Mul(d4, c) f1 = Add(f, p) "
    + CELL.replace("Sigmoid(f)", "Sigmoid(f1)"),
    "reset before the product": FIRST,
    "gates of another state": GRU.replace("Sub(h, n)", "Sub(c, n)"),
}  # fmt: skip


def written_step(text: str, **shapes_given: str) -> Any:
    rng = np.random.default_rng(0)
    gates = 3 if "xr" in text else 4
    shapes = {"W": (SIZE,), "R": (HIDDEN,), "b": (), "d": ()}
    held = {
        name: rng.normal(size=(gates * HIDDEN, *shape)).astype(np.float32)
        for name, shape in shapes.items()
    }
    held |= {f"{name}t": held[name].T for name in "WR"}
    held["d4"] = held["d"][:HIDDEN]
    shape = f"{BATCH},{HIDDEN}"
    given = {"x": f"{BATCH},{SIZE}", "h": shape, "c": shape} | shapes_given
    if "c = Constant" in text:
        del given["c"]
    opset = 7 if "split=" in text else 18
    return form(text, opset=opset, weights=held, **given)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_a_call_of_a_cell(name: str) -> None:
    text, line = STEPS[name]
    source = becomes(written_step(text))
    assert line in source, source
    assert "sigmoid" not in source, source


@pytest.mark.parametrize("name", MISSES)
def test_another_form_stays(name: str) -> None:
    stays(written_step(MISSES[name]), "LSTMCell", "GRUCell")


def test_a_matrix_that_another_product_reads_is_the_cells_too() -> None:
    text = GRU.replace("y = Add", "y0 = Add") + " v = MatMul(x, Wt) "
    text = text.replace("Gemm<transB=1>(x, W, b)", "Gemm(x, Wt, b)")
    text += "lo, hi, up = Split<axis=1, num_outputs=3>(v) y = Add(y0, lo)"
    assert "nn.GRUCell(3, 4)" in becomes(written_step(text))


@pytest.mark.parametrize(
    ("kind", "shapes", "line"),
    [
        ("LSTM", {"h": "1,4"}, "(ops.expand(h, shape=(2, 4)), c)"),
        ("LSTM", {"c": "4"}, "(h, ops.expand(c, shape=(2, 4)))"),
        ("LSTM", {"c": "1,1"}, "(h, ops.expand(c, shape=(2, 4)))"),
        ("LSTM", {"x": "n,3", "h": "n,4", "c": "n,4"}, "(h, c)"),
        ("LSTM", {"h": "1,4", "c": "1,4"}, None),
        ("LSTM", {"x": "1,3"}, None),
        ("LSTM", {"c": "2,1"}, None),
        ("LSTM", {"c": "3,2,4"}, None),
        ("LSTM", {"x": "n,3", "h": "1,4", "c": "1,4"}, None),
        ("GRU", {"x": "n,3", "h": "n,4"}, "(x, h)"),
        ("GRU", {"h": "1,4"}, None),
        ("GRU", {"x": "1,3"}, None),
    ],
)
def test_states_that_broadcast_are_written_or_left(
    kind: str, shapes: dict[str, str], line: str | None
) -> None:
    """A cell's states are (N, H) beside x (N, I): it broadcasts none of them."""
    model = written_step(STEPS[kind][0], **shapes)
    if line is None:
        stays(model, f"{kind}Cell")
    else:
        assert line in becomes(model)


@pytest.mark.oracle
@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("fresh", [False, True])
def test_a_cell_in_an_authors_loop_is_one_layer(
    dynamo: bool, fresh: bool, tmp_path: Path
) -> None:
    """fresh: biases of zeros, which exporters merge with those of the other cell."""
    import onnx
    import torch

    from tests.harness.torch_exports import exported

    class Recurrent(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = torch.nn.LSTMCell(8, 6)
            if fresh:
                torch.nn.init.zeros_(self.cell.bias_hh)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = c = torch.zeros(x.shape[1], 6)
            states = []
            for i in range(x.shape[0]):
                h, c = self.cell(x[i], (h, c))
                states.append(h)
            return torch.stack(states)

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ahead, self.back = Recurrent(), Recurrent()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([self.ahead(x), self.back(x.flip(0)).flip(0)], -1)

    example, axes = (torch.randn(5, 3, 8),), [{1: "batch"}]
    file = exported(Both().eval(), example, tmp_path / "both.onnx", dynamo, axes)
    source = check_source(
        onnx.load(file),
        "self.cell = nn.LSTMCell(8, 6)",
        "h, c = self.cell(x[0])",
        """
        for i in range(4):
            y, c = self.cell(x[i + 1], (y, c))
            h2.append(y)
        return ops.stack([h, *h2])
        """,
    )
    assert source.count("nn.LSTMCell") == 1, source
    assert "weight" not in source.partition("class")[2], source
