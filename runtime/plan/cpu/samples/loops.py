"""Stretches of nodes that run once for each sample of a batch, one after the other.

The maps of a large batch come from memory in every step, those of one sample stay in
cache from one step to the next. Records are written once, for the first sample; the
other samples have copies that read and write further along the batch's arrays. What is
between belongs to one sample, in the same place for all.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from burnish.plan.cpu.buffers import Buffer, Operands, Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES, PLAIN, Layout, blocks, pixels
from burnish.plan.cpu.table import LOWERED, Declined, need
from burnish.plan.graph import Node, Value
from burnish.plan.samples import OneSample, read_by


def lower_by_sample(b: Builder, nodes: list[Node], outside: set[int]) -> bool:
    """Write the records of a stretch of nodes; False where a node has none.

    outside: the places of the values that are asked for behind the stretch.
    """
    before = len(b.steps), len(b.buffers), len(b.faults)
    try:
        _Stretch(b, nodes, outside).lower()
    except Declined:
        b.take_back(*before)
        return False
    return True


class _Stretch:
    """shifts: by the identity of an array of the batch, the bytes of a sample."""

    def __init__(self, b: Builder, nodes: list[Node], outside: set[int]):
        self._b, self._nodes, self._outside = b, nodes, outside
        self._batch = nodes[0].result.shape[0]
        self._one = OneSample(b.unnamed_value)
        self._shifts: dict[int, tuple[Buffer, int]] = {}

    def lower(self) -> None:
        b, label = self._b, self._b.label
        made = {value.place for node in self._nodes for value in node.results}
        read = [value for node in self._nodes for value in read_by(node)]
        given = {value.place: value for value in read if value.place not in made}
        ones = [self._one.node(node) for node in self._nodes]
        for node in ones:
            for place in node.reads:
                b.readers.setdefault(place, []).append(node)
        for whole in given.values():
            need(b.knows(whole.place), "it comes from a step without a kernel")
            if not self._is_in_blocks(whole):
                b.spot(whole)  # for the whole batch, before the first sample
        first = len(b.steps)
        for whole in given.values():
            self._enter(whole)
        for node in ones:
            b.label = node.label
            LOWERED[node.name](b, node)
        for node in self._nodes:
            for value in node.results:
                if value.place in self._outside:
                    self._leave(value)
        b.label = label
        self._repeat(first)

    def _is_in_blocks(self, value: Value) -> bool:
        b = self._b
        return bool(b.blocked_axis(value)) and not b.has(value, PLAIN)

    def _enter(self, whole: Value) -> None:
        """Let a value of one sample be where the batch's first one is, or a copy."""
        b, one = self._b, self._one.value(whole)
        if not self._is_in_blocks(whole):
            spot = b.spot(whole)
            self._shift(spot, one.size * one.dtype.itemsize)
            b.alias(one, PLAIN, spot)
            return
        axis = b.blocked_axis(whole) or 0
        channels = Layout("blocked", axis)
        source = b.spot(whole, channels)
        self._shift(source, 4 * LANES * pixels(one.shape, axis))
        out = b.result(one, channels)
        self._copied(one, axis, source, whole, out, one)

    def _leave(self, whole: Value) -> None:
        """Put the value of one sample into the batch's, as it will be read."""
        b, one = self._b, self._one.value(whole)
        axis = b.blocked_axis(one)
        if axis and whole.place not in b.results:
            channels = Layout("blocked", axis)
            out = b.result(whole, channels)
            self._shift(out, 4 * LANES * pixels(one.shape, axis))
            self._copied(one, axis, b.spot(one, channels), one, out, whole)
            return
        spot, out = b.spot(one), b.result(whole)
        size = one.size * one.dtype.itemsize
        self._shift(out, size)
        if not b.become(spot, out, size):
            b.copy((one.size,), spot, (1,), out, (1,))

    def _copied(
        self, one: Value, axis: int, source: Spot, of: Value, out: Spot, to: Value
    ) -> None:
        """Copy a sample's channels, from blocks of one value to those of another."""
        b, label = self._b, self._b.label
        b.label = "a sample of a batch"
        sizes = blocks(one.shape[axis]), LANES * pixels(one.shape, axis)
        x, y = (LANES * pixels(each.shape, axis) for each in (of, to))
        b.copy(sizes, source, (x, 1), out, (y, 1))
        b.label = label

    def _shift(self, spot: Spot, size: int) -> None:
        """Note how far apart the samples of an array are."""
        buffer = spot.root.buffer
        known = self._shifts.setdefault(id(buffer), (buffer, size))
        need(known[1] == size, "its samples are in one array with others")

    def _repeat(self, first: int) -> None:
        """Copies of the records for the other samples."""
        steps = self._b.steps[first:]
        for n in range(1, self._batch):
            self._b.steps += [
                dataclasses.replace(
                    step,
                    fields={k: self._moved(v, n) for k, v in step.fields.items()},
                    of=first + i,
                )
                for i, step in enumerate(steps)
            ]
        for buffer, _ in self._shifts.values():  # in use until the last sample's end
            buffer.used(first)
            buffer.used(len(self._b.steps) - 1)

    def _moved(self, item: Any, n: int) -> Any:
        """A field of the n-th sample's record."""
        if isinstance(item, Spot):
            root = item.root
            if id(root.buffer) in self._shifts:
                return root.moved(n * self._shifts[id(root.buffer)][1])
            table = root.buffer.constant
            if isinstance(table, Operands):
                return self._b.operands(
                    [(self._moved(spot, n), *rest) for spot, *rest in table.read]
                )
        return item
