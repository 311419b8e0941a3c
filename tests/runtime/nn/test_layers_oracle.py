"""Layers against torch's of the same name: outputs, gradients, parameter names."""

import numpy as np
import pytest

from burnish import Device, Tensor, nn
from tests.runtime.nn.oracle import DTYPES, compare, layer, pair

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
IMAGE, VOLUME = (2, 3, 6, 7), (1, 2, 4, 5, 4)
IDS = np.array([[0, 2, 2], [4, 0, 1]])

LAYERS = [
    layer("Linear", (2, 3, 5), 5, 4),
    layer("Linear", (2, 5), 5, 4, bias=False),
    layer("Linear", (5,), 5, 4),
    layer("Linear", (0, 5), 5, 4),
    layer("Linear", (2, 3), 3, 0),
    layer("Linear", (2, 0), 0, 3),
    layer("Bilinear", [(2, 4, 3), (2, 4, 5)], 3, 5, 6),
    layer("Bilinear", [(2, 3), (2, 5)], 3, 5, 6, bias=False),
    layer("Embedding", [IDS], 5, 3),
    layer("Embedding", [IDS], 5, 3, padding_idx=2),
    layer("Embedding", [IDS], 5, 3, padding_idx=-1),
    layer("Embedding", [IDS], 5, 3, max_norm=0.5),
    layer("Embedding", [IDS], 5, 3, max_norm=1.0, norm_type=1.0),
    layer("Embedding", [IDS], 5, 3, scale_grad_by_freq=True),
    layer("EmbeddingBag", [IDS], 5, 3),
    layer("EmbeddingBag", [IDS], 5, 3, mode="sum", padding_idx=2),
    layer("EmbeddingBag", [IDS], 5, 3, mode="mean", padding_idx=2, max_norm=0.7),
    layer("EmbeddingBag", [IDS], 5, 3, mode="max"),
    layer("EmbeddingBag", [IDS], 5, 3, mode="max", padding_idx=0),
    layer("EmbeddingBag", [IDS.ravel(), np.array([0, 1, 1, 4])], 5, 3),
    layer("EmbeddingBag", [IDS.ravel(), np.array([0, 4])], 5, 3, mode="max"),
    layer(
        "EmbeddingBag",
        [IDS.ravel(), np.array([0, 4, 4, 6])],
        5,
        3,
        mode="sum",
        include_last_offset=True,
    ),
    layer("EmbeddingBag", [IDS], 5, 3, mode="sum").but(
        {"per_sample_weights": np.linspace(-1, 1, 6).reshape(2, 3)}
    ),
    layer("CosineSimilarity", [(3, 4), (3, 4)]),
    layer("CosineSimilarity", [(3, 4), (1, 4)], dim=0),
    layer("CosineSimilarity", [(3, 4, 2), (3, 1, 2)], dim=-1, eps=0.5),
    layer("CosineSimilarity", [np.zeros((2, 3)), (2, 3)]),
    layer("PairwiseDistance", [(3, 4), (3, 4)]),
    layer("PairwiseDistance", [(3, 4), (1, 4)], p=1.0, keepdim=True),
    layer("PairwiseDistance", [(4,), (4,)], p=3.0, eps=1e-3),
    layer("PairwiseDistance", [(3, 4), (3, 4)], p=float("inf")),
    layer("Flatten", (2, 3, 4)),
    layer("Flatten", [np.array(1.5)], 0),
    layer("Flatten", (2, 3, 4), 0, 1),
    layer("Unflatten", (2, 12), 1, (3, 4)),
    layer("Unflatten", (2, 12, 2), -2, (3, -1)),
    layer("Identity", (2, 3)),
    layer("Dropout", (2, 3), 0.0),
    layer("Dropout1d", (2, 3), 1.0),
    layer("Dropout2d", (2, 3, 4, 2), 1.0),
    layer("Dropout3d", (3, 2, 2, 2), 1.0),
    layer("AlphaDropout", (2, 3), 0.0),
    layer("AlphaDropout", (2, 3), 1.0),
    layer("FeatureAlphaDropout", (2, 3, 4), 0.0),
    layer("ZeroPad1d", (2, 3, 5), 2),
    layer("ZeroPad2d", (2, 3, 5), (1, 0, 2, 3)),
    layer("ZeroPad2d", IMAGE, (-1, 2, 0, -2)),
    layer("ZeroPad3d", VOLUME, 1),
    layer("ConstantPad1d", (3, 5), (1, 2), 0.5),
    layer("ConstantPad2d", IMAGE, 1, -2.0),
    layer("ConstantPad3d", VOLUME, (1, 0, 0, 2, 1, 1), 3.0),
    layer("ReflectionPad1d", (2, 3, 5), (4, 1)),
    layer("ReflectionPad2d", IMAGE, (1, 2, 3, 0)),
    layer("ReflectionPad3d", VOLUME, 1),
    layer("ReplicationPad1d", (2, 3, 5), 7),
    layer("ReplicationPad2d", IMAGE, (1, 2, 3, 0)),
    layer("ReplicationPad3d", VOLUME, (1, 0, 2, 1, 0, 3)),
    layer("CircularPad1d", (2, 3, 5), (5, 1)),
    layer("CircularPad2d", IMAGE, (1, 2, 3, 0)),
    layer("CircularPad1d", (2, 3, 5), (-1, 2)),
    layer("CircularPad2d", IMAGE, (2, -1, -2, 1)),
    layer("CircularPad3d", VOLUME, 2),
    layer("PixelShuffle", (2, 8, 3, 2), 2),
    layer("PixelShuffle", (2, 1, 9, 3, 2), 3),
    layer("PixelShuffle", (4, 3, 2), 2),
    layer("PixelUnshuffle", (2, 3, 4, 6), 2),
    layer("PixelUnshuffle", (3, 9, 6), 3),
    layer("ChannelShuffle", (2, 6, 3, 2), 3),
    layer("ChannelShuffle", (2, 6, 5), 2),
    layer("Unfold", IMAGE, (2, 3)),
    layer("Unfold", IMAGE, 2, dilation=2, padding=1, stride=(2, 1)),
    layer("Unfold", (3, 6, 7), 3, 1, 1, 2),
    layer("Fold", (2, 12, 20), (5, 6), 2),
    layer("Fold", (2, 6, 6), (4, 5), (2, 3), padding=(1, 0), stride=(2, 2)),
    layer("Fold", (12, 15), 5, 2, dilation=2, padding=1, stride=(2, 1)),
    layer("Upsample", IMAGE, 4),
    layer("Upsample", IMAGE, scale_factor=1.7),
    layer("Upsample", IMAGE, scale_factor=(2, 1.5), mode="nearest-exact"),
    layer("Upsample", (2, 3, 5), 8, mode="linear"),
    layer("Upsample", (2, 3, 5), scale_factor=2.3, mode="linear", align_corners=True),
    layer("Upsample", IMAGE, (9, 4), mode="bilinear"),
    layer("Upsample", IMAGE, scale_factor=1.6, mode="bilinear"),
    layer("Upsample", (0, 2, 3, 4), scale_factor=2, mode="bilinear"),
    layer("Upsample", IMAGE, None, 1.6, "bilinear", None, True),
    layer("Upsample", IMAGE, (3, 11), mode="bicubic"),
    layer("Upsample", IMAGE, (3, 11), mode="bicubic", align_corners=True),
    layer("Upsample", VOLUME, (3, 7, 5), mode="trilinear"),
    layer("Upsample", VOLUME, scale_factor=2, mode="trilinear", align_corners=True),
    layer("Upsample", IMAGE, (4, 3), mode="area"),
    layer("UpsamplingNearest2d", IMAGE, scale_factor=2),
    layer("UpsamplingNearest2d", IMAGE, (4, 9)),
    layer("UpsamplingBilinear2d", IMAGE, scale_factor=2),
    layer("UpsamplingBilinear2d", IMAGE, (4, 9)),
]


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", LAYERS, ids=str)
def test_layer(row, dtype):
    if row.call:
        row = row.but({k: v.astype(dtype) for k, v in row.call.items()})
    row.check(dtype)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("size", [(3, 4), (13, 4), (12, 15)])
