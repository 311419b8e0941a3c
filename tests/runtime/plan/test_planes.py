"""Convolutions of few channels, which read maps where they lie."""

import numpy as np
import pytest

from burnish import Tensor, nn, ops
from burnish.plan.cpu.convolution import planes
from tests.runtime.plan.checks import check

RANDOM = np.random.default_rng(5)

FEW = {
    "one channel": (nn.Conv2d(1, 16, 3), (2, 1, 12, 11)),
    "stride 2": (nn.Conv2d(3, 32, 3, 2, 1), (2, 3, 33, 34)),
    "a stem": (nn.Conv2d(3, 64, 7, 2, 3), (1, 3, 40, 37)),
    "three blocks": (nn.Conv2d(3, 48, 3, padding=1), (1, 3, 9, 20)),
    "a part of a block": (nn.Conv2d(3, 21, 5, padding=2), (2, 3, 9, 31)),
    "more padding than kernel": (nn.Conv2d(2, 16, 2, padding=5), (1, 2, 4, 5)),
    "all taps of a row outside": (nn.Conv2d(2, 16, 3, 1, 4), (1, 2, 3, 3)),
    "stride beyond the kernel": (nn.Conv2d(3, 16, 2, 3), (1, 3, 26, 29)),
    "stride 4, dilated": (nn.Conv2d(3, 16, 3, 4, 1, dilation=3), (1, 3, 40, 45)),
    "patches": (nn.Conv2d(3, 40, 16, 16), (2, 3, 48, 160)),
    "wide patches": (nn.Conv2d(2, 16, 20, 20), (1, 2, 40, 170)),
    "patches that overlap": (nn.Conv2d(3, 16, 20, 17), (1, 3, 40, 160)),
    "padded patches": (nn.Conv2d(3, 16, 16, 16, 8), (1, 3, 40, 140)),
    "many products": (nn.Conv2d(15, 32, 9, padding=4), (1, 15, 10, 9)),
    "uneven": (nn.Conv2d(4, 80, (1, 4), (3, 1), (2, 1)), (2, 4, 8, 10)),
    "signals": (nn.Conv1d(2, 64, 10, 5), (2, 2, 500)),
    "signals, padded": (nn.Conv1d(7, 16, 3, padding=1), (3, 7, 17)),
    "rows of eight": (nn.Conv2d(3, 16, 3), (1, 3, 20, 10)),
    "no bias": (nn.Conv1d(2, 16, 33, bias=False), (1, 2, 60)),
}
"""Each with the shape of its input."""

OTHERS = {
    "blocks of channels": (nn.Conv2d(16, 16, 3), (1, 16, 12, 12)),
    "groups": (nn.Conv2d(4, 32, 3, groups=2), (1, 4, 12, 12)),
    "rows of a few results": (nn.Conv2d(3, 16, 3), (1, 3, 20, 6)),
    "one signal": (nn.Conv1d(1, 16, 10, 5), (2, 1, 100)),
    "volumes": (nn.Conv3d(3, 16, 3), (1, 3, 5, 6, 12)),
}


def drawn(shape):
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


def kinds(fast, *args):
    return [step.kind for step in fast.planned(*args).steps]


@pytest.mark.parametrize("room", [0, 1 << 12, None])
@pytest.mark.parametrize("activation", [ops.relu, ops.swish])
@pytest.mark.parametrize("name", FEW)
@pytest.mark.usefixtures("canaries")
def test_few_channels_are_read_from_planes(name, activation, room, monkeypatch):
    if room is not None:
        monkeypatch.setattr(planes, "_ROOM", room)
    layer, shape = FEW[name]
    x = drawn(shape)
    fast = check(lambda x: activation(layer(x)), x)
    assert kinds(fast, x)[0] == "conv_planes"


@pytest.mark.parametrize("name", ["stride 2", "patches", "more padding than kernel"])
@pytest.mark.usefixtures("canaries")
def test_maps_whose_channels_are_last_are_not_copied(name):
    layer, (count, channels, *sizes) = FEW[name]
    x = drawn((count, *sizes, channels))
    fast = check(lambda x: ops.relu(layer(x.transpose((0, 3, 1, 2)))), x)
    assert kinds(fast, x)[0] == "conv_planes"


@pytest.mark.usefixtures("canaries")
def test_a_part_of_a_map_that_goes_backwards_is_not_copied():
    layer, x = nn.Conv2d(3, 16, 3), drawn((2, 5, 12, 20))
    fast = check(lambda x: layer(ops.flip(x[:, 1:4, 2:], 1)), x)
    assert "conv_planes" in kinds(fast, x)


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_tiles_of_blocks_or_of_rows(name):
    layer, shape = OTHERS[name]
    x = drawn(shape)
    assert "conv_planes" not in kinds(check(layer, x), x)


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_windows(special):
    layer = nn.Conv2d(1, 16, 3, padding=1)
    x = np.zeros((1, 1, 9, 9), np.float32)
    x[0, 0, 4, 4] = special
    y = check(layer, Tensor(x))(Tensor(x)).numpy()
    assert np.isfinite(y).sum() == 16 * 72


@pytest.mark.parametrize(
    ("rows", "count", "columns", "sums", "blocks"),
    [
        ([0, 14, 14, 9, 6], 4, 112, 147, 4),  # four blocks take the fewest loads
        ([0, 14, 14, 9, 6], 2, 112, 27, 2),
        ([0, 14, 14, 9, 6], 3, 112, 27, 3),
        ([0, 6, 3, 0, 1], 4, 112, 147, 1),  # with 16 registers
    ],
)
def test_tiles_have_as_many_blocks_as_loads_allow(rows, count, columns, sums, blocks):
    assert planes._blocks_of_tile(rows, count, columns, sums) == blocks
