"""Lines along any axis of a value, as kernels over rows read and write them."""

from __future__ import annotations

import math

from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import strides
from burnish.plan.graph import Value


class Lines:
    """Lines along `axis` of values of one shape; copies unless it is the last one."""

    def __init__(self, b: Builder, shape: tuple[int, ...], axis: int):
        self._b, self._shape = b, shape
        self._order = [a for a in range(len(shape)) if a != axis] + [axis]
        self.width = shape[axis]
        self.rows = math.prod(shape) // max(self.width, 1)
        self.are_rows = math.prod(shape[axis + 1 :]) == 1
        self._moved = tuple(shape[a] for a in self._order)

    def read(self, x: Value) -> Spot:
        """The place of a value's lines."""
        if self.are_rows:
            return self._b.spot(x)
        source, distances = self._b.strided(x)
        spot = self._b.new(4 * x.size)
        steps = [distances[a] for a in self._order]
        self._b.copy(self._moved, source, steps, spot, strides(self._moved))
        return spot

    def room(self, y: Value) -> Spot:
        """Where lines are to be written, before `leave`."""
        return self._b.result(y) if self.are_rows else self._b.new(4 * y.size)

    def leave(self, lines: Spot, y: Value) -> None:
        """Have the lines written to `room` as the value."""
        if self.are_rows:
            return
        dense = strides(self._shape)
        steps = tuple(dense[a] for a in self._order)
        out = self._b.result(y)
        self._b.copy(self._moved, lines, strides(self._moved), out, steps)
