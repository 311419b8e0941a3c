"""A key/value cache: arrays with room for more positions than there are yet.

N batch, T new positions, S positions that there is room for, H heads, D their size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish.backend import Array, Device, namespace
from burnish.errors import CaptureError, InputError
from burnish.nn import Module
from burnish.operator import Operator
from burnish.tensor import Tensor

_START = 16
_ROUND = 128
"""Caches of a planned call have room for a multiple of this: lengths share plans."""


class Cache:
    """Keys and values of all positions so far, for each attention module.

    They are values without gradients: memory for inference. room: positions that there
    is room for from the beginning; it is doubled where they are not enough.
    """

    def __init__(self, room: int = 0) -> None:
        self._room = -(-room // _ROUND) * _ROUND
        self._grown: dict[Module, list[_Growing]] = {}
        self._kept: dict[Module, Any] = {}

    @property
    def reserved(self) -> int:
        """The positions that it has room for from the beginning."""
        return self._room

    @property
    def length(self) -> int:
        """The number of positions that every attention module has seen."""
        return min((pair[0].length for pair in self._grown.values()), default=0)

    def places(self, time: int, device: Device) -> tuple[Tensor, Tensor]:
        """Where `time` new positions are (T,), and all that they may see."""
        self._level()
        keys = Tensor.arange(self.length + time, device=device)
        return keys[self.length :], keys

    def extend(self, owner: Module, *new: Tensor) -> tuple[Tensor, ...]:
        """`owner`'s tensors (N, H, T, D) of all positions, `new` ones at the end."""
        if owner not in self._grown:
            self._grown[owner] = [_Growing(self._room) for _ in new]
        return tuple(
            Tensor.wrap(part.extend(tensor.data), tensor.device.inner())
            for part, tensor in zip(self._grown[owner], new, strict=True)
        )

    def keep(self, owner: Module, make: Callable[[], Any]) -> Any:
        """The first result of `make()` for `owner`: an encoder's keys and values."""
        if owner not in self._kept:
            self._kept[owner] = make()
        return self._kept[owner]

    @property
    def is_plain(self) -> bool:
        """Whether it holds keys and values of a decoder's own positions alone."""
        return bool(self._grown) and not self._kept

    def rooms(self, time: int) -> dict[Module, list[Array]]:
        """The arrays (N, H, S, D) by owner, with room for `time` more positions."""
        self._level()
        return {
            owner: [part.reserve(part.length + time) for part in parts]
            for owner, parts in self._grown.items()
        }

    def hold(self, rooms: dict[Module, list[Array]]) -> None:
        """Have other arrays from now on, with the same keys and values."""
        for owner, arrays in rooms.items():
            for part, array in zip(self._grown[owner], arrays, strict=True):
                part.room = array

    def _level(self) -> None:
        """Forget what a call that failed between two modules left in the first ones."""
        length = self.length
        for part in (part for parts in self._grown.values() for part in parts):
            part.length = length

    def advance(self, time: int) -> None:
        """Note that so many positions were written into the arrays."""
        for part in (part for parts in self._grown.values() for part in parts):
            part.length += time


class _Growing:
    """An array (N, H, S, D) whose S grows; room is doubled, so few copies are made."""

    def __init__(self, least: int) -> None:
        self.length, self._least = 0, max(least, _START)
        self.room: Array | None = None

    def extend(self, new: Array) -> Array:
        start = self.length
        if self.room is None:
            shape = (*new.shape[:2], 0, new.shape[3])
            self.room = namespace(new).zeros(shape, new.dtype)
        room = self.reserve(start + new.shape[2])
        self.length += new.shape[2]
        room[:, :, start : self.length] = new
        return room[:, :, : self.length]

    def reserve(self, length: int) -> Array:
        """The array with room for so many positions; zeros where there are none."""
        room = self.room
        assert room is not None
        if length <= room.shape[2]:
            return room
        size = max(self._least, 2 * room.shape[2], length)
        shape = (*room.shape[:2], size, room.shape[3])
        self.room = namespace(room).zeros(shape, room.dtype)
        self.room[:, :, : self.length] = room[:, :, : self.length]
        return self.room


def places(ids: Tensor, cache: Any) -> tuple[Tensor, Tensor]:
    """Where ids (N, T) are, (T,), and what they may see, with the cache's positions."""
    if cache is not None:
        queries, keys = cache.places(ids.shape[1], ids.device)
        return queries, keys
    keys = Tensor.arange(ids.shape[1], device=ids.device)
    return keys, keys


class InPlace:
    """A cache as a planned step has it: arrays of all positions, used or not.

    queries: where the new positions are. Keys behind them are hidden by the mask that
    the model makes of `places`.
    """

    def __init__(
        self, owners: tuple[Module, ...], queries: Tensor, buffers: tuple[Tensor, ...]
    ):
        self._queries, count = queries, len(buffers) // len(owners)
        self._buffers = {
            owner: buffers[i * count : (i + 1) * count]
            for i, owner in enumerate(owners)
        }

    @property
    def length(self) -> int:
        """Raises CaptureError: it is another number in each call."""
        raise CaptureError(
            "the model asks for the cache's length, which is another one in each call; "
            "generate its source anew, or take burnish.generation.places"
        )

    def places(self, time: int, device: Device) -> tuple[Tensor, Tensor]:
        """Where the new positions are, and all that there is room for."""
        room = next(iter(self._buffers.values()))[0]
        return self._queries, Tensor.arange(room.shape[2], device=device)

    def extend(self, owner: Module, *new: Tensor) -> tuple[Tensor, ...]:
        """`owner`'s arrays, with the new rows written into them."""
        pairs = zip(self._buffers[owner], new, strict=True)
        return tuple(write(room, rows, self._queries) for room, rows in pairs)

    def keep(self, owner: Module, make: Callable[[], Any]) -> Any:
        """Raises CaptureError: the cached arrays would be constants of the plan."""
        raise CaptureError("the model keeps values of its first call in the cache")


def put(room: Any, new: Any, places: Any) -> Any:
    """room (N, H, S, D) itself, with new (N, H, T, D) from places[0] on."""
    start, rows = int(places[0]), new.shape[2]
    if not 0 <= start <= room.shape[2] - rows:
        raise InputError(
            f"cache: expected {rows} new positions within the {room.shape[2]} that "
            f"there is room for, got them from {start} on"
        )
    room[:, :, start : start + rows] = new
    return room


write: Any = Operator(put)
"""As an operator, which captures write down; in no registry, for it has an effect."""
