"""Normalisation against torch's of the same name."""

import numpy as np
import pytest

from burnish import Tensor
from tests.runtime.nn.oracle import DTYPES, compare, layer, pair

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
LINE, IMAGE, VOLUME = (4, 3, 5), (4, 3, 5, 2), (2, 3, 2, 2, 3)
TRACKED = {"track_running_stats": True}

LAYERS = [
    layer("BatchNorm1d", (6, 3), 3),
    layer("BatchNorm1d", LINE, 3, affine=False),
    layer("BatchNorm1d", LINE, 3, bias=False),
    layer("BatchNorm2d", IMAGE, 3, momentum=None, eps=1e-3),
    layer("BatchNorm2d", IMAGE, 3, track_running_stats=False),
    layer("BatchNorm2d", IMAGE, 3, affine=False, track_running_stats=False),
    layer("BatchNorm3d", VOLUME, 3, momentum=0.3),
    layer("InstanceNorm1d", LINE, 3),
    layer("InstanceNorm1d", (3, 5), 3, affine=True),
    layer("InstanceNorm2d", IMAGE, 3, affine=True),
    layer("InstanceNorm2d", IMAGE, 3, affine=True, bias=False, **TRACKED),
    layer("InstanceNorm2d", (3, 5, 2), 3, **TRACKED),
    layer("InstanceNorm3d", VOLUME, 3, **TRACKED),
    layer("InstanceNorm3d", VOLUME, 3, momentum=0.4, affine=True, **TRACKED),
    layer("LayerNorm", (2, 3, 4), 4),
    layer("LayerNorm", (2, 3, 4), (3, 4), bias=False),
    layer("LayerNorm", (2, 3, 4), (3, 4), elementwise_affine=False),
    layer("RMSNorm", (2, 3, 4), 4),
    layer("RMSNorm", (2, 3, 4), (3, 4), eps=1e-3),
    layer("RMSNorm", (2, 3, 4), 4, elementwise_affine=False),
    layer("GroupNorm", (2, 6, 3, 2), 3, 6),
    layer("GroupNorm", (2, 6, 5), 2, 6, affine=False),
    layer("GroupNorm", (2, 6), 2, 6, bias=False),
    layer("LocalResponseNorm", (2, 7, 3), 3),
    layer("LocalResponseNorm", (2, 7, 3, 2), 4, alpha=0.5, beta=0.6, k=2.0),
    layer("LocalResponseNorm", (1, 3, 2, 2, 3), 5, 0.1),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", LAYERS, ids=str)
def test_layer(row, dtype):
    row.check(dtype)


@pytest.mark.parametrize("name", ["BatchNorm2d", "InstanceNorm2d"])
@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics_after_several_steps(name, momentum):
    ours, theirs = pair(name, (3,), {"momentum": momentum, **TRACKED})
    ours = ours.to("cpu:autodiff")
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = rng.normal(2, 3, (4, 3, 2, 5))
        compare(ours(Tensor(x)), theirs(torch.tensor(x)), "output")
    for path, buffer in theirs.named_buffers():
        compare(dict(ours.named_buffers())[path], buffer, path)
    x = rng.normal(size=(1, 3, 2, 2))
    compare(ours.valid()(Tensor(x)), theirs.eval()(torch.tensor(x)), "inference")
