"""Recurrent networks: written out in NumPy, against onnxruntime, and gradients."""

import itertools

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops
from burnish.errors import InputError
from tests.harness.operators import case

T, N, INPUTS, H = 4, 2, 3, 2
LENGTHS = np.array([4, 2], np.int32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def plain_lstm(x, w, r, b):
    """One direction, gates i, o, f, c."""
    h = c = np.zeros((x.shape[1], r.shape[2]), x.dtype)
    both = b[0, : 4 * H] + b[0, 4 * H :]
    results = []
    for step in x:
        i, o, f, g = np.split(step @ w[0].T + h @ r[0].T + both, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        results.append(h)
    return np.stack(results)[:, None], h[None], c[None]


def plain_gru(x, w, r, b):
    """One direction, gates z, r, h; the reset before the matrix product."""
    h = np.zeros((x.shape[1], r.shape[2]), x.dtype)
    results = []
    wz, wr, wh = np.split(w[0], 3)
    rz, rr, rh = np.split(r[0], 3)
    bz, br, bh = np.split(b[0, : 3 * H] + b[0, 3 * H :], 3)
    for step in x:
        z = sigmoid(step @ wz.T + h @ rz.T + bz)
        reset = sigmoid(step @ wr.T + h @ rr.T + br)
        h = (1 - z) * np.tanh(step @ wh.T + (reset * h) @ rh.T + bh) + z * h
        results.append(h)
    return np.stack(results)[:, None], h[None]


def plain_rnn(x, w, r, b):
    h = np.zeros((x.shape[1], r.shape[2]), x.dtype)
    results = []
    for step in x[::-1]:
        h = np.tanh(step @ w[0].T + h @ r[0].T + b[0, :H] + b[0, H:])
        results.append(h)
    return np.stack(results[::-1])[:, None], h[None]


def weights(gates, directions=1):
    rows = gates * H
    return (directions, rows, INPUTS), (directions, rows, H), (directions, 2 * rows)


CASES = [
    case(ops.lstm, (T, N, INPUTS), *weights(4), expect=plain_lstm),
    case(ops.gru, (T, N, INPUTS), *weights(3), expect=plain_gru),
    case(ops.rnn, (T, N, INPUTS), *weights(1), direction="reverse", expect=plain_rnn),
    case(
        ops.lstm,
        (2, N, INPUTS),
        *weights(4, 2),
        np.array([2, 1]),
        (2, N, H),
        (2, N, H),
        (2, 3 * H),
        direction="bidirectional",
        dtypes=[np.float64],
        second=False,
    ),
    case(
        ops.gru,
        (N, 2, INPUTS),
        *weights(3),
        None,
        (N, 1, H),
        linear_before_reset=True,
        layout=1,
        dtypes=[np.float64],
    ),
    *(
        case(
            ops.gru,
            (2, N, INPUTS),
            *weights(3, 2),
            np.array([2, 1]),
            (2, N, H),
            direction="bidirectional",
            linear_before_reset=reset,
            dtypes=[np.float64],
        )
        for reset in (False, True)
    ),
    case(
        ops.rnn,
        (2, N, INPUTS),
        *weights(1, 2),
        np.array([2, 1]),
        (2, N, H),
        direction="bidirectional",
        activations=["Relu", "Tanh"],
        dtypes=[np.float64],
    ),
    case(
        ops.lstm,
        (2, N, INPUTS),
        *weights(4),
        np.array([2, 1]),
        (1, N, H),
        (1, N, H),
        dtypes=[np.float64],
    ),
    case(
        ops.rnn,
        (2, N, INPUTS),
        *weights(1),
        activations=["Affine"],
        activation_alpha=[0.5],
        activation_beta=[0.1],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


def run_onnx(kind, inputs, outputs, **attributes):
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    given = {f"i{k}": v for k, v in enumerate(inputs) if v is not None}
    names = [f"i{k}" if f"i{k}" in given else "" for k in range(len(inputs))]
    made = [f"o{k}" for k in range(outputs)]
    helper = onnx.helper
    node = helper.make_node(kind, names, made, hidden_size=H, **attributes)
    infos = [
        helper.make_tensor_value_info(
            k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape
        )
        for k, v in given.items()
    ]
    ends = [helper.make_tensor_value_info(k, 1, None) for k in made]
    graph = helper.make_graph([node], "g", infos, ends)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    )
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, given)


def random(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("direction", "lengths", "extra"),
    [
        *itertools.product(
            ["forward", "reverse", "bidirectional"], [None, LENGTHS], [{}]
        ),
        ("forward", None, {"clip": 0.3}),
        ("forward", None, {"input_forget": 1}),
        (
            "forward",
            None,
            {
                "activations": ["HardSigmoid", "LeakyRelu", "Softsign"],
                "activation_alpha": [0.3, 0.1],
                "activation_beta": [0.4],
            },
        ),
    ],
)
def test_lstm_like_onnxruntime(direction, lengths, extra):
    d = 2 if direction == "bidirectional" else 1
    shapes = weights(4, d)
    states = [random(d, N, H), random(d, N, H), random(d, 3 * H)]
    inputs = [random(T, N, INPUTS), *(random(*s) for s in shapes), lengths, *states]
    got = ops.lstm(*inputs, direction=direction, **extra)
    want = run_onnx("LSTM", inputs, 3, direction=direction, **extra)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("reset", [0, 1])
@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_gru_like_onnxruntime(direction, lengths, reset):
    d = 2 if direction == "bidirectional" else 1
    options = {"direction": direction, "linear_before_reset": reset}
    inputs = [random(T, N, INPUTS), *(random(*s) for s in weights(3, d)), lengths]
    inputs.append(random(d, N, H))
    for one, other in zip(
        ops.gru(*inputs, **options), run_onnx("GRU", inputs, 2, **options), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_rnn_like_onnxruntime(direction, lengths):
    d = 2 if direction == "bidirectional" else 1
    options = {"direction": direction, "activations": ["Tanh", "Relu"][:d]}
    inputs = [random(T, N, INPUTS), *(random(*s) for s in weights(1, d)), lengths, None]
    for one, other in zip(
        ops.rnn(*inputs, **options), run_onnx("RNN", inputs, 2, **options), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lengths", [None, 0 * LENGTHS])
@pytest.mark.parametrize(
    ("kind", "gates", "states"), [("lstm", 4, 2), ("gru", 3, 1), ("rnn", 1, 1)]
)
def test_no_steps_end_where_they_start(kind, gates, states, lengths):
    start = [random(2, N, H) + k for k in range(states)]
    x, parts = random(0, N, INPUTS), [random(*s) for s in weights(gates, 2)]
    run = getattr(ops, kind)
    y, *ends = run(x, *parts, lengths, *start, direction="bidirectional")
    assert y.shape == (0, 2, N, H)
    assert y.dtype == np.float32
    for end, begin in zip(ends, start, strict=True):
        np.testing.assert_array_equal(end, begin)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_layers_without_steps_give_zeros(layer):
    """Eager, as a plan, and as a plan that has seen others before."""
    module = layer(INPUTS, H, num_layers=2, bidirectional=True).valid()
    planned = burnish.compile(module)
    planned(Tensor(random(T, N, INPUTS)))
    for run in (module, burnish.compile(module), planned):
        y, last = run(Tensor(random(0, N, INPUTS)))
        assert y.shape == (0, N, 2 * H)
        for end in last if isinstance(last, tuple) else (last,):
            np.testing.assert_array_equal(end.numpy(), np.zeros((4, N, H)))


def test_unknown_words_are_refused():
    arrays = [random(*s) for s in [(T, N, INPUTS), *weights(1)]]
    with pytest.raises(InputError, match="direction"):
        ops.rnn(*arrays, direction="backward")
    with pytest.raises(InputError, match=r"got \['Sine'\]"):
        ops.rnn(*arrays, activations=["Sine"])
    with pytest.raises(InputError, match="expected 2 activations, got 1"):
        ops.rnn(*arrays, activations=["Tanh"], direction="bidirectional")


def test_a_dynamic_lstm_rounds_the_input_and_every_state():
    def eighths(x):
        low, high = min(x.min(), 0), max(x.max(), 0)
        scale = np.float32((high - low) / 255) if high > low else np.float32(1)
        zero = np.clip(np.rint(-low / scale), 0, 255)
        codes = np.clip(np.rint(x / scale) + zero, 0, 255)
        return ((codes - zero) * scale).astype(np.float32)

    rng = np.random.default_rng(0)
    x, w, r = (
        rng.standard_normal(shape, np.float32)
        for shape in ((T, N, INPUTS), (1, 4 * H, INPUTS), (1, 4 * H, H))
    )
    h = c = np.zeros((N, H), np.float32)
    expected = []
    for step in eighths(x):
        i, o, f, g = np.split(step @ w[0].T + eighths(h) @ r[0].T, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        expected.append(h)
    y, _, _ = ops.lstm(x, w, r, dynamic=True)
    np.testing.assert_allclose(y[:, 0], expected, rtol=1e-5, atol=1e-6)
    empty, _, _ = ops.lstm(x[:, :0], w, r, dynamic=True)
    assert empty.shape == (T, 1, 0, H)
