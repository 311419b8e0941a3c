"""Products of a row or two with weights that are read where the parameter has them."""

from __future__ import annotations

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.kernels.library import library
from burnish.lowbit import Level, QuantScheme
from burnish.quantization import Quantizer
from tests.runtime.plan.checks import check, same

pytestmark = pytest.mark.usefixtures("canaries")


class Product(nn.Module):
    """x (..., ins) -> (..., outs); of a weight (ins, outs) where it is turned."""

    def __init__(self, ins, outs, turned=False, bias=True):
        draw = np.random.default_rng(ins + outs)
        shape = (ins, outs) if turned else (outs, ins)
        self.weight = nn.Param(draw.standard_normal(shape).astype(np.float32))
        self.bias = nn.Param(draw.standard_normal(outs).astype(np.float32))
        self.turned, self.has_bias = turned, bias

    def forward(self, x, other=None):
        y = x @ self.weight if self.turned else ops.linear(x, self.weight)
        y = y + self.bias if self.has_bias else y
        return ops.relu(y if other is None else y + other)


def rows_of(count, width, seed=0):
    draw = np.random.default_rng(seed)
    return Tensor(draw.standard_normal((count, width)).astype(np.float32))


def exact(model, *args):
    """The plan has the kernel and agrees with the plain call, and that with float64."""
    fast = check(model, *args)
    kinds = [step.kind for step in fast.planned(*args).steps]
    weight = model.weight.data.astype(np.float64)
    y = args[0].data.astype(np.float64) @ (weight if model.turned else weight.T)
    y = y + (model.bias.data if model.has_bias else 0)
    y = np.maximum(y + (args[1].data if len(args) > 1 else 0), 0)
    same(fast(*args), Tensor(y.astype(np.float32)))
    return kinds


@pytest.fixture
def large(monkeypatch):
    """Float weights are read in place from a megabyte on."""
    monkeypatch.setattr("burnish.plan.cpu.products.gemv._LARGE", 1 << 20)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(
    "sizes", [(512, 513), (1000, 300), (2049, 131), (30_001, 9), (7, 40_003)], ids=str
)
def test_float_weights(turned, rows, sizes):
    ins, outs = sizes
    other = rows_of(rows, outs, 1)
    for bias in (False, True):
        model = Product(*sizes, turned=turned, bias=bias)
        assert exact(model, rows_of(rows, ins)) == ["gemv"]
        assert exact(model, rows_of(rows, ins), other) == ["gemv"]


@pytest.fixture
def much(monkeypatch):
    """Float weights of any size are read in place, for any rows."""
    monkeypatch.setattr("burnish.plan.cpu.products.gemv._MUCH", 0)
    monkeypatch.setattr("burnish.plan.cpu.products.gemv._PANELS", 0)


@pytest.mark.usefixtures("much")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 40, 700])
@pytest.mark.parametrize("sizes", [(330, 257), (64, 600), (1000, 48)], ids=str)
def test_weights_of_much_memory_are_not_copied(turned, rows, sizes):
    model = Product(*sizes, turned=turned)
    x = rows_of(rows, sizes[0])
    kinds = exact(model, x)
    assert ("gemv" in kinds) == (rows == 1)
    fast = burnish.compile(model)
    fast(x)
    weight = model.weight.data
    large = [a for a in fast.planned(x)._arrays.values() if a.nbytes >= weight.nbytes]
    assert large
    assert all(np.shares_memory(a, weight) for a in large)


HAS_DOTS = (found := library()) is not None and found.dots
SMALL = ["digits", "gemv"] if HAS_DOTS else ["gemv"]

SCHEMES = [
    QuantScheme(level=Level.channel(0)),
    QuantScheme(level=Level.tensor()),
    QuantScheme("q8f", "affine", Level.block(64)),
    QuantScheme("q4s", level=Level.block(32)),
    QuantScheme("q4f", "affine", Level.block(96), store="packed_u32"),
    QuantScheme("q4f", level=Level.channel(0), store="native", param="float16"),
]


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("outs", [1, 15, 67])
@pytest.mark.parametrize("rows", [1, 2])
def test_small_weights_become_floats_in_registers(scheme, outs, rows):
    model = Product(384, outs)
    model.quantize_weights(Quantizer(scheme=scheme))
    assert exact(model, rows_of(rows, 384)) == SMALL
    plan = check(model, rows_of(rows, 384)).planned(rows_of(rows, 384))
    kept = sum(array.nbytes for array in plan.constants.values())
    assert kept < 4 * model.weight.size or outs == 1  # no second copy in floats


@pytest.mark.parametrize("value", ["q8s", "q4s"])
@pytest.mark.parametrize("turned", [False, True])
def test_many_small_weights_are_packed_in_parts(value, turned):
    """More outputs than are packed together, and some that fill no part."""
    outs = 2080 if turned else 1043
    model = Product(64, outs, turned=turned)
    scheme = QuantScheme(value, level=Level.block(32))
    model.quantize_weights(Quantizer(scheme=scheme))
    assert "gemv" in exact(model, rows_of(1, 64))


@pytest.mark.skipif(not HAS_DOTS, reason="weights are not packed for integers here")
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("outs", [16, 67, 192])
@pytest.mark.parametrize("rows", [13, 40, 300])
def test_panels_of_small_weights_become_floats_as_they_are_used(
    scheme, turned, outs, rows
):
    if turned and scheme.level != Level.tensor():
        scheme = QuantScheme(scheme.value, scheme.mode, Level.channel(1))
    model, other = Product(384, outs, turned=turned), rows_of(rows, outs, 1)
    model.quantize_weights(Quantizer(scheme=scheme))
    x = rows_of(rows, 384)
    assert "gemv" not in exact(model, x, other)
    plan = check(model, x).planned(x)
    kept = sum(array.nbytes for array in plan.constants.values())
    assert kept < 4 * model.weight.size or outs == 16  # no copy in floats


