"""Buffers of a plan, places in them, and records before these are addresses."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from burnish.kernels.records import reference
from burnish.plan.graph import Constant


@dataclasses.dataclass(eq=False, slots=True)
class Buffer:
    """Memory of a plan. It lives from its first record to its last.

    outside: an array of its own in every run, which may be handed out: an argument, a
    result, what steps without a kernel read or give. Others are places in one arena.
    """

    size: int  # in bytes
    outside: bool = False
    is_held: bool = False  # an array that there is before a run and behind it
    constant: Constant | None = None
    first: int = -1
    last: int = -1
    slot: int = -1  # which array of a call it is in
    place: int = 0  # where in it, in bytes
    home: Spot | None = None  # where it is a part of another buffer

    @property
    def is_arena(self) -> bool:
        return not self.outside and self.constant is None and self.home is None

    def used(self, step: int) -> None:
        """Note that a record reads or writes it."""
        self.first = step if self.first < 0 else min(self.first, step)
        self.last = max(self.last, step)
        if self.home is not None:
            self.home.buffer.used(step)


class Spot(NamedTuple):
    """A place in a buffer, in bytes."""

    buffer: Buffer
    offset: int = 0

    @property
    def root(self) -> Spot:
        """The same place in the buffer that has memory of its own."""
        home = self.buffer.home
        if home is None:
            return self
        return Spot(home.buffer, home.offset + self.offset).root

    def beyond(self, floats: int) -> Spot:
        """The place so many floats further."""
        return self.moved(4 * floats)

    def moved(self, size: int) -> Spot:
        """The place so many bytes further."""
        return Spot(self.buffer, self.offset + size)

    @property
    def reference(self) -> int:
        """Its address in a record, once buffers have their places."""
        buffer, offset = self.root
        return reference(buffer.slot, buffer.place + offset)


@dataclasses.dataclass(slots=True)
class Step:
    """A record before its references are known.

    of: the number of the first sample's record, where this one is another sample's.
    """

    kind: str
    shares: int
    fields: dict[str, Any]
    label: str
    flops: int
    bytes: int
    of: int | None = None


@dataclasses.dataclass(eq=False, slots=True)
class Operands(Constant):
    """The table of what a program reads.

    read: (Spot, how it is read, whether it is truth, distances along all axes); of a
    mask that is drawn, its key and its bound in the places of the first and the third.
    """

    read: Sequence[Any] = ()


class Mask(NamedTuple):
    """A mask whose numbers below a bound are kept, by the key in a place."""

    key: Spot
    bound: int
