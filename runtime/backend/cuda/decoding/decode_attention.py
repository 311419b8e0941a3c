"""Attention of one new position over a cache of keys and values, in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend.cuda.decoding import overlap
from burnish.backend.cuda.kernels import ELEMENTS, kernel

_NOTHING = np.uint64(0)
_BLOCKS = 264
"""Blocks that fill a GPU."""

_POSITIONS = 64
"""Positions that are worth a block of their own."""


def takes(heads: int, kv_heads: int, size: int) -> bool:
    """Whether the kernel has heads of this size, so many of them to one of keys."""
    return size % 8 == 0 and 8 <= size <= 256 and heads % kv_heads == 0


class Room:
    """What the kernel adds up parts in: zeros that it leaves as zeros."""

    def __init__(self, examples: int, heads: int, kv_heads: int, size: int, room: int):
        import cupy

        shared = heads // kv_heads
        self.heads = next(n for n in (4, 2, 1) if shared % n == 0)
        if size > 128:
            self.heads = 1
        self.groups = shared // self.heads
        blocks = examples * heads // self.heads
        most = min(-(-room // _POSITIONS), 32)
        self.splits = max(1, min(most, -(-_BLOCKS // blocks)))
        if 2 * blocks >= _BLOCKS:  # adding up parts takes longer than they save
            self.splits = 1
        self.warps = 8 if self.splits == 1 else 4
        rows = examples * heads * self.splits
        self.parts = cupy.zeros((rows, size + 2), np.float32)
        self.done = cupy.zeros(blocks, np.uint32)


def attended(
    q: Any,
    new: tuple[Any, Any] | None,
    cache: tuple[Any, Any],
    position: Any,
    room: Room,
    *,
    scale: float,
    angles: tuple[Any, Any] | None = None,
    mask: Any = None,
    out: Any = np.float32,
) -> Any:
    """softmax(q @ keys.T * scale) @ values for one new position: (N, H, D).

    q (N, H, D); cache: keys and values (N, K, S, D), float32, float16, or the bits of
    bfloat16; position (1,) int64, which is there already, or is `new` (N, K, D) and
    written here. angles: cosines and sines (1 or N, D / 2) that q and new keys are
    turned by. mask (1 or N, S): positions that take part. out: the result's dtype.
    """
    import cupy

    keys, values = cache
    n, heads, size = q.shape
    length = keys.shape[2]
    y = cupy.ndarray((n, heads, size), out)
    lanes = 1 << (size // 8 - 1).bit_length()
    made = kernel(
        "decode_attention",
        wide="float",
        element="bfloat16" if keys.dtype == np.uint16 else ELEMENTS[keys.dtype.name],
        output=ELEMENTS[np.dtype(out).name],
        overlaps=overlap.overlaps(q.data.device_id),
        d=size,
        heads=room.heads,
        lanes=lanes,
        warps=room.warps,
        rotary=angles is not None,
        store=new is not None,
        masked=mask is not None,
    )
    q, (k, v) = _rows(q), map(_rows, new or (q, q))
    cosines, sines = (_NOTHING, _NOTHING) if angles is None else angles
    steps = [_step(each) for each in (q, k, v)]
    steps += [
        0 if angles is None else _step(cosines),
        0 if mask is None else _step(mask),
    ]
    given = (q, k, v, keys, values, cosines, sines, _NOTHING if mask is None else mask)
    overlap.run(
        made,
        (room.splits, heads // room.heads, n),
        (32 * room.warps,),
        (
            *(*given, position, y, room.parts, room.done, np.float32(scale)),
            *(np.int32(length), np.int32(room.groups)),
            *map(np.int64, (*steps, heads * size)),
        ),
    )
    return y


def put(room: Any, new: Any, position: Any) -> None:
    """Write new (N, K, D) at a position (1,) into room (N, K, S, D)."""
    import cupy

    new = cupy.ascontiguousarray(new)
    element = "bfloat16" if room.dtype == np.uint16 else ELEMENTS[room.dtype.name]
    made = kernel("cache_put", wide="float", element=element)
    sizes = map(np.int64, (*room.shape[2:], new.size))
    made((-(-new.size // 256),), (256,), (room, new, position, *sizes))


def _rows(x: Any) -> Any:
    """(N, H, D) with contiguous heads."""
    import cupy

    fine = x.strides[2] == x.itemsize
    fine = fine and (x.shape[1] == 1 or x.strides[1] == x.shape[2] * x.itemsize)
    return x if fine else cupy.ascontiguousarray(x)


def _step(array: Any) -> int:
    """Elements from one example to the next; 0 for one that all share."""
    if array.shape[0] == 1:
        return 0
    return int(array.strides[0] // array.itemsize)
