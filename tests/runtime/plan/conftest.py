"""Plans need the library of kernels: where there is none there is nothing to test."""

import numpy as np
import pytest

from burnish.kernels import library
from burnish.kernels.direct import address
from burnish.plan import plan as plans
from burnish.plan.cpu import memory


@pytest.fixture(autouse=True)
def kernels():
    found = library()
    if found is None:
        pytest.skip("no C compiler here")
    return found


GAP = 256  # bytes before and behind every buffer


@pytest.fixture
def canaries(monkeypatch):
    """Buffers lie apart, all of the arena is NaN before, and the gaps still behind."""
    layouts, spaces = {}, []

    def apart(buffers):
        place, taken = GAP, []
        for buffer in buffers:
            buffer.place = place
            taken.append((place, buffer.size))
            place += -(-buffer.size // 64) * 64 + GAP
        layouts[place] = taken
        return place

    class Guarded(plans.Space):
        def __init__(self, arena, slots):
            super().__init__(arena, slots)
            self._arena[:] = 0xFF
            spaces.append((self, layouts[arena]))

    monkeypatch.setattr(memory, "_arranged", apart)
    monkeypatch.setattr(plans, "Space", Guarded)
    yield
    assert layouts
    assert spaces or not any(layouts.values()), "no plan with buffers has run"
    for space, taken in spaces:
        free = np.ones(len(space._arena), bool)
        start = int(space.pointers[memory.ARENA]) - address(space._arena)
        for place, size in taken:
            free[start + place : start + place + size] = False
        assert (space._arena[free] == 0xFF).all(), "a kernel wrote beside a buffer"
