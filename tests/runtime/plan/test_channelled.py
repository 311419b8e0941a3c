"""Numbers for each channel behind a convolution become its weights; others stay."""

import numpy as np
import pytest

from burnish import Tensor, nn
from tests.runtime.plan.checks import check, same

pytestmark = pytest.mark.usefixtures("canaries")


def drawn(*shape):
    random = np.random.default_rng(len(shape))
    return random.uniform(0.5, 2, shape).astype(np.float32)


class Behind(nn.Module):
    """A layer, and what `tail` makes of its result and of a parameter."""

    def __init__(self, layer, shape, tail):
        self.layer, self.tail = layer, tail
        self.by = nn.Param(drawn(*shape))

    def forward(self, x):
        return self.tail(self.layer(x), self.by)


CONV, IMAGE = nn.Conv2d(5, 24, 3), (2, 5, 9, 26)
DEEP = nn.Conv2d(24, 24, 3, groups=24, bias=False)
LINE = nn.Conv1d(5, 7, 3, bias=False)
UP = nn.ConvTranspose2d(5, 24, 2, stride=2)


@pytest.mark.parametrize(
    ("layer", "size", "shape", "tail", "records"),
    [
        (CONV, IMAGE, (24, 1, 1), lambda y, s: y * s + s, "conv + mul + add"),
        (CONV, IMAGE, (1, 24, 1, 1), lambda y, s: (s + y).relu(), "conv + add + relu"),
        (DEEP, (2, 24, 9, 9), (24, 1, 1), lambda y, s: s * y + s, "conv + mul + add"),
        (LINE, (1, 5, 40), (7, 1), lambda y, s: y * s, "conv + mul"),
        (LINE, (1, 5, 40), (7, 1), lambda y, s: y + s, "conv + add"),
        (UP, (1, 5, 6, 6), (24, 1, 1), lambda y, s: y * s, "conv_transpose + mul"),
        (CONV, IMAGE, (24,), lambda y, s: y * s, "program: mul"),  # along the width
        (CONV, IMAGE, (2, 1, 1, 1), lambda y, s: y * s, "program: mul"),
        (CONV, IMAGE, (24, 1, 1), lambda y, s: (y * s, y), "program: mul"),
        (CONV, IMAGE, (24, 1, 1), lambda y, s: y.tanh() * s, "program: mul"),
        (CONV, IMAGE, (3, 1, 24, 1, 1), lambda y, s: y * s, "program: mul"),
    ],
)
def test_numbers_of_channels(layer, size, shape, tail, records):
    model = Behind(layer, shape, tail)
    x = Tensor(drawn(*size))
    fast = check(model, x)
    assert records in str(fast.plan(x)), fast.plan(x)
    model.by.assign(drawn(*shape) - 3)
    same(fast(x), model(x))
