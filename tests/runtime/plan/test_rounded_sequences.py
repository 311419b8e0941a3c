"""LSTMs that round their states, over whole sequences, beside the steps in float64."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn
from burnish.errors import InputError
from burnish.lowbit import Level, QuantScheme
from burnish.nn.lowbit.input_quantizer import InputQuantizer
from tests.runtime.plan.test_quantized import kinds

pytestmark = pytest.mark.usefixtures("canaries")

BYTES = QuantScheme("q8f", "affine", Level.tensor())
WEIGHTS = {
    "symmetric": QuantScheme("q8s", "symmetric", Level.channel(0)),
    "zero points": QuantScheme("q8f", "affine", Level.channel(0)),
    "one scale": QuantScheme("q8f", "affine", Level.tensor()),
}


def rounded_lstm(ins, hidden, weights="symmetric", **more):
    burnish.seed(0)
    model = nn.LSTM(ins, hidden, **more)
    for name, weight in list(model.named_parameters()):
        if name.startswith("weight"):
            setattr(model, name, weight.quantize(WEIGHTS[weights]))
    model.on_input = InputQuantizer(BYTES)
    return model


def given(steps, count, ins, hidden, states, seed=0):
    random = np.random.default_rng(seed)

    def draw(*shape):
        return Tensor(random.standard_normal(shape).astype(np.float32))

    x = draw(steps, count, ins)
    return (x, (draw(states, count, hidden), draw(states, count, hidden)))


def covered(x):
    """DynamicQuantizeLinear and DequantizeLinear, with float64 behind the codes."""
    x = x.astype(np.float32)
    low, high = np.minimum(x.min(), 0), np.maximum(x.max(), 0)
    scale = np.float32((high - low) / np.float32(255)) or np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    codes = np.clip(np.rint(x / scale) + zero, 0, 255)
    return (codes - zero).astype(np.float64) * scale


def layer_in_float64(model, end, x, h, c, reverse):
    """One direction of a layer, step by step."""
    parts = "weight_ih", "weight_hh", "bias_ih", "bias_hh"
    ins, own, *biases = (
        np.asarray(getattr(model, f"{name}_{end}").data, np.float64) for name in parts
    )
    inputs, hs = covered(x) @ ins.T + sum(biases), [None] * len(x)
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        gates = np.split(inputs[t] + covered(h) @ own.T, 4, axis=-1)
        i, f, o = (1 / (1 + np.exp(-gates[k])) for k in (0, 1, 3))
        c = f * c + i * np.tanh(gates[2])
        hs[t] = h = o * np.tanh(c)
    return np.stack(hs), h, c


def check_close(got, want):
    """Equal, but for codes that rounding of sums in single precision moves by one."""
    apart = np.abs(got.data - want)
    assert np.median(apart) < 5e-6
    assert apart.max() < 2e-2


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("hidden", [1, 7, 16, 40])
def test_steps_are_those_in_float64(hidden, count, weights, reverse):
    model = rounded_lstm(6, hidden, weights, bidirectional=True)
    x, (h, c) = given(9, count, 6, hidden, 2)
    fast = burnish.compile(model)
    y, (last_h, last_c) = fast(x, (h, c))
    assert kinds(fast)["recurrent_codes"] == 2
    end, at = ("l0_reverse", 1) if reverse else ("l0", 0)
    hs, h, c = layer_in_float64(model, end, x.data, h.data[at], c.data[at], reverse)
    check_close(y[:, :, at * hidden : (at + 1) * hidden], hs)
    check_close(last_h[at], h)
    check_close(last_c[at], c)


def test_states_that_begin_at_0():
    model = rounded_lstm(6, 20, num_layers=2)
    fast = burnish.compile(model)
    x, _ = given(5, 2, 6, 20, 2)
    y, (h, c) = fast(x)
    assert kinds(fast)["recurrent_codes"] == 2
    zeros = Tensor(np.zeros((2, 2, 20), np.float32))
    same, (same_h, same_c) = fast(x, (zeros, zeros))
    for one, other in ((y, same), (h, same_h), (c, same_c)):
        np.testing.assert_array_equal(one.data, other.data)


def test_a_state_that_is_not_finite_is_refused_as_in_the_plain_call():
    model = rounded_lstm(6, 20)
    fast = burnish.compile(model)
    x, (h, c) = given(5, 2, 6, 20, 1)
    fast(x, (h, c))
    c.data[0, 1, 3] = np.nan
    with pytest.raises(InputError, match="expected finite values"):
        fast(x, (h, c))


def test_steps_whose_states_others_read_stay_steps():
    layer = rounded_lstm(6, 20)

    def run(x, state):
        """Two calls of the same step, whose states are read between."""
        first, state = layer(x[:1], state)
        second, state = layer(x[1:], state)
        return first + second, state

    fast = burnish.compile(run)
    x, state = given(2, 3, 6, 20, 1)
    got, want = fast(x, state), run(x, state)
    check_close(got[0], want[0].data)
    assert "recurrent_codes" not in kinds(fast)


def test_new_weights_are_packed_again():
    model = rounded_lstm(6, 20)
    fast = burnish.compile(model)
    x, state = given(5, 2, 6, 20, 1)
    fast(x, state)
    other = rounded_lstm(6, 20)
    model.weight_hh_l0 = other.weight_hh_l0
    y, (h, c) = fast(x, state)
    hs, last_h, last_c = layer_in_float64(
        model, "l0", x.data, state[0].data[0], state[1].data[0], False
    )
    check_close(y, hs)
    check_close(h[0], last_h)
    check_close(c[0], last_c)
