"""Quantized LSTMs sum codes: beside NumPy's integers, and onnxruntime."""

import numpy as np
import pytest

from burnish import Tensor, nn
from burnish.lowbit import Level, Packed, QuantScheme
from burnish.nn.lowbit import integers
from burnish.nn.lowbit.input_quantizer import InputQuantizer

BYTES = QuantScheme("q8f", "affine", Level.tensor())
ONNX_GATES = (0, 3, 1, 2)  # i o f c, among PyTorch's i f g o
F4 = np.float32


def quantized(ins, hidden, channels, *, middle=0, ends=("",)):
    """An LSTM of random codes; middle: the code that represents 0."""
    rng = np.random.default_rng(7)
    model = nn.LSTM(ins, hidden, bidirectional=len(ends) > 1)
    level = Level.channel(0) if channels else Level.tensor()
    scheme = QuantScheme("q8f", "affine", level)
    for end in ends:
        for name, width in (("ih", ins), ("hh", hidden)):
            shape = (4 * hidden, width)
            count = (4 * hidden, 1) if channels else (1,)
            codes = rng.integers(-128, 128, shape).astype(np.int8)
            scales = rng.uniform(0.5, 1, count).astype(F4) / F4(64 * hidden**0.5)
            zeros = np.full(count, middle, np.int8)
            packed = Packed(scheme, codes, scales, zeros, shape, np.dtype(F4))
            setattr(model, f"weight_{name}_l0{end}", nn.Param(packed))
            bias = rng.normal(0, 0.1, 4 * hidden).astype(F4)
            setattr(model, f"bias_{name}_l0{end}", bias)
    model.on_input = InputQuantizer(BYTES, integers=True)
    return model


def rounded(x):
    """DynamicQuantizeLinear: codes less the zero point, and the scale."""
    low, high = min(F4(0), x.min()), max(F4(0), x.max())
    scale = F4((high - low) / F4(255)) or F4(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    codes = np.clip(np.rint(x / scale) + zero, 0, 255) - zero
    return codes.astype(np.int64), scale


def product(x, packed):
    """x, rounded, times a weight: sums of integers, then their scales."""
    codes, scale = rounded(x)
    weight = packed.codes.astype(np.int64) - packed.zero_points
    return (codes @ weight.T).astype(F4) * (scale * packed.scales.reshape(-1))


@pytest.mark.parametrize("width", [1, 40, 700])  # the last needs float64
@pytest.mark.parametrize("middle", [0, -128, 5])
@pytest.mark.parametrize("channels", [False, True])
def test_products_are_those_of_integers_bit_for_bit(width, middle, channels):
    model = quantized(width, 3, channels, middle=middle)
    every = integers.linears(model, model.on_input, ["weight_ih_l0"])
    for seed in range(3):
        x = np.random.default_rng(seed).normal(0.3, 1, (5, 2, width)).astype(F4)
        (y,) = every(Tensor(x), model.bias_ih_l0)
        want = product(x, model.weight_ih_l0.held) + model.bias_ih_l0.numpy()
        np.testing.assert_array_equal(y.numpy(), want)


def test_a_step_is_that_of_integers():
    model = quantized(40, 700, True)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 2, 40)).astype(F4)
    h, c = rng.uniform(-1, 1, (2, 2, 700)).astype(F4)
    gates = product(x[0], model.weight_ih_l0.held).astype(np.float64)
    gates += product(h, model.weight_hh_l0.held)
    gates += model.bias_ih_l0.numpy() + model.bias_hh_l0.numpy()
    i, f, g, o = np.split(gates, 4, axis=-1)
    cell = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
    y, (_, after) = model(Tensor(x), (Tensor(h[None]), Tensor(c[None])))
    np.testing.assert_allclose(after.numpy()[0], cell, atol=5e-7)
    want = np.tanh(cell) / (1 + np.exp(-o))
    np.testing.assert_allclose(y.numpy()[0], want, atol=5e-7)


def test_sums_are_of_floats_where_the_model_trains():
    model = quantized(6, 8, True)
    x = np.random.default_rng(0).normal(size=(5, 2, 6)).astype(F4)
    (y,), want = model(x)[:1], model.fork("cpu:autodiff")(x)[0]
    np.testing.assert_allclose(y.numpy(), want.numpy(), atol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("ends", [("",), ("", "_reverse")], ids=len)
def test_long_sequences_are_those_of_onnxruntime(ends, channels, dtype):
    """But for codes that the last bits of a sigmoid move by one."""
    onnx, runtime = map(pytest.importorskip, ("onnx", "onnxruntime"))
    model = quantized(40, 48, channels, ends=ends)
    x = np.random.default_rng(0).normal(size=(80, 2, 40)).astype(F4)
    graph = node_of(onnx, model, ends, dtype)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", "1")
    (want,) = runtime.InferenceSession(graph, options).run(None, {"x": x})
    want = want.transpose(0, 2, 1, 3).reshape(80, 2, -1)
    apart = np.abs(model(Tensor(x))[0].numpy() - want)
    assert np.quantile(apart, 0.9) < 2e-6
    assert apart.max() < 2e-2


def node_of(onnx, model, ends, dtype):
    """A file with the layer as DynamicQuantizeLSTM, its results alone."""
    shift, held = (128 if dtype == np.uint8 else 0), {}

    def gates(array):
        parts = np.split(array, 4) if array.shape[0] > 1 else [array]
        return np.concatenate([parts[i] for i in ONNX_GATES[: len(parts)]])

    for letter, name in (("W", "ih"), ("R", "hh")):
        each = [getattr(model, f"weight_{name}_l0{end}").held for end in ends]
        codes = [gates(w.codes.astype(np.int16) + shift).T for w in each]
        held[letter] = np.stack(codes).astype(dtype)
        held[f"scale {letter}"] = np.stack([gates(w.scales).reshape(-1) for w in each])
        if each[0].scales.size == 1:
            held[f"scale {letter}"] = held[f"scale {letter}"].reshape(-1)
        held[f"zero {letter}"] = np.full(held[f"scale {letter}"].shape, shift, dtype)
    biases = [
        np.concatenate(
            [gates(getattr(model, f"bias_{n}_l0{end}").numpy()) for n in ("ih", "hh")]
        )
        for end in ends
    ]
    held["B"] = np.stack(biases)
    names = ["x", "W", "R", "B", *[""] * 4, "scale W", "zero W", "scale R", "zero R"]
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    node = helper.make_node(
        "DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft", hidden_size=48,
        direction="bidirectional" if len(ends) > 1 else "forward",
    )  # fmt: skip
    ports = [helper.make_tensor_value_info(n, kind, None) for n in ("x", "y")]
    weights = [onnx.numpy_helper.from_array(a, n) for n, a in held.items()]
    graph = helper.make_graph([node], "lstm", ports[:1], ports[1:], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return made.SerializeToString()
