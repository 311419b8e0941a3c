"""Layers on a plain machine: shapes, modes, messages, how they print."""

import numpy as np
import pytest

from burnish import Tensor, nn, ops, seed
from burnish.errors import InputError

PRINTED = [
    (nn.Linear(5, 4), "Linear(5, 4)  # 24 params"),
    (nn.Linear(5, 4, bias=False), "Linear(5, 4, bias=False)  # 20 params"),
    (nn.Linear(5, 4, transposed=True), "Linear(5, 4, transposed=True)  # 24 params"),
    (
        nn.Conv2d(3, 8, 3, padding=((0, 1), (0, 1))),
        "Conv2d(3, 8, 3, padding=((0, 1), (0, 1)))  # 224 params",
    ),
    (nn.BatchNorm2d(3, momentum=None), "BatchNorm2d(3, momentum=None)  # 6 params"),
    (
        nn.LayerNorm(4, elementwise_affine=False),
        "LayerNorm(4, elementwise_affine=False)",
    ),
    (nn.MaxPool2d(2), "MaxPool2d(2)"),
    (nn.Dropout(0.1), "Dropout(p=0.1)"),
    (nn.ReLU(), "ReLU()"),
    (nn.LSTM(3, 4, bias=False), "LSTM(3, 4, bias=False)  # 112 params"),
    (nn.CrossEntropyLoss(label_smoothing=0.1), "CrossEntropyLoss(label_smoothing=0.1)"),
]


@pytest.mark.parametrize(("layer", "text"), PRINTED, ids=[t for _, t in PRINTED])
def test_a_layer_prints_as_it_is_written(layer, text):
    assert repr(layer) == text


SHAPES = [
    (nn.Conv1d(3, 4, 3, padding="same"), (2, 3, 9), (2, 4, 9)),
    (nn.Conv2d(3, 4, 3, 2, ((1, 0), (0, 1))), (2, 3, 9, 8), (2, 4, 4, 4)),
    (nn.Conv3d(1, 2, 2), (1, 1, 3, 4, 5), (1, 2, 2, 3, 4)),
    (nn.ConvTranspose2d(3, 4, 2, 2), (1, 3, 4, 5), (1, 4, 8, 10)),
    (nn.AvgPool2d(3, 2, 1), (1, 2, 8, 8), (1, 2, 4, 4)),
    (nn.AdaptiveAvgPool2d((None, 2)), (1, 2, 7, 7), (1, 2, 7, 2)),
    (nn.Flatten(), (2, 3, 4), (2, 12)),
    (nn.Permute((0, 2, 1)), (2, 3, 4), (2, 4, 3)),
    (nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), (5, 4), (5, 2)),
    (nn.GroupNorm(2, 4), (2, 4, 3), (2, 4, 3)),
    (nn.RMSNorm((3, 4)), (2, 3, 4), (2, 3, 4)),
    (nn.Upsample(scale_factor=2), (1, 2, 3, 4), (1, 2, 6, 8)),
]


@pytest.mark.parametrize(
    ("layer", "given", "expected"), SHAPES, ids=[type(s[0]).__name__ for s in SHAPES]
)
def test_shapes_and_dtype(layer, given, expected):
    y = layer(Tensor(np.ones(given, np.float32)))
    assert y.shape == expected
    assert y.dtype == np.float32


def test_a_transposed_linear_has_its_weight_as_in_and_out():
    layer, plain = nn.Linear(3, 4, transposed=True), nn.Linear(3, 4)
    assert layer.weight.shape == (3, 4)
    layer.load_state_dict({"weight": plain.weight.T.numpy(), "bias": plain.bias})
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(layer(x).numpy(), plain(x).numpy())
    layer.to("cpu:autodiff")
    plain.to("cpu:autodiff")
    grads, others = ((m(x) ** 2).sum().backward() for m in (layer, plain))
    grad, other = layer.weight.grad(grads), plain.weight.grad(others)
    np.testing.assert_allclose(grad.numpy(), other.numpy().T, rtol=1e-6)


