"""Numbers as small integers, blocks of which share a scale; without zero points.

`quantize_linear` has the forms that model files know, with axes and zero points.
"""

from __future__ import annotations

import math

import numpy as np

from burnish.backend import namespace
from burnish.errors import InputError
from burnish.operator import memory_bound, operator


@operator
def quantize_blocks(x, *, bits: int = 8, block_size: int = 64):
    """x of any shape -> codes (blocks, block_size), scales (blocks,) float32

    Element i of x, counted row by row, is in block i // block_size; the last block is
    filled up with zeros. bits: 8 gives int8, 4 gives uint8 with two codes in a byte,
    the first one in its lower half, each plus 8.
    """
    xp, most = namespace(x), _most(bits)
    if block_size < 1 or (bits == 4 and block_size % 2):
        raise InputError(
            f"quantize_blocks: expected a block_size above 0, even for 4 bits, "
            f"got {block_size}"
        )
    blocks = -(-x.size // block_size)
    flat = xp.zeros(blocks * block_size, np.float32)
    flat[: x.size] = x.reshape(-1)
    flat = flat.reshape(blocks, block_size)
    scales = xp.abs(flat).max(axis=1) / np.float32(most)
    codes = xp.rint(flat / xp.where(scales > 0, scales, 1)[:, None])
    if bits == 8:
        return codes.astype(np.int8), scales
    codes = (codes + 8).astype(np.uint8)
    return codes[:, ::2] | codes[:, 1::2] << 4, scales


@memory_bound
@operator
def dequantize_blocks(codes, scales, *, bits: int = 8, shape: tuple[int, ...]):
    """codes * scales of `quantize_blocks`, float32, in the shape that x had"""
    xp = namespace(codes)
    _most(bits)
    if bits == 4:
        halves = xp.stack([codes & 15, codes >> 4], axis=-1).astype(np.int8)
        codes = (halves - 8).reshape(len(codes), 2 * codes.shape[1])
    values = codes * scales[:, None]
    return values.reshape(-1)[: math.prod(shape)].reshape(shape)


def _most(bits: int) -> int:
    if bits not in (4, 8):
        raise InputError(f"blocks: expected 4 or 8 bits, got {bits}")
    return 2 ** (bits - 1) - 1
