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
BROADCAST = SUM + GATES + "c = Constant<value_float=0.0>() " + CELL

STEPS = {
    "LSTM": (SUM + GATES + CELL, "nn.LSTMCell(3, 4)"),
    "LSTM without biases": (BARE + GATES + CELL, "nn.LSTMCell(3, 4, bias=False)"),
    "LSTM, one bias": (SUM.replace("R, d", "R") + GATES + CELL, "nn.LSTMCell(3, 4)"),
    "LSTM, gates in Keras' order": (SUM + KERAS + CELL, "nn.LSTMCell(3, 4)"),
    "LSTM, products of matrices": (TURNED + GATES + CELL, "nn.LSTMCell(3, 4)"),
    "LSTM, a state that broadcasts": (BROADCAST, "nn.LSTMCell(3, 4)"),
    "GRU": (GRU, "nn.GRUCell(3, 4)"),
    "GRU, a convex sum": (CONVEX, "nn.GRUCell(3, 4)"),
}
MISSES = {
    "a gate is an output of more": SUM + GATES + CELL.replace("y =", "y0 =")
    + " y = Add(y0, si)",
    "no tanh": SUM + GATES + CELL.replace("Tanh(g)", "Relu(g)"),
    "two gates are one": SUM + GATES + CELL.replace("Sigmoid(o)", "Sigmoid(f)"),
    "gates of another state": GRU.replace("Sub(h, n)", "Sub(c, n)"),
}  # fmt: skip


def written_step(text: str) -> Any:
    rng = np.random.default_rng(0)
    gates = 3 if "num_outputs=3" in text else 4
    shapes = {"W": (SIZE,), "R": (HIDDEN,), "b": (), "d": ()}
    held = {
        name: rng.normal(size=(gates * HIDDEN, *shape)).astype(np.float32)
        for name, shape in shapes.items()
    }
    held |= {f"{name}t": held[name].T for name in "WR"}
    states = {"h": f"{BATCH},{HIDDEN}"}
    states |= {} if "c = Constant" in text else {"c": f"{BATCH},{HIDDEN}"}
    return form(text, weights=held, x=f"{BATCH},{SIZE}", **states)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_a_call_of_a_cell(name: str) -> None:
    text, line = STEPS[name]
    source = becomes(written_step(text))
    assert line in source, source
    assert "sigmoid" not in source, source


@pytest.mark.parametrize("name", MISSES)
def test_another_form_stays(name: str) -> None:
    stays(written_step(MISSES[name]), "LSTMCell", "GRUCell")


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
        "h2, c = self.cell(x[1], (h, c))",
    )
    assert source.count("nn.LSTMCell") == 1, source
    assert "weight" not in source.partition("class")[2], source