def test_batch_norm_learns_statistics_only_in_training():
    x = np.random.default_rng(0).normal(3, 2, (8, 2, 4)).astype(np.float32)
    layer = nn.BatchNorm1d(2, momentum=None)
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), x, rtol=1e-4)
    assert layer.num_batches_tracked.data == 0
    y = layer.to("cpu:autodiff")(Tensor(x)).numpy()
    np.testing.assert_allclose(y.mean(axis=(0, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(y.std(axis=(0, 2)), 1, rtol=1e-4)
    assert layer.num_batches_tracked.data == 1
    np.testing.assert_allclose(
        layer.running_mean.numpy(), x.mean(axis=(0, 2)), rtol=1e-4
    )
    variance = x.var(axis=(0, 2), ddof=1)
    np.testing.assert_allclose(layer.running_var.numpy(), variance, rtol=1e-4)


def test_dropout_acts_only_in_training_and_keeps_the_mean():
    seed(0)
    x = Tensor(np.ones((200, 200), np.float32))
    layer = nn.Dropout(0.25)
    assert layer(x) is x
    y = layer.to("cpu:autodiff")(x).numpy()
    assert set(np.unique(y).tolist()) == {0.0, float(np.float32(1 / 0.75))}
    np.testing.assert_allclose(y.mean(), 1, rtol=0.02)
    channels = nn.Dropout2d().to("cpu:autodiff")(Tensor(np.ones((4, 8, 3, 3)))).numpy()
    assert (channels == channels[:, :, :1, :1]).all()
    assert (nn.Dropout(1.0).to("cpu:autodiff")(x).numpy() == 0).all()


def test_padding_row_starts_as_zeros():
    weight = nn.Embedding(4, 3, padding_idx=1).weight.numpy()
    assert (weight[1] == 0).all()
    assert (weight[0] != 0).any()


def test_sequential_takes_names_and_slices():
    layers = nn.Sequential({"first": nn.Linear(2, 3), "second": nn.Linear(3, 1)})
    assert next(iter(layers.state_dict())) == "first.weight"
    assert len(layers) == 2
    assert list(layers[1:].state_dict()) == ["second.weight", "second.bias"]
    assert layers[1] is layers.second
    layers[1] = nn.Identity()
    assert list(layers.state_dict()) == ["first.weight", "first.bias"]


def test_a_module_dict_is_a_dict_of_modules():
    parts = nn.ModuleDict({"b": nn.Linear(2, 3), "a": nn.Identity()})
    parts["c"] = nn.Linear(3, 1, bias=False)
    assert list(parts) == list(parts.keys()) == ["b", "a", "c"]
    assert list(parts.items()) == list(zip(parts, parts.values(), strict=True))
    assert "a" in parts
    assert "d" not in parts
    assert list(parts.state_dict()) == ["b.weight", "b.bias", "c.weight"]
    taken = parts.pop("b")
    parts.update({"c": taken})
    assert parts["c"] is taken
    assert list(parts) == ["a", "c"]
    del parts["a"]
    parts.clear()
    assert not len(parts)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"a": 3}, "expected a module, got int as 'a'"),
        ({"a.b": nn.ReLU()}, "a text without dots as a name, got 'a.b'"),
        ({"": nn.ReLU()}, "a text without dots as a name, got ''"),
        ({"items": nn.ReLU()}, "a name that is no method's, got 'items'"),
    ],
)
def test_a_module_dict_says_what_it_does_not_hold(parts, message):
    with pytest.raises(InputError, match=message):
        nn.ModuleDict(parts)


@pytest.mark.parametrize(
    "layer",
    [nn.Dropout(), nn.Dropout2d(), nn.GaussianNoise(0.1), nn.RReLU(), nn.Flatten()],
    ids=str,
)
def test_a_plain_array_will_do(layer):
    y = layer.to("cpu:autodiff")(np.ones((2, 3, 4), np.float32))
    assert np.size(y) == 24
    assert y.dtype == np.float32


def test_what_does_not_fit_is_reported_with_the_layers_name():
    x = Tensor(np.ones((2, 3), np.float32))
    with pytest.raises(InputError, match=r"Bilinear: a: expected .* got a list"):
        nn.Bilinear(3, 3, 2)([1.0], x)
    with pytest.raises(InputError, match=r"Bilinear: got \(2, 3\), list: "):
        nn.Bilinear(3, 3, 2)(x, [1.0])
    with pytest.raises(
        InputError, match=r"Unflatten: got \(2, 3\)|Unflatten: .*reshape"
    ):
        nn.Unflatten(1, (2, 2))(x)
    with pytest.raises(TypeError, match=r"^Bilinear: missing a required argument: 'b'"):
        nn.Bilinear(3, 3, 2)(x)


