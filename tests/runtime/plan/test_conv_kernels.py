"""Kernels of convolutions and pools against the plain operator in double precision."""

from __future__ import annotations

import pytest

from burnish import nn, ops
from tests.runtime.plan.checks import (
    TRIALS,
    Draw,
    check,
    conv_case,
    exact,
    records,
)

pytestmark = pytest.mark.usefixtures("canaries")


@pytest.mark.parametrize("seed", range(TRIALS))
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(rank, seed):
    d = Draw(seed)
    x, weight, bias, options = conv_case(d, rank, groups=seed % 3 == 2)
    constants = (weight,) if bias is None else (weight, bias)

    def function(x, weight, bias=None):
        return ops.relu(ops.conv(x, weight, bias, **options))

    exact(function, x, constants=constants)


@pytest.mark.parametrize("seed", range(TRIALS))
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_convolutions(rank, seed):
    d = Draw(seed)
    kernel = [d.number(1, 5 if rank < 3 else 3) for _ in range(rank)]
    stride = tuple(d.number(1, 4) for _ in range(rank))
    options = {
        "stride": stride,
        "dilation": tuple(d.number(1, 2) for _ in range(rank)),
        "padding": tuple((d.number(0, 1), d.number(0, 2)) for _ in range(rank)),
        "output_padding": tuple(d.number(0, s - 1) for s in stride),
        "groups": d.choice(1, 1, 2, 5),
    }
    groups = options["groups"]
    ins, outs = d.choice(1, 3, 16, 20), d.choice(1, 7, 16, 48)
    if groups == 5:
        ins, outs = d.choice((1, 1), (4, 4), (20, 20))
    x = d.tensor(d.number(1, 2), ins * groups, *(d.number(3, 7) for _ in range(rank)))
    weight = d.tensor(ins * groups, outs, *kernel)

    def function(x, weight, bias):
        return ops.relu(ops.conv_transpose(x, weight, bias, **options))

    exact(function, x, constants=(weight, d.tensor(outs * groups)))


@pytest.mark.parametrize("seed", range(TRIALS))
def test_convolutions_of_blocks_with_a_residual(seed):
    d = Draw(seed)
    x, weight, _, options = conv_case(d, 2)
    first = d.tensor(x.shape[1], x.shape[1], 1, 1)
    y = ops.conv(x, weight, **options)
    other = d.tensor(*y.shape)

    def function(x, other, first, weight):
        y = ops.conv(ops.conv(x, first), weight, **options)
        return ops.gelu(other + y)

    exact(function, x, other, constants=(first, weight))


@pytest.mark.parametrize("ins", [8, 16, 24, 32, 48, 80, 200, 240, 416])
@pytest.mark.parametrize("outs", [8, 16, 24, 41, 48, 64, 72, 96])
def test_convolutions_of_one_tap_over_blocks(ins, outs):
    """A tile goes from block to block, more than are summed at once, up to the end."""
    d = Draw(ins + outs)
    x = d.tensor(d.number(1, 2), ins, d.number(1, 9), d.number(1, 20))
    weight = d.tensor(outs, ins, 1, 1) / ins**0.5
    exact(
        lambda x, w, b: ops.tanh(ops.conv(x, w, b)),
        x,
        constants=(weight, d.tensor(outs)),
    )


SLICED = {
    "one tap": ((1, 1040, 7, 7), (40, 1040, 1, 1), 1),
    "a last block of 11 channels": ((1, 1003, 6, 5), (16, 1003, 1, 1), 1),
    "many tiles": ((1, 992, 18, 17), (32, 992, 1, 1), 1),
    "strides of one tap": ((2, 1000, 9, 8), (16, 1000, 1, 1), 2),
    "nine taps": ((1, 135, 7, 7), (35, 135, 3, 3), 1),
    "nine taps with strides": ((2, 128, 14, 13), (16, 128, 3, 3), 2),
    "a block of many taps": ((1, 32, 20, 20), (16, 32, 8, 8), 1),
}


@pytest.mark.parametrize("name", SLICED)
def test_weights_beyond_the_first_level_cache(name):
    """With vectors of 8 tiles sum slices of the channels; then comes a residual."""
    shape, kernel, stride = SLICED[name]
    d, padding = Draw(len(name)), kernel[2] // 2
    x, weight = d.tensor(*shape), d.tensor(*kernel) / kernel[1] ** 0.5
    options = {"stride": stride, "padding": padding}
    other = d.tensor(*ops.conv(x, weight, **options).shape)
    exact(
        lambda x, other, w, b: ops.gelu(other + ops.conv(x, w, b, **options)),
        *(x, other),
        constants=(weight, d.tensor(kernel[0])),
    )