WIDE = [
    QuantScheme("q8s", level=Level.block(32)),
    QuantScheme("q8f", "affine", Level.block(64)),
    QuantScheme("q4s", level=Level.block(32), store="packed_u32"),
    QuantScheme("q4f", "affine", Level.block(32)),
    QuantScheme("q4f", level=Level.channel(0)),
    QuantScheme("q8s", level=Level.channel(1)),
    QuantScheme(level=Level.tensor()),
]


@pytest.mark.parametrize("scheme", WIDE, ids=str)
@pytest.mark.parametrize("sizes", [(384, 192), (608, 64), (1056, 320)], ids=str)
@pytest.mark.parametrize("rows", [1, 2])
def test_small_weights_of_inputs_in_rows(scheme, sizes, rows):
    """Weights (ins, outs), as GPT-2 has them."""
    model, other = Product(*sizes, turned=True), rows_of(rows, sizes[1], 1)
    model.quantize_weights(Quantizer(scheme=scheme))
    for x in (rows_of(rows, sizes[0]), Tensor(rows_of(rows, sizes[0]).data * 1e-6)):
        by_output = scheme.level == Level.channel(1)  # floats where there are no dots
        assert ("gemv" in exact(model, x, other)) == (HAS_DOTS or not by_output)


@pytest.mark.parametrize("sizes", [(130, 96), (77, 64)], ids=str)
def test_inputs_in_rows_of_any_number(sizes):
    model = Product(*sizes, turned=True)
    for scheme in WIDE[:5]:
        blocks = QuantScheme(scheme.value, scheme.mode, Level.block(32))
        model.quantize_weights(Quantizer(scheme=blocks))
        assert exact(model, rows_of(1, sizes[0])) == ["gemv"]


@pytest.mark.parametrize("scheme", SCHEMES[:5], ids=str)
def test_sums_in_integers_are_as_exact_as_in_floats(scheme):
    """Values of any size side by side: the error is of the block's largest."""
    draw = np.random.default_rng(3)
    model = Product(384, 48, bias=False)
    model.quantize_weights(Quantizer(scheme=scheme))
    values = draw.standard_normal((4, 384)) * 10.0 ** draw.uniform(-8, 8, (4, 384))
    for x in (
        values,
        values * 1e-36,
        values * 1e24,
        np.eye(4, 384),
        np.zeros((2, 384)),
    ):
        x = x.astype(np.float32)
        weight = model.weight.data.astype(np.float64).T
        truth = np.maximum(x.astype(np.float64) @ weight, 0)
        bound = np.abs(x.astype(np.float64)) @ np.abs(weight) + 1e-44
        for few in (x[:1], x[:2], x):
            y = burnish.compile(model)(Tensor(few)).data
            off = np.abs(y - truth[: len(few)]) / bound[: len(few)]
            assert off.max() < 2e-6  # of float32's 6e-8, by sums of 384 products


@pytest.mark.parametrize("scheme", [SCHEMES[2], SCHEMES[3]], ids=str)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e30, 1e-40])
def test_odd_numbers_times_small_weights(scheme, turned, number):
    model, x = Product(384, 64, turned=turned, bias=False), rows_of(2, 384)
    model.quantize_weights(Quantizer(scheme=scheme))
    with np.errstate(all="ignore"):
        x.data[1, 40] = number
        check(model, x)
        x.data[1] = number
        check(model, x)


@pytest.mark.parametrize(
    "scheme",
    [QuantScheme("e4m3", level=Level.block(32)), QuantScheme(level=Level.block(33))],
    ids=str,
)
def test_other_small_weights_are_packed_as_floats(scheme):
    model = Product(330, 20)
    model.quantize_weights(Quantizer(scheme=scheme))
    assert "gemv" not in exact(model, rows_of(1, 330))


@pytest.mark.parametrize("values", ["q8s", "q4s"])
def test_a_last_block_that_is_shorter_is_no_other_block_size(values):
    model = Product(128, 20)  # blocks of 96 and 32, not two of 64
    model.quantize_weights(Quantizer(scheme=QuantScheme(values, level=Level.block(96))))
    assert "gemv" not in exact(model, rows_of(1, 128))


def test_many_rows_and_small_weights_are_packed():
    assert "gemv" not in exact(Product(600, 600), rows_of(3, 600))
    assert "gemv" not in exact(Product(60, 60), rows_of(1, 60))


@pytest.mark.usefixtures("large")
def test_weights_are_no_copy_and_new_ones_are_taken_up():
    model, x = Product(600, 600), rows_of(1, 600)
    fast = check(model, x)
    arrays = fast.planned(x).constants.values()
    assert any(np.shares_memory(array, model.weight.data) for array in arrays)
    model.weight.assign(model.weight.data * 2)
    same(fast(x), model(x))
    model.quantize_weights(Quantizer())
    same(fast(x), model(x))
    model.quantize_weights(Quantizer(scheme=QuantScheme(level=Level.tensor())))
    same(fast(x), model(x))
    model.weight.assign(np.ones((600, 600), np.float32))
    same(fast(x), model(x))


def test_nan_and_infinity_travel():
    model, x = Product(512, 600), rows_of(2, 512)
    for place, number in ((3, np.nan), (5, np.inf)):
        broken = Tensor(x.data.copy())
        broken.data[0, place] = number
        check(model, broken)