def test_antialias(mode, size):
    x = np.random.default_rng(0).normal(size=(2, 3, 11, 9))
    leaf, given = Tensor(x).require_grad(), torch.tensor(x, requires_grad=True)
    got = nn.Upsample(size, mode=mode, antialias=True)(leaf)
    want = torch.nn.functional.interpolate(given, size, mode=mode, antialias=True)
    compare(got, want, "output")
    g = np.random.default_rng(1).normal(size=want.shape)
    want.backward(torch.tensor(g))
    compare(leaf.grad(got.backward(g)), given.grad, "gradient")


@pytest.mark.parametrize(
    ("name", "args", "param"),
    [
        ("Linear", (64, 256), "weight"),
        ("Linear", (64, 256), "bias"),
        ("Bilinear", (16, 64, 32), "weight"),
        ("Bilinear", (16, 64, 32), "bias"),
        ("Conv2d", (16, 64, 3), "weight"),
        ("Conv2d", (16, 64, 3), "bias"),
        ("ConvTranspose2d", (16, 64, 3), "weight"),
        ("ConvTranspose2d", (16, 64, 3), "bias"),
        ("Embedding", (100, 64), "weight"),
        ("EmbeddingBag", (100, 64), "weight"),
        ("LSTM", (16, 32), "weight_hh_l0"),
        ("GRUCell", (16, 64), "weight_ih"),
        ("MultiheadAttention", (64, 4), "in_proj_weight"),
    ],
)
def test_initial_values_are_drawn_as_torch_draws_them(name, args, param):
    mine = getattr(getattr(nn, name)(*args), param).numpy()
    its = getattr(getattr(torch.nn, name)(*args), param).detach().numpy()
    assert mine.shape == its.shape
    assert mine.dtype == its.dtype
    np.testing.assert_allclose(mine.std(), its.std(), rtol=0.25)
    if not name.startswith("Embedding"):
        np.testing.assert_allclose(abs(mine).max(), abs(its).max(), rtol=0.1)


def test_autodiff_is_what_makes_a_module_train():
    assert not nn.Dropout().training
    assert nn.Dropout().to(Device("cpu").autodiff()).training


def test_rows_that_were_shortened_stay_short():
    ours, theirs = pair("Embedding", (5, 3), {"max_norm": 0.5})
    ours(Tensor(IDS[0])), theirs(torch.tensor(IDS[0]))
    compare(ours.weight, theirs.weight, "weight")
