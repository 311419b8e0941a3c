"""Convolution and pooling against torch's of the same name."""

import numpy as np
import pytest

from burnish import Tensor, nn
from tests.runtime.nn.oracle import DTYPES, check_gradients, compare, layer, pair

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
LINE, IMAGE, VOLUME = (2, 3, 9), (2, 3, 9, 8), (1, 2, 4, 5, 4)
MODES = ["reflect", "replicate", "circular"]

LAYERS = [
    layer("Conv1d", LINE, 3, 4, 3, stride=2, padding=1),
    layer("Conv1d", (3, 9), 3, 4, 3),
    layer("Conv2d", (2, 4, 8, 7), 4, 6, (3, 2), padding=(1, 0), groups=2),
    layer("Conv2d", (2, 4, 8, 7), 4, 8, 3, padding=1, groups=4, bias=False),
    layer("Conv2d", (2, 4, 8, 7), 4, 2, 4, padding="same"),
    layer("Conv2d", (2, 4, 8, 7), 4, 2, 3, padding="valid", dilation=2),
    layer("Conv2d", (4, 8, 7), 4, 2, 3),
    layer("Conv3d", (1, 2, 4, 5, 6), 2, 3, 2, stride=(1, 2, 2)),
    layer("Conv3d", (2, 4, 5, 6), 2, 3, 2, padding="same"),
    *(layer("Conv1d", LINE, 3, 4, 3, 2, 2, padding_mode=mode) for mode in MODES),
    *(
        layer("Conv2d", IMAGE, 3, 4, (3, 4), padding="same", padding_mode=mode)
        for mode in MODES
    ),
    *(
        layer("Conv3d", VOLUME, 2, 3, 2, padding=(1, 2, 1), padding_mode=mode)
        for mode in MODES
    ),
    layer("ConvTranspose1d", (2, 3, 5), 3, 4, 3, stride=2),
    layer("ConvTranspose1d", (3, 5), 3, 4, 3),
    layer("ConvTranspose2d", (2, 4, 5, 4), 4, 6, 3, 2, 1, 1, 2),
    layer("ConvTranspose2d", (2, 4, 5, 4), 4, 6, 3, 2).but({"output_size": (12, 9)}),
    layer("ConvTranspose2d", (4, 5, 4), 4, 6, 3, bias=False),
    layer("ConvTranspose3d", (1, 2, 2, 3, 2), 2, 3, 2, dilation=2),
    layer("MaxPool1d", LINE, 2),
    layer("MaxPool1d", (3, 9), 3, 2, 1, return_indices=True),
    layer("MaxPool2d", IMAGE, 3, 2, 1),
    layer("MaxPool2d", IMAGE, (2, 3), ceil_mode=True),
    layer("MaxPool2d", IMAGE, 2, dilation=2, stride=1, return_indices=True),
    layer("MaxPool2d", (3, 9, 8), 2, return_indices=True),
    layer("MaxPool3d", VOLUME, 2),
    layer("MaxPool3d", VOLUME, 2, 1, return_indices=True),
    layer("AvgPool1d", LINE, 3, 2, 1),
    layer("AvgPool1d", (3, 9), 3, 2, 1, True, False),
    layer("AvgPool2d", IMAGE, 3, 2, 1, ceil_mode=True),
    layer("AvgPool2d", IMAGE, 3, 2, 1, True, False),
    layer("AvgPool2d", IMAGE, 2, divisor_override=3),
    layer("AvgPool2d", (3, 9, 8), (2, 3)),
    layer("AvgPool3d", VOLUME, 2),
    layer("AvgPool3d", VOLUME, 3, 2, 1, True, False, 5),
    layer("LPPool1d", LINE, 2, 3),
    layer("LPPool1d", [np.linspace(0, 2, 27).reshape(3, 9)], 3.0, 2, 1),
    layer("LPPool2d", IMAGE, 2, (2, 3), ceil_mode=True),
    layer("LPPool2d", IMAGE, 1, 2, (1, 2)),
    layer("LPPool3d", VOLUME, 2, 2),
    layer("AdaptiveAvgPool1d", LINE, 4),
    layer("AdaptiveAvgPool2d", IMAGE, (4, None)),
    layer("AdaptiveAvgPool2d", (2, 3, 8, 8), 1),
    layer("AdaptiveAvgPool2d", (3, 9, 8), (4, 3)),
    layer("AdaptiveAvgPool3d", VOLUME, 3),
    layer("AdaptiveMaxPool1d", LINE, 4),
    layer("AdaptiveMaxPool2d", IMAGE, (4, None), return_indices=True),
    layer("AdaptiveMaxPool2d", (3, 9, 8), 3),
    layer("AdaptiveMaxPool3d", VOLUME, 3),
]
UNPOOLED = [
    ("MaxUnpool1d", (2, 3, 9), (2,), {}),
    ("MaxUnpool1d", (3, 9), (3, 2), {"output_size": (9,)}),
    ("MaxUnpool2d", (2, 3, 9, 8), (3, 2, 1), {"output_size": (2, 3, 9, 8)}),
    ("MaxUnpool2d", (2, 3, 8, 8), (2,), {}),
    ("MaxUnpool3d", (1, 2, 4, 6, 4), ((2, 3, 2),), {}),
]


