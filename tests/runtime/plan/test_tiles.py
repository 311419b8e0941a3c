"""Products whose inputs or weights do not fit a cache: runs of rows, or groups."""

import numpy as np
import pytest

from burnish import Tensor, nn, ops
from burnish.kernels.library import library
from burnish.plan.cpu.convolution import conv
from burnish.plan.cpu.convolution.grouped import Groups, uneven
from burnish.plan.cpu.convolution.weights import fitting
from burnish.plan.cpu.products import first_level
from tests.runtime.plan.checks import check

RANDOM = np.random.default_rng(5)

LAYERS = {
    "rows": (nn.Linear(40, 70), (300, 40)),
    "rows in blocks": (nn.Linear(256, 50), (290, 256)),
    "more rows than outputs": (nn.Linear(24, 33), (3, 250, 24)),
    "maps": (nn.Conv2d(20, 96, 3, padding=1), (3, 20, 17, 19)),
    "maps of stride 2": (nn.Conv2d(16, 40, 3, 2), (2, 16, 33, 31)),
    "groups": (nn.Conv2d(32, 64, 1, groups=2), (2, 32, 18, 20)),
}


@pytest.mark.parametrize("second", [0, 1 << 30], ids=["runs", "groups"])
@pytest.mark.parametrize("cache", [1, 1 << 12, 1 << 30])
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.usefixtures("canaries")
def test_any_order_of_tiles_gives_the_same(name, cache, second, monkeypatch):
    monkeypatch.setattr(conv, "_CACHE", cache)
    monkeypatch.setattr(conv, "_MORE", cache)
    monkeypatch.setattr(conv, "_SECOND", second)
    layer, shape = LAYERS[name]
    x = Tensor(RANDOM.standard_normal(shape).astype(np.float32))
    fast = check(lambda x: ops.gelu(layer(x)), x)
    by_group = {s.fields["by_group"] for s in fast.planned(x).steps if s.kind == "conv"}
    assert by_group <= {False} if second == 0 else by_group


@pytest.mark.parametrize(
    ("ways", "rows", "places", "sums", "blocks"),
    [
        (12, [0, 14, 14, 9, 6], 1000, 64, 4),  # four blocks take the fewest loads
        (12, [0, 14, 14, 9, 6], 1000, 2304, 2),  # of which weights leave the cache
        (12, [0, 14, 14, 9, 6], 8, 64, 2),  # and are read too seldom here
        (8, [0, 14, 14, 9, 6], 1000, 64, 2),  # where they are one at a time
        (12, [0, 6, 3, 0, 1], 1000, 64, 1),  # with 16 registers
        (12, [0, 6, 3, 0, 1], 49, 512, 1),  # of 5 and 6 places
        (12, [0, 6, 3, 0, 1], 3, 512, 2),  # of which one block has too few products
    ],
)
def test_tiles_have_as_many_blocks_as_loads_allow(
    ways, rows, places, sums, blocks, monkeypatch
):
    monkeypatch.setattr(first_level, "ways", lambda: ways)
    assert fitting(rows, 4, places, sums) == blocks


@pytest.mark.parametrize("outs", [72, 80, 112], ids=str)
@pytest.mark.usefixtures("canaries")
def test_blocks_that_no_tile_divides_are_two_records(outs):
    layer = nn.Conv2d(32, outs, 1)
    x = Tensor(RANDOM.standard_normal((2, 32, 9, 11)).astype(np.float32))
    more = Tensor(RANDOM.standard_normal((2, outs, 9, 11)).astype(np.float32))
    fast = check(lambda x, more: ops.relu(layer(x) + more), x, more)
    kinds = [s.kind for s in fast.planned(x, more).steps]
    parts = uneven(library().rows, Groups(1, 32, outs), 2 * 9 * 11)
    assert kinds.count("conv") == len(parts or [None])


def test_blocks_are_parted_where_tiles_have_three_and_places_are_many():
    def sizes(rows, outs, places):
        parts = uneven(rows, Groups(1, 8, outs), places)
        return parts and [len(part.outs) for part in parts]

    wide, narrow = [0, 14, 14, 9, 6], [0, 6, 3, 0, 1]
    assert sizes(wide, 72, 100) == [32, 40]
    assert sizes(wide, 112, 100) == [64, 48]
    assert sizes(wide, 96, 100) is sizes(wide, 48, 100) is None
    assert sizes(wide, 80, 20) is sizes(narrow, 80, 100) is None
