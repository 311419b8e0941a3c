"""Transposed convolutions of few channels are convolutions of phases."""

import numpy as np
import pytest

from burnish import Tensor, nn, ops
from tests.runtime.plan.checks import check

RANDOM = np.random.default_rng(7)

LAYERS = {
    "one tap a phase": (nn.ConvTranspose2d(24, 1, 2, 2), (2, 24, 5, 9), 1),
    "kernels apart": (nn.ConvTranspose2d(5, 2, (4, 3), (2, 3)), (1, 5, 4, 6), 2),
    "padded": (nn.ConvTranspose1d(20, 3, 8, 4, padding=2), (3, 20, 11), 3),
    "padded on one side": (
        nn.ConvTranspose1d(3, 1, 9, 4, padding=3, output_padding=1),
        (2, 3, 7),
        3,
    ),
}
"""Each with the shape of its input, and the taps of a phase."""

NOT = {
    "many channels": (nn.ConvTranspose2d(24, 24, 2, 2), (2, 24, 5, 9)),
    "no whole stride": (nn.ConvTranspose1d(3, 1, 9, 4, padding=3), (2, 3, 7)),
    "dilated": (nn.ConvTranspose1d(3, 1, 4, 2, dilation=3), (2, 3, 7)),
}


def drawn(shape):
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize("is_added", [False, True])
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.usefixtures("canaries")
def test_phases_are_the_channels_of_one_convolution(name, is_added):
    layer, shape, taps = LAYERS[name]
    x = drawn(shape)
    args = (x, drawn(layer(x).shape)) if is_added else (x,)
    fast = check(lambda x, *other: ops.tanh(sum(other, layer(x))), *args)
    (found,) = [s for s in fast.planned(*args).steps if s.kind.startswith("conv")]
    outs = int(np.prod(layer.stride)) * layer.out_channels
    places = layer(x).size // outs
    assert found.flops == 2 * places * outs * layer.in_channels * taps


@pytest.mark.parametrize("name", NOT)
@pytest.mark.usefixtures("canaries")
def test_others_go_tap_by_tap(name):
    layer, shape = NOT[name]
    x = drawn(shape)
    fast = check(layer, x)
    (found,) = [s for s in fast.planned(x).steps if s.flops]
    taps = np.prod(layer.weight.shape[2:])
    assert found.flops == 2 * layer(x).size * layer.in_channels * taps
