"""Quantized inputs of layers: static and dynamic scales, files, refusals."""

import numpy as np
import pytest

from burnish import Tensor, nn, seed
from burnish.errors import InputError, RecordError
from burnish.nn import ParamGroup
from burnish.quantization import (
    Calibration,
    Dequantize,
    Level,
    Observer,
    Quantizer,
    QuantScheme,
    quantize_dynamic,
    quantize_static,
)

RNG = np.random.default_rng(0)
X = RNG.normal(0.5, 1, (64, 6)).astype(np.float32)
AFFINE = QuantScheme("q8f", "affine")


class Net(nn.Module):
    def __init__(self):
        self.embed = nn.Embedding(9, 6)
        self.body = [nn.Linear(6, 8), nn.Linear(8, 8)]
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x, ids=None):
        if ids is not None:
            x = x + self.embed(ids)
        for layer in self.body:
            x = layer(x).relu()
        return self.head(x=self.norm(x))


def by_hand(x, low, high):
    """Affine 8 bits of onnxruntime's kind, in float64."""
    scale = (high - low) / 255
    zero = np.rint(-low / scale)
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale


def test_dynamic_rows_are_rounded_one_by_one():
    net = nn.Linear(6, 4)
    weight, bias = net.weight.numpy(), net.bias.numpy()
    quantize_dynamic(net)
    low = np.minimum(X.min(1, keepdims=True), 0)
    high = np.maximum(X.max(1, keepdims=True), 0)
    want = by_hand(X.astype("f8"), low.astype("f8"), high.astype("f8"))
    scale = np.abs(weight).max(1, keepdims=True) / 127
    small = np.rint(weight / scale) * scale
    np.testing.assert_allclose(net(X).numpy(), want @ small.T + bias, atol=1e-4)
    np.testing.assert_array_equal(net(X[:7]).numpy(), net(X).numpy()[:7])


def test_static_scales_are_those_of_the_batches():
    net = nn.Linear(6, 4)
    quantize_static(net, [X[:32], X[32:]])
    assert net.on_input.scales.numpy() == np.float32((X.max() - X.min()) / 255)
    weight, bias = net.weight.numpy(), net.bias.numpy()
    far = 3 * X
    want = by_hand(far.astype("f8"), float(X.min()), float(X.max()))
    np.testing.assert_allclose(net(far).numpy(), want @ weight.T + bias, atol=1e-4)


@pytest.mark.parametrize(
    "batches",
    [
        lambda: [Tensor(X)],
        lambda: [(X, np.arange(64) % 9)],
        lambda: iter([{"x": X, "ids": np.arange(64) % 9}]),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "cpu:autodiff"])
def test_models_stay_near(batches, device):
    seed(0)
    net = Net().to(device)
    expected = net(X).numpy()
    quantize_static(net, batches())
    assert [path for path, m in net.named_modules() if m.on_input] == [
        "body.0", "body.1", "head",
    ]  # fmt: skip
    error = np.abs(net(X).numpy() - expected)
    assert 0 < error.max() < 0.1
    assert net.num_params == Net().num_params


@pytest.mark.parametrize(
    "quantize",
    [
        quantize_dynamic,
        lambda net: quantize_static(net, [X]),
        lambda net: quantize_static(
            net,
            [X],
            inputs=Quantizer(scheme=QuantScheme("e4m3", level=Level.channel(-1))),
        ),
    ],
)
def test_files_bring_input_quantizers_along(quantize, tmp_path):
    net = quantize(Net())
    net.save_file(tmp_path / "net.safetensors")
    again = Net().load_file(tmp_path / "net.safetensors")
    assert repr(again) == repr(net)
    assert again(X).numpy().tobytes() == net(X).numpy().tobytes()
    copy = net.fork("cpu:autodiff").valid()
    assert copy(X).numpy().tobytes() == net(X).numpy().tobytes()
    full = Dequantize().map(again)
    assert full(X).numpy().tobytes() == net(X).numpy().tobytes()


def test_a_file_that_does_not_fit_brings_nothing():
    state = quantize_dynamic(nn.Linear(6, 4)).state_dict()
    net = nn.Linear(5, 4)
    with pytest.raises(RecordError, match="weight has shape"):
        net.load_state_dict(state)
    assert net.on_input is None
    broken = state | {"on_input.scheme": np.zeros(4, np.uint8)}
    with pytest.raises(RecordError, match="a scheme in JSON"):
        nn.Linear(6, 4).load_state_dict(broken)


@pytest.mark.parametrize("method", ["percentile", "mse", "entropy"])
def test_other_calibrations_see_a_selection(method):
    quantizer = Quantizer(Calibration(method), AFFINE)
    observer, rng = Observer(quantizer), np.random.default_rng(1)
    every = rng.normal(size=(40, 20_000)).astype(np.float32)
    every[3, 5] = 400
    for batch in every:
        assert observer(batch) is batch
    params = observer.params("fc")
    assert params.scales[0] < 0.5 * (every.max() - every.min()) / 255
    whole = AFFINE.calibrated(every, Calibration("percentile"))
    if method == "percentile":
        np.testing.assert_allclose(params.scales, whole.scales, rtol=0.05)
    ints = np.arange(3)
    assert observer(ints) is ints


def test_a_group_says_which_layers():
    net = quantize_dynamic(Net(), group=ParamGroup.from_paths("head.weight"))
    assert net.head.on_input is not None
    assert net.body[0].on_input is None
    assert net.body[0].weight.scheme is None


def row(message, act):
    return pytest.param(act, message, id=message)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        row("expected batches to calibrate", lambda net: quantize_static(net, [])),
        row(
            "per tensor or per channel, got per row",
            lambda net: quantize_static(
                net, [X], inputs=Quantizer(scheme=QuantScheme(level=Level.row()))
            ),
        ),
        row(
            "use Calibration.min_max",
            lambda net: quantize_static(
                net,
                [X],
                inputs=Quantizer(
                    Calibration.mse(), QuantScheme(level=Level.channel(-1))
                ),
            ),
        ),
        row(
            "finite values",
            lambda net: quantize_static(net, [np.full((2, 6), np.inf, np.float32)]),
        ),
    ],
)
def test_what_cannot_be_leaves_the_model_alone(act, message):
    net = Net()
    expected = net(X).numpy()
    with pytest.raises(InputError, match=message):
        act(net)
    assert all(module.on_input is None for _, module in net.named_modules())
    assert net(X).numpy().tobytes() == expected.tobytes()


def test_a_layer_that_no_batch_reaches_is_named():
    class Skips(Net):
        def forward(self, x):
            return self.body[0](x)

    with pytest.raises(InputError, match=r"body\.1: expected batches that reach"):
        quantize_static(Skips(), [X])
