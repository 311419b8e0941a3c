"""bfloat16 in, bfloat16 out: products, Python numbers, gradients; float32 beside it."""

import importlib
import pkgutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import tests.runtime.ops
from burnish import Tensor, ops
from burnish.backend import bfloat16
from burnish.operator import Operator
from tests.harness.operators import Case, several

BF16 = np.dtype(ml_dtypes.bfloat16)
ONE_ROUNDING = 2**-7
A = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4).astype(BF16)
B = np.linspace(-1, 3, 20, dtype=np.float32).reshape(4, 5).astype(BF16)
RESULTS = {
    "number right": lambda a, b: a * 0.5 + 1,
    "number left": lambda a, b: 2 - 1.5 * a,
    "power": lambda a, b: a**2,
    "quotient": lambda a, b: 1 / (a + 4),
    "product": lambda a, b: a @ b,
    "linear": lambda a, b: ops.linear(a, b.T),
    "einsum": lambda a, b: ops.einsum("ij,jk->ki", a, b),
    "sum": lambda a, b: a.sum() + b.mean(),
    "softmax": lambda a, b: ops.softmax(a @ b, axis=-1),
    "clip": lambda a, b: ops.clip(a, -1.0, 1.0),
    "where": lambda a, b: ops.where(a.detach() > 0, a, 0.5),
    "celu": lambda a, b: ops.celu(a, alpha=0.5),
    "gelu": lambda a, b: ops.gelu(a),
    "shapes": lambda a, b: ops.concat([a.T, b[:, :2]], axis=1)[1:].reshape(-1),
    "norm": lambda a, b: ops.layer_norm(a, a.shape[-1:], b[0, :4], b[1, :4]),
    "integers": lambda a, b: ops.take(b, np.array([1, 0]), axis=0),
}


@pytest.mark.parametrize("compute", RESULTS.values(), ids=RESULTS)
def test_results_and_gradients_stay_bfloat16(compute):
    """Values and gradients are those of float32, to the roundings of each operator."""
    found = []
    for dtype in (BF16, np.float32):
        a, b = (Tensor(x.astype(dtype)).require_grad() for x in (A, B))
        y = compute(a, b)
        gradients = y.sum().backward()
        found.append([y, a.grad(gradients), b.grad(gradients)])
    for narrow, wide in zip(*found, strict=True):
        assert (narrow is None) == (wide is None)
        if wide is None:
            continue
        assert narrow.dtype == BF16
        want = wide.numpy()
        scale = 4 * ONE_ROUNDING * max(1, np.abs(want).max())
        np.testing.assert_allclose(narrow.numpy().astype(np.float32), want, 0, scale)


def test_recorded_gradients_stay_bfloat16():
    a = Tensor(A).require_grad()
    slope = a.grad((a * a * 3).sum().backward(create_graph=True))
    curvature = a.grad(slope.sum().backward())
    assert slope.dtype == curvature.dtype == BF16
    np.testing.assert_array_equal(curvature.numpy().astype(float), 6)


def test_wider_arrays_win():
    assert (Tensor(A) * Tensor(A.astype(np.float32))).dtype == np.float32
    assert Tensor(A).to("float32").dtype == np.float32
    assert (Tensor(A) > 0).dtype == bool


def test_float32_never_asks_for_ml_dtypes():
    code = (
        "import sys, burnish; x = burnish.Tensor([1.0]) * 2; "
        "sys.exit('ml_dtypes' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


TABLES = [module.name for module in pkgutil.iter_modules(tests.runtime.ops.__path__)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("table", TABLES)
def test_every_operator_of_the_tables_stays_bfloat16(table):
    """Where float32 gives float32, bfloat16 gives bfloat16; gradients too."""
    module = importlib.import_module(f"tests.runtime.ops.{table}")
    for row in getattr(module, "CASES", ()):
        if (
            "float32" in map(str, map(np.dtype, row.dtypes))
            and "dtype" not in row.options
        ):
            check(row)


def check(row: Case) -> None:
    arrays = row.arrays(np.dtype("float32"))
    want = several(row.op(*map(tensor, arrays), **row.options))
    inputs = [
        tensor(a).to(BF16).require_grad()
        if isinstance(a, np.ndarray) and a.dtype == np.float32
        else tensor(a)
        for a in arrays
    ]
    got = several(row.op(*inputs, **row.options))
    if all(i.dtype != BF16 for i in inputs if isinstance(i, Tensor)):
        return
    for narrow, wide in zip(got, want, strict=True):
        if wide is not None and wide.dtype == np.float32:
            assert narrow.dtype == BF16, row
    recorded = [y for y in got if y is not None and y.dtype == BF16 and y.node]
    if not recorded or row.grad is False:
        return
    gradients = recorded[0].sum().backward()
    for x in inputs:
        found = x.grad(gradients) if isinstance(x, Tensor) else None
        assert found is None or found.dtype == x.dtype, row


def tensor(value):
    return Tensor(value) if isinstance(value, np.ndarray) else value


def test_gradients_are_widened_for_rules_that_ask_alone(monkeypatch):
    @Operator
    def twice(x):
        return x + x

    twice.vjp("x")(lambda g, y, x: g + g)
    given = np.ones(3, BF16)
    seen = []
    monkeypatch.setattr(bfloat16, "widened", lambda held: seen.append(held) or held)
    twice.vjp("x", on="numpy", takes_bfloat16=True)(lambda g, y, x: g)
    twice.pull(given, given, (given,), {}, [True])
    assert not seen
    twice.vjp("x", on="numpy")(lambda g, y, x: NotImplemented)
    twice.bfloat16_rules.clear()
    twice.pull(given, given, (given,), {}, [True])
    assert len(seen) == 1