MESSAGES = [
    (
        nn.Conv2d(3, 8, 3),
        (1, 4, 8, 8),
        "Conv2d: x has 4 channels, but weight (8, 3, 3, 3) with groups=1 takes 3",
    ),
    (nn.BatchNorm2d(3), (1, 4, 8, 8), "BatchNorm2d: expected x with 3 channels"),
    (nn.LayerNorm(5), (2, 4), "LayerNorm: expected x with the last axes (5,)"),
    (nn.MaxPool2d(2), (8, 8), "MaxPool2d: expected x with the axes"),
    (nn.LSTM(3, 4), (5, 2, 7), "LSTM: expected x with 3 axes"),
    (nn.GroupNorm(2, 4), (1, 3), "GroupNorm: expected x with 4 channels in axis 1"),
    (nn.Softmax(3), (1, 3), "Softmax: axis: expected -2 to 1 for 2 axes, got 3"),
    (
        nn.LogSoftmax(-3),
        (1, 3),
        "LogSoftmax: axis: expected -2 to 1 for 2 axes, got -3",
    ),
    (nn.GLU(), (1, 3), "GLU: expected an even length of axis -1, got (1, 3)"),
    (nn.Flatten(3), (1, 3), "Flatten: axis: expected -2 to 1 for 2 axes, got 3"),
    (nn.Embedding(5, 3), (2,), "Embedding: expected ids of integers, got float32"),
    (nn.Linear(4, 3), (2, 5), "Linear: x (2, 5) has 5 features"),
    (nn.PReLU(3), (2, 4), "PReLU: expected x with 3 channels in axis 1"),
    (nn.Upsample((4, 4)), (2, 3, 4), "Upsample: interpolate: expected 1 numbers"),
    (nn.Unflatten(1, (2, 2)), (2, 5), "Unflatten: reshape: expected a shape of 10"),
    (
        nn.TransformerEncoderLayer(8, 2),
        (3, 2, 7),
        "TransformerEncoderLayer: MultiheadAttention: expected query, key and value "
        "(T, N, 8), (S, N, 8), (S, N, 8), got (3, 2, 7)",
    ),
]


@pytest.mark.parametrize(
    ("given", "kind"), [([1.0, 2.0], "list"), (None, "NoneType"), (1.5, "float")]
)
@pytest.mark.parametrize("layer", [nn.Linear(2, 3), nn.Conv1d(2, 3, 1), nn.Flatten()])
def test_what_is_no_array_is_reported(layer, given, kind):
    name = type(layer).__name__
    message = f"^{name}: x: expected a tensor or an array, got a {kind}$"
    with pytest.raises(InputError, match=message):
        layer(given)


def test_groups_divide_the_channels():
    with pytest.raises(InputError, match="a multiple of num_groups=2, got 3"):
        nn.GroupNorm(2, 3)


@pytest.mark.parametrize(("layer", "shape", "message"), MESSAGES)
def test_a_wrong_input_is_explained(layer, shape, message):
    with pytest.raises(InputError) as caught:
        layer(Tensor(np.ones(shape, np.float32)))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("layer", "widths"),
    [
        (nn.LSTM(3, 4), [3]),
        (nn.GRU(3, 4, bias=False), [3]),
        (nn.RNN(3, 4, bias=False), [3]),
        (nn.MultiheadAttention(3, 1, bias=False, vdim=3), [3, 3, 3]),
        (nn.MultiheadAttention(4, 1, kdim=3, vdim=2), [4, 3, 2]),
    ],
)
def test_a_call_asks_for_no_missing_attribute(layer, widths, monkeypatch):
    """Its error is slow: it looks for the name that was meant."""
    asked = []
    monkeypatch.setattr(type(layer), "__getattr__", lambda _, name: asked.append(name))
    layer(*(np.ones((5, 2, width), np.float32) for width in widths))
    assert asked == []


def test_one_value_for_a_channel_cannot_be_standardized():
    with pytest.raises(InputError, match="more than one value for each channel"):
        nn.BatchNorm1d(3).to("cpu:autodiff")(Tensor(np.ones((1, 3), np.float32)))


@pytest.mark.parametrize("bidirectional", [False, True])
def test_peepholes_are_those_of_the_operator(bidirectional):
    layer = nn.LSTM(3, 4, bidirectional=bidirectional, peepholes=True)
    x = Tensor(np.random.default_rng(0).normal(size=(5, 2, 3)).astype(np.float32))
    ends = ("_l0", "_l0_reverse")[: 2 if bidirectional else 1]
    gates = np.arange(16).reshape(4, 4)[[0, 3, 1, 2]].reshape(-1)

    def packed(name):
        found = [getattr(layer, f"{name}{end}").numpy() for end in ends]
        return np.stack([a if name == "peephole" else a[gates] for a in found])

    biases = [packed(f"bias_{name}") for name in ("ih", "hh")]
    y, h, c = ops.lstm(
        x,
        Tensor(packed("weight_ih")),
        Tensor(packed("weight_hh")),
        Tensor(np.concatenate(biases, axis=1)),
        peephole=Tensor(packed("peephole")),
        direction="bidirectional" if bidirectional else "forward",
    )
    got, (last, cell) = layer(x)
    wanted = y.numpy().transpose(0, 2, 1, 3).reshape(5, 2, -1)
    for one, other in ((got.numpy(), wanted), (last, h), (cell, c)):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_peepholes_learn():
    layer = nn.LSTM(3, 4, peepholes=True).to("cpu:autodiff")
    y, _ = layer(Tensor(np.ones((5, 2, 3), np.float32)).to("cpu:autodiff"))
    gradient = layer.peephole_l0.grad(y.sum().backward())
    assert np.all(gradient.numpy() != 0)
