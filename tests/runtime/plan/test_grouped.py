"""Grouped convolutions as dense ones: which parts there are."""

import pytest

from burnish.plan.cpu.convolution.grouped import Groups, is_split_faster, merged, split


@pytest.mark.parametrize(
    ("groups", "wide", "pays"),
    [
        (Groups(32, 4, 4), Groups(8, 16, 16), False),
        (Groups(2, 32, 48), Groups(2, 32, 48), False),
        (Groups(4, 24, 24), Groups(2, 48, 48), False),
        (Groups(3, 5, 7), Groups(1, 15, 21), False),
        (Groups(4, 68, 68), Groups(1, 272, 272), True),
        (Groups(3, 34, 16), Groups(1, 102, 48), True),
    ],
)
def test_groups(groups, wide, pays):
    assert merged(groups) == wide
    assert is_split_faster(groups) is pays
    channels = [channel for part in split(groups) for channel in part.outs]
    assert channels == list(range(groups.number * groups.outs))
    for part in split(groups):
        needed = {c // groups.outs * groups.ins for c in part.outs}
        assert part.ins.start % 16 == part.outs.start % 16 == 0
        assert all(low in part.ins for low in needed)
        assert all(low + groups.ins - 1 in part.ins for low in needed)
