"""Layers that PyTorch has not, layers that draw, and what changes a layer, captured."""

import importlib
import inspect

import numpy as np
import pytest

from burnish import nn, seed
from burnish.nn import ParamGroup
from burnish.quantization import (
    Quantizer,
    QuantScheme,
    prepare_qat,
    quantize_dynamic,
    quantize_static,
)
from tests.runtime.capture.harness import changed, check

RNG = np.random.default_rng(0)
IMAGE = (2, 3, 5, 4)
IDS = np.array([[0, 2, 2], [4, 0, 1]])
HIDDEN = RNG.random((2, 5)) < 0.3
BLOCKED = np.array([[True] * 5, [False] * 5])


def floats(*shape):
    return RNG.normal(size=shape).astype("float32")


SEQUENCE = floats(2, 4, 8), floats(2, 5, 8)
ROWS = [
    (nn.Dropout(0.5), [floats(3, 4)], {}),
    (nn.FakeQuantize(), [floats(3, 4)], {}),
    (nn.FakeQuantize(4), [floats(3, 4)], {}),
    (nn.Dropout2d(0.5), [floats(*IMAGE)], {}),
    (nn.AlphaDropout(0.5), [floats(3, 4)], {}),
    (nn.FeatureAlphaDropout(0.5), [floats(2, 3, 4)], {}),
    (nn.GaussianNoise(0.5), [floats(3, 4)], {}),
    (nn.RReLU(), [floats(3, 4)], {}),
    (nn.Shrink(0.5, 0.1), [floats(3, 4)], {}),
    (nn.ThresholdedReLU(0.5), [floats(3, 4)], {}),
    (nn.Permute((0, 2, 1)), [floats(2, 3, 4)], {}),
    (nn.SwiGLU(4, 3), [floats(2, 4)], {}),
    (nn.PositionWiseFeedForward(4, 8), [floats(2, 3, 4)], {}),
    (nn.PositionalEncoding(8), [floats(2, 3, 8)], {}),
    (nn.RotaryEncoding(8), [floats(2, 3, 8)], {}),
    (nn.CrossAttention(8, 8, 4, 2, 3), SEQUENCE, {"mask": HIDDEN}),
    (nn.CrossAttention(8, 8, 4, 2, 3, quiet_softmax=True), SEQUENCE, {"mask": BLOCKED}),
    (
        nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True),
        [SEQUENCE[0], SEQUENCE[1], SEQUENCE[1]],
        {"key_padding_mask": HIDDEN, "attn_mask": floats(4, 5)},
    ),
    (
        nn.MultiheadAttention(8, 2, batch_first=True),
        [SEQUENCE[0], SEQUENCE[1], SEQUENCE[1]],
        {"key_padding_mask": BLOCKED, "need_weights": False},
    ),
    (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2),
        [floats(4, 2, 8)],
        {"mask": np.triu(np.ones((4, 4), bool), 1)},
    ),
    (
        nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2),
        [floats(4, 2, 8), floats(3, 2, 8)],
        {},
    ),
    (nn.LSTM(3, 4, 2, dropout=0.5), [floats(5, 2, 3)], {"lengths": np.array([3, 5])}),
    (nn.GRU(3, 4), [floats(5, 2, 3)], {"lengths": np.array([3, 5])}),
    (nn.DeformConv2d(3, 4, 2), [floats(*IMAGE), floats(2, 8, 4, 3)], {}),
    (
        nn.MaxUnpool2d(2),
        [floats(1, 2, 2, 2), np.array([0, 3, 9, 15] * 2).reshape(1, 2, 2, 2)],
        {},
    ),
    (
        nn.RNNTLoss(),
        [
            floats(2, 4, 3, 5),
            np.array([[1, 2], [3, 1]]),
            np.array([3, 4]),
            np.array([1, 2]),
        ],
        {},
    ),
    (nn.Embedding(5, 3, max_norm=0.5), [IDS], {}),
    (nn.TreeEnsemble(2, 2, 4, 3), [floats(4, 2)], {}),
    (
        nn.GramMatrixLoss(lambda x: [x, x * x], [1.0, 0.5]),
        [floats(*IMAGE), floats(*IMAGE)],
        {},
    ),
]


@pytest.mark.parametrize(("layer", "arrays", "call"), ROWS, ids=lambda x: str(x)[:40])
def test_layer(layer, arrays, call):
    train = not isinstance(layer, nn.TreeEnsemble)  # which has no gradient
    check(layer, arrays, [changed(a) for a in arrays], call, train)


def net():
    seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


def with_lora(model):
    model.apply_lora(2)
    for name, item in model.named_parameters():
        if name.endswith("lora_B"):
            item.assign(floats(*item.shape))


def merged(model):
    with_lora(model)
    model.merge_adapters()


class WeightNorm(nn.Reparameterizer):
    def split(self, param):
        return {"g": nn.Param(np.ones((param.shape[0], 1), "f4")), "v": param.copy()}

    def value(self, g, v):
        return v * (g / (v * v).sum(axis=1, keepdims=True).sqrt())


X = floats(4, 6)
INPUTS = Quantizer(scheme=QuantScheme("q8f", "affine"))
WEIGHTS = ParamGroup.from_regex("weight$")
CHANGES = {
    "lora": with_lora,
    "qlora": lambda model: model.apply_qlora(2, block_size=2),
    "merged adapters": merged,
    "weight norm": lambda model: model.apply_reparameterization(WeightNorm(), WEIGHTS),
    "small weights": lambda model: model.quantize_weights(Quantizer()),
    "dynamic inputs": quantize_dynamic,
    "static inputs": lambda model: quantize_static(model, [X, X + 1]),
    "frozen": lambda model: model.freeze(ParamGroup.all()),
    "qat": lambda model: prepare_qat(model, inputs=INPUTS),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_layer_whose_weights_are_computed(change):
    model = net()
    change(model)
    check(model, [X], [changed(X)])


def test_every_layer_is_in_a_table():
    layers = {
        name
        for name in nn.__all__
        if inspect.isclass(kind := getattr(nn, name)) and issubclass(kind, nn.Module)
    }
    none = {"Layer", "Module", "ModuleDict", "Sequential", "Unwritten"}
    here = {type(layer).__name__ for layer, _, _ in ROWS}
    pytest.importorskip("torch")
    oracle = importlib.import_module("tests.runtime.capture.test_layers_oracle")
    losses = importlib.import_module("tests.runtime.capture.test_losses_oracle")
    there = {row.name for row in oracle.LAYERS} | {name for name, _, _ in losses.ROWS}
    assert layers - here - there <= {*none, "CTCLoss", "MaxUnpool1d", "MaxUnpool3d"}
