"""Packed: arrays made of parameters, one for all plans that make the same.

A model has a plan for each signature, and for each stretch between computed values: its
packed weights are in memory once.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from burnish.plan.graph import Constant
from burnish.planned.space import Room

_KNOWN: WeakValueDictionary[Any, Any] = WeakValueDictionary()
_LOOKS = 64
"""Bytes by which arrays of the same parameters are told apart before a comparison."""


def packed(array: Any, constant: Constant, room: Room) -> Any:
    """A dense array in the memory of a room, or one of the same bytes from before.

    constant: what the array is of. Nobody writes to what this returns.
    """
    if not constant.sources:
        return room.held(array)
    held = array.reshape(-1).view(np.uint8)
    some = held[:: max(len(held) // _LOOKS, 1)].tobytes()
    sources = tuple([id(source) for source in constant.sources])
    key = sources, array.shape, array.dtype.str, some
    known = _KNOWN.get(key)
    if known is None or not np.array_equal(known.reshape(-1).view(np.uint8), held):
        known = _KNOWN[key] = room.held(array)
    return known