@pytest.mark.filterwarnings("ignore:Using padding=.same.")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", LAYERS, ids=str)
def test_layer(row, dtype):
    row.check(dtype)


@pytest.mark.parametrize(("name", "shape", "args", "call"), UNPOOLED)
def test_unpooling_puts_the_maxima_back(name, shape, args, call):
    kind = getattr(torch.nn, name.replace("Unpool", "Pool"))
    pool = kind(*args, return_indices=True)
    values, indices = pool(torch.randn(shape, dtype=torch.float64))
    ours, theirs = pair(name, args, {})
    arrays = [values.numpy(), indices.numpy()]
    ours = ours.to("cpu:autodiff")
    check_gradients(ours, theirs, arrays, call, call, "float64")


def seen(x, offset, mask, weight, stride, padding, dilation, groups):
    """A deformable convolution by torch's grid_sample, one kernel place at a time."""
    n, c, *size = x.shape
    *_, kh, kw = weight.shape
    parts, shares = offset.shape[1] // (2 * kh * kw), []
    h, w = offset.shape[2:]
    offset = offset.reshape(n, parts, kh * kw, 2, h, w)
    for k in range(kh * kw):
        rows = torch.arange(h) * stride - padding + k // kw * dilation
        columns = torch.arange(w) * stride - padding + k % kw * dilation
        y = rows[:, None] + offset[:, :, k, 0]
        z = columns + offset[:, :, k, 1]
        grid = torch.stack([2 * z / (size[1] - 1) - 1, 2 * y / (size[0] - 1) - 1], -1)
        planes = x.reshape(n * parts, c // parts, *size)
        found = torch.nn.functional.grid_sample(
            planes, grid.reshape(n * parts, h, w, 2), align_corners=True
        ).reshape(n, parts, c // parts, h, w)
        if mask is not None:
            found = found * mask.reshape(n, parts, kh * kw, 1, h, w)[:, :, k]
        shares.append(found.reshape(n, c, h, w))
    each = torch.stack(shares, 2).reshape(n, groups, -1, h, w)
    rows = weight.reshape(groups, weight.shape[0] // groups, -1)
    return torch.einsum("gok,ngkhw->ngohw", rows, each).reshape(n, -1, h, w)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("groups", "parts", "options"),
    [
        (1, 1, {}),
        (2, 1, {"padding": 1, "stride": 2}),
        (1, 2, {"dilation": 2, "padding": 2}),
    ],
)
def test_deformable_convolution(groups, parts, options, masked):
    ours = nn.DeformConv2d(4, 6, 3, groups=groups, **options, dtype="float64")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 4, 7, 8))
    plain = {"stride": 1, "padding": 0, "dilation": 1} | options
    reach, step = 2 * plain["dilation"], plain["stride"]
    size = [(n + 2 * plain["padding"] - reach - 1) // step + 1 for n in (7, 8)]
    arrays = [x, rng.normal(size=(2, 18 * parts, *size)) * 2]
    if masked:
        arrays.append(rng.random((2, 9 * parts, *size)))
    leaves = [Tensor(a).require_grad() for a in arrays]
    given = [torch.tensor(a, requires_grad=True) for a in arrays]
    weight = torch.tensor(ours.weight.numpy(), requires_grad=True)
    mask = given[2] if masked else None
    want = seen(given[0], given[1], mask, weight, **plain, groups=groups)
    want = want + torch.tensor(ours.bias.numpy())[:, None, None]
    got = ours.to("cpu:autodiff")(*leaves)
    compare(got, want, "output")
    g = rng.normal(size=want.shape)
    want.backward(torch.tensor(g))
    gradients = got.backward(g)
    for leaf, other in zip(leaves, given, strict=True):
        compare(leaf.grad(gradients), other.grad, "gradient of an input")
    compare(ours.weight.grad(gradients), weight.grad, "gradient of the weight")
