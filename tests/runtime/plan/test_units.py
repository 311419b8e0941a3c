"""Units of programs: which lines are joined, and what each lets go of."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.capture import capture, written
from burnish.errors import InputError
from burnish.plan.cuda import WholeTape
from burnish.plan.cuda.units.units import FEW, units


class Heads(nn.Module):
    def __init__(self):
        self.query, self.key = nn.Linear(4, 4), nn.Linear(4, 4)
        self.value, self.gate = nn.Linear(4, 6), nn.Linear(4, 6, bias=False)

    def forward(self, x):
        y = self.query(x) @ self.key(x).mT
        return y @ self.value(x) * self.gate(x)


def labels(rows):
    x = Tensor(np.ones((rows, 4), np.float32))
    return [unit.label for unit in units(capture(Heads(), x), {})]


def test_products_of_the_same_few_rows_are_joined():
    joined = ["linear + linear + linear", "transpose", "matmul", "matmul", "linear"]
    assert labels(3) == [*joined, "mul"]
    assert labels(FEW)[0] == joined[0]
    assert labels(FEW + 1).count("linear") == 4


def test_nothing_is_asked_for_that_was_let_go():
    x = Tensor(np.ones((3, 4), np.float32))
    model = Heads()
    program = capture(model, x)
    values = program.values([x])
    for unit in units(program, {}):
        unit.joined = None
        unit.run(values)
    np.testing.assert_array_equal(program.filled(values), model(x))
    made = [i for i, v in enumerate(values) if v is not None and v is not x]
    assert set(made) - set(program.fixed) == {program.results.place}


def test_attention_is_one_call():
    q = Tensor(np.ones((1, 2, 3, 4), np.float32))
    program = written(WholeTape(), ops.scaled_dot_product_attention, (q, q, q), {})
    assert len(program) == 1
    np.testing.assert_allclose(program(q, q, q), q)


def test_precision_is_a_known_one():
    x = Tensor(np.ones((3, 4), np.float32))
    model = Heads()
    fast = burnish.compile(model, precision="tf32")
    np.testing.assert_allclose(fast(x), model(x), 1e-5)
    with pytest.raises(
        InputError, match="expected precision 'fp32', 'tf32', 'bf16' or 'fp16', got"
    ):
        burnish.compile(model, precision="fp64")


WITHOUT = {
    "fp16": "expected precision 'fp32' or 'bf16' on a CPU, got 'fp16'",
    "bf16": "precision 'bf16' needs a processor with the instructions avx512_bf16",
}


@pytest.mark.parametrize("precision", WITHOUT)
def test_a_precision_that_a_cpu_has_not_is_an_error(precision, kernels, monkeypatch):
    monkeypatch.setattr(kernels, "bf16", False)
    x, model = Tensor(np.ones((3, 4), np.float32)), Heads()
    fast = burnish.compile(model, precision=precision)
    for call in (fast, fast.plan):
        with pytest.raises(InputError, match=WITHOUT[precision]):
            call(x)

    def step(x):
        loss = (trained(x) ** 2).mean()
        optim.SGD().step(0.1, trained, loss.backward())
        return loss

    trained = Heads().to("cpu:autodiff")
    planned = burnish.compile(step, precision=precision)
    for call in (planned, planned.plan):
        with pytest.raises(InputError, match=WITHOUT[precision]):
            call(x)
