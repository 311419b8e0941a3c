"""Convolutions and products of a few outputs: vectors go along the inputs."""

import numpy as np
import pytest

from burnish import Tensor, nn, ops, seed
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.products import first_level
from tests.runtime.plan.checks import check

seed(0)  # one output may be a difference of large numbers

NARROW = {
    "one output": (nn.Conv2d(64, 1, 3, padding=1), (1, 64, 9, 11)),
    "two, a batch": (nn.Conv2d(32, 2, 3, padding=1), (3, 32, 7, 5)),
    "three, strided": (nn.Conv2d(20, 3, 5, stride=2, padding=2), (2, 20, 13, 10)),
    "four, dilated": (nn.Conv2d(48, 4, 3, dilation=2), (1, 48, 9, 9)),
    "seven": (nn.Conv2d(130, 7, 3), (2, 130, 6, 6)),
    "few inputs": (nn.Conv2d(3, 1, 9, padding=4), (2, 3, 12, 20)),
    "one input": (nn.Conv1d(1, 1, 33), (2, 1, 60)),
    "no bias": (nn.Conv1d(40, 1, 7, bias=False), (2, 40, 31)),
    "pointwise": (nn.Conv2d(256, 1, 1), (2, 256, 5, 5)),
    "volumes": (nn.Conv3d(17, 2, 3, padding=1), (1, 17, 4, 5, 6)),
    "transposed": (nn.ConvTranspose2d(33, 1, 3, 2), (2, 33, 5, 4)),
    "transposed, of signals": (nn.ConvTranspose1d(64, 2, 6, 3, 1), (2, 64, 9)),
    "a product": (nn.Linear(100, 1), (37, 100)),
    "of three axes": (nn.Linear(70, 3, bias=False), (2, 9, 70)),
    "of seven": (nn.Linear(256, 7), (3, 256)),
    "of one row": (nn.Linear(64, 1), (64,)),
    "of ten": (nn.Linear(10, 1), (33, 10)),
}
"""Each with the shape of its input."""

WIDE = {
    "a block": (nn.Conv2d(64, 16, 3), (1, 64, 5, 5)),
    "few products": (nn.Conv2d(16, 4, 1), (1, 16, 5, 5)),
    "groups": (nn.Conv2d(64, 2, 3, groups=2), (1, 64, 5, 5)),
    "a product": (nn.Linear(64, 10), (20, 64)),
    "few inputs for four": (nn.Linear(16, 4), (20, 16)),
}


def drawn(shape):
    random = np.random.default_rng(5)  # the same whatever ran before
    return Tensor(random.standard_normal(shape).astype(np.float32))


def kinds(fast, *args):
    return [step.kind for step in fast.planned(*args).steps]


@pytest.mark.parametrize("is_added", [False, True])
@pytest.mark.parametrize("activation", [ops.relu, ops.sigmoid])
@pytest.mark.parametrize("name", NARROW)
@pytest.mark.usefixtures("canaries")
def test_few_outputs_go_along_the_inputs(name, activation, is_added):
    layer, shape = NARROW[name]
    x = drawn(shape)
    args = (x, drawn(layer(x).shape)) if is_added else (x,)
    fast = check(lambda x, *other: activation(sum(other, layer(x))), *args)
    assert {"narrow", "conv"}.intersection(kinds(fast, *args)) == {"narrow"}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.usefixtures("canaries")
def test_others_are_in_blocks_of_outputs(name):
    layer, shape = WIDE[name]
    x = drawn(shape)
    assert "narrow" not in kinds(check(layer, x), x)


@pytest.mark.parametrize(
    ("ways", "has_row_tiles"), [(8, False), (8, True), (12, False)]
)
@pytest.mark.usefixtures("canaries")
def test_rows_of_products_are_plain_or_in_blocks(ways, has_row_tiles, monkeypatch):
    monkeypatch.setattr(first_level, "ways", lambda: ways)
    monkeypatch.setattr(Builder, "has_row_tiles", has_row_tiles)
    layer, x = nn.Linear(512, 2), drawn((70, 512))
    copied = ["copy"] * (ways == 8 and not has_row_tiles)
    assert kinds(check(layer, x), x) == [*copied, "narrow"]


@pytest.mark.usefixtures("canaries")
def test_what_lies_behind_the_last_channel_is_not_read():
    """Lanes behind the 20th channel of a block are anything, NaN too."""
    first, last = nn.Conv2d(4, 20, 1), nn.Conv2d(20, 1, 3)
    x = drawn((1, 4, 8, 8))
    fast = check(lambda x: last(first(x).exp()), x)
    assert kinds(fast, x)[-1] == "narrow"


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_windows(special):
    layer = nn.Conv2d(64, 1, 3, padding=1)
    x = np.zeros((1, 64, 9, 9), np.float32)
    x[0, 5, 4, 4] = special
    y = check(layer, Tensor(x))(Tensor(x)).numpy()
    assert np.isfinite(y).sum() == 72