STRIDED = {
    "two axes": ((2, 24, 9, 8), (72, 24, 1, 1), {"stride": 2}),
    "one axis": ((3, 16, 11), (64, 16, 1), {"stride": 3}),
    "three axes": ((1, 32, 5, 4, 3), (80, 32, 1, 1, 1), {"stride": (2, 1, 2)}),
    "groups": ((2, 32, 7, 6), (128, 16, 1, 1), {"stride": (1, 2), "groups": 2}),
    "beyond an edge": ((1, 16, 6, 6), (64, 16, 1, 1), {"stride": 2, "padding": 1}),
    "beyond the end": ((1, 16, 6), (64, 16, 1), {"stride": 4, "padding": ((0, 3),)}),
}


@pytest.mark.parametrize("name", STRIDED)
def test_one_tap_with_strides_reads_a_copy_of_its_pixels(name):
    shape, kernel, options = STRIDED[name]
    d = Draw(len(name))
    x, weight, bias = d.tensor(*shape), d.tensor(*kernel), d.tensor(kernel[0])
    other = d.tensor(*ops.conv(x, weight, **options).shape)
    exact(
        lambda x, other, w, b: ops.relu(other + ops.conv(x, w, b, **options)),
        *(x, other),
        constants=(weight, bias),
    )


@pytest.mark.parametrize("seed", range(TRIALS))
def test_depthwise_convolutions(seed):
    d = Draw(seed)
    rank = d.number(1, 3)
    x, weight, _, options = conv_case(d, rank)
    count = x.shape[1]
    weight = d.tensor(count, 1, *weight.shape[2:])
    act = d.choice(ops.relu6, ops.hard_swish, ops.sigmoid)

    def function(x, weight, bias):
        return act(ops.conv(x, weight, bias, groups=count, **options))

    exact(function, x, constants=(weight, d.tensor(count)))


@pytest.mark.parametrize("seed", range(TRIALS))
def test_pools(seed):
    d = Draw(seed)
    rank = d.number(1, 3)
    sizes = [d.number(6, 15) for _ in range(rank)]
    x = d.tensor(d.number(1, 3), d.choice(1, 16, 21), *sizes)
    kernel = tuple(d.number(1, 3) for _ in range(rank))
    stride = tuple(d.number(1, 3) for _ in range(rank))
    padding, ceil_mode = tuple(k // 2 for k in kernel), bool(d.number(0, 1))
    exact(
        lambda x: ops.max_pool(
            x, kernel_size=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode
        ),
        x,
    )
    exact(
        lambda x: ops.avg_pool(x, kernel_size=kernel, stride=stride, padding=padding), x
    )


@pytest.mark.parametrize("width", [1, 15, 16, 17, 31, 33])
@pytest.mark.parametrize("count", [3, 7, 16, 21])
def test_maps_to_blocks_and_back(count, width):
    """Rows that are no multiple of a vector's width."""
    d = Draw(count + width)
    weight = d.tensor(count, 1, 3, 3)

    def function(x, weight):
        return ops.conv(x, weight, padding=1, groups=count)

    exact(function, d.tensor(2, count, 1, width), constants=(weight,))


@pytest.mark.parametrize("counts", [(16, 32, 16), (16, 32, 5), (8, 3, 16)])
def test_joined_maps(counts):
    d = Draw(sum(counts))
    x = d.tensor(2, 3, 7, 6)
    weights = [d.tensor(n, 3, 1, 1) for n in counts]
    last = d.tensor(9, sum(counts), 3, 3)

    def function(x, last, *weights):
        maps = [ops.conv(x, w) for w in weights]
        return ops.conv(ops.concat(maps, axis=1), last), ops.relu(maps[0])

    fast = check(lambda x: function(x, last, *weights), x)
    assert records(fast)


class Times(nn.Module):
    def __init__(self):
        self.weight = nn.Param(nn.init.normal(), (64, 64))

    def forward(self, x):
        return x @ self.weight


class Steps(nn.Module):
    def __init__(self):
        self.rnn = nn.RNN(64, 64)

    def forward(self, x):
        return self.rnn(x)[0]


def once_and_twice(layer, x, **options):
    """The bytes of parameters in plans that call a layer once and twice."""
    found = []
    for times in (1, 2):

        def called(x, times=times):
            for _ in range(times):
                x = layer(x) * 0.5
            return x

        fast = check(called, x, **options)
        arrays = fast.planned(x).constants.values()
        found.append(sum(each.nbytes for each in arrays if each.nbytes >= 1 << 12))
    return found


@pytest.mark.parametrize(
    ("layer", "shape", "options"),
    [
        (nn.Linear(64, 64), (20, 64), {}),
        (Times(), (20, 64), {}),
        (nn.Conv2d(32, 32, 3, padding=1), (1, 32, 9, 9), {}),
        (nn.Conv2d(32, 32, 3, padding=1), (1, 32, 9, 9), {"tolerance": 1e-5}),
        (nn.Conv2d(128, 128, 3, padding=1, groups=128), (1, 128, 9, 9), {}),
        (Steps(), (5, 2, 64), {}),
    ],
)
def test_a_weight_that_steps_share_is_packed_once(layer, shape, options):
    once, twice = once_and_twice(layer, Draw(0).tensor(*shape), **options)
    assert once == twice > 0
