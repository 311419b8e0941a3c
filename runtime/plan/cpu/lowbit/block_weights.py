"""Quantized matrices as kernels of products of a few rows read them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burnish.kernels.records import DIGITS, GEMV
from burnish.lowbit.packed import Packed
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES
from burnish.plan.cpu.lowbit.packed_parts import PackedParts, numbers
from burnish.plan.graph import Array, Constant, Value
from burnish.serialize import release

_BLOCK = DIGITS["block"]
"""Block sizes are multiples of this: 16 bytes of 4-bit weights."""

_AT_ONCE = 64
"""Groups of outputs that are packed together: copies are of so much at a time."""


class Weights(NamedTuple):
    """A matrix in one of the layouts of GEMV. block: inputs that share a scale."""

    mode: int
    codes: Value | Constant
    block: int = 0
    scales: Constant | None = None
    zeros: Constant | None = None
    has_digits: bool = False


def block_weights(b: Builder, weight: Constant, turned: bool) -> Weights | None:
    """A quantized matrix (outs, ins), or (ins, outs) if turned; None for other ones."""
    stored = weight.stored
    held = stored.held if stored is not None else None
    if stored is None or not isinstance(held, Packed) or len(held.shape) != 2:
        return None
    bits, sizes = held.scheme.kind.bits, _sizes(held)
    if not held.scheme.kind.whole or bits not in (4, 8) or sizes is None:
        return None
    outs, ins = held.shape[::-1] if turned else held.shape
    by_out, by_in = sizes[::-1] if turned else sizes
    made = _Parts(PackedParts(stored, held), held, turned, outs, ins, by_out, by_in)
    if by_in % _BLOCK == 0 and (b.dots or not turned):
        return made.dots() if b.dots else made.rows()
    return made.wide() if by_out % _BLOCK == 0 else None


def digits(b: Builder, x: Value, ins: int) -> Spot:
    """The digits of rows of single precision, once for all readers."""
    key = ("digits", x.place)
    if key not in b.codes:
        source, rows = b.spot(x), x.size // ins
        b.codes[key] = b.new(x.size // _BLOCK * DIGITS["bytes"])
        b.add(
            "digits", b.shares(4 * x.size), x=source, out=b.codes[key], rows=rows,
            ins=ins,
        )  # fmt: skip
    return b.codes[key]


class _Parts(NamedTuple):
    """A quantized matrix. by_out, by_in: outputs and inputs that share a scale."""

    parts: PackedParts
    held: Packed
    turned: bool
    outs: int
    ins: int
    by_out: int
    by_in: int

    def rows(self) -> Weights:
        """Codes in rows of outputs, two of 4 bits in a byte."""
        counts = self.outs, self.ins // self.by_in

        def codes(held: Packed) -> Array:
            plain = numbers(held)
            if self._bits == 8:
                return np.asarray(plain)
            return _nibbles((plain + 8).astype(np.uint8).reshape(self.outs, -1, _BLOCK))

        def spread(part: Any) -> Array:
            return self._spread(part).astype(np.float32)

        size = self.outs, self.ins * self._bits // 8
        mode = "int8" if self._bits == 8 else "int4"
        return self._weights(mode, codes, size, spread, spread, counts, np.float32)

    def dots(self) -> Weights:
        """Unsigned codes (16 outputs, block, four inputs, outputs, these four)."""
        groups, counts = -(-self.outs // LANES), self.ins // self.by_in
        middle = 1 << self._bits - 1

        def codes(rows: Array) -> Array:
            full = (rows.view(np.uint8) + np.uint8(middle)).reshape(
                -1, LANES, self.ins // _BLOCK, _BLOCK // 4, 4
            )
            full = np.ascontiguousarray(full.transpose(0, 2, 3, 1, 4))
            full = full.reshape(len(full), self.ins // _BLOCK, _BLOCK * LANES)
            return full if self._bits == 8 else _nibbles(full)

        def spread(part: Any) -> Array:
            full = self._filled(self._spread(part), LANES).reshape(
                groups, LANES, counts
            )
            return np.ascontiguousarray(full.transpose(0, 2, 1))

        size = groups, self.ins * LANES * self._bits // 8
        return self._weights(
            f"dots{self._bits}", self._by_rows(codes, LANES, size), size,
            lambda part: spread(part).astype(np.float32),
            lambda part: spread(part).astype(np.int32) + middle,
            (groups, counts, LANES), np.int32,
        )  # fmt: skip

    def wide(self) -> Weights:
        """Codes (32 outputs, inputs, these outputs), with a scale for each input."""
        groups = -(-self.outs // _BLOCK)

        def codes(rows: Array) -> Array:
            full = rows.reshape(-1, _BLOCK, self.ins).transpose(0, 2, 1)
            full = np.ascontiguousarray(full).view(np.uint8)
            return full if self._bits == 8 else _nibbles(full + np.uint8(8))

        def spread(part: Any) -> Array:
            full = self._spread(part)  # (outputs or 1, inputs or 1)
            wide = np.repeat(full, self.ins // full.shape[1], axis=1)
            return np.ascontiguousarray(wide[::_BLOCK].astype(np.float32))

        size = groups, self.ins * _BLOCK * self._bits // 8
        return self._weights(
            f"wide{self._bits}", self._by_rows(codes, _BLOCK, size), size,
            spread, spread, (groups, self.ins), np.float32,
        )  # fmt: skip

    @property
    def _bits(self) -> int:
        return self.held.scheme.kind.bits

    def _plain(self, held: Packed) -> Array:
        """Signed codes (outs, ins)."""
        plain = np.asarray(numbers(held))
        return plain.T if self.turned else plain

    def _spread(self, part: Any) -> Array:
        """Numbers of blocks as (outs, blocks of inputs)."""
        blocks = self.outs // self.by_out, self.ins // self.by_in
        wide = np.asarray(part).astype(np.float32)
        wide = wide.reshape(blocks[::-1]).T if self.turned else wide.reshape(blocks)
        return np.repeat(wide, self.by_out, axis=0)

    def _by_rows(
        self, pack: Callable[[Array], Array], lanes: int, size: tuple[int, ...]
    ) -> Callable[[Packed], Array]:
        """`pack` of signed codes (n * lanes, ins), few at a time, put together.

        lanes: outputs of a group; size: (groups, bytes of a group).
        """

        def packed(held: Packed) -> Array:
            plain, made = self._plain(held), np.empty(size, np.uint8)
            for first in range(0, len(made), _AT_ONCE):
                rows = plain[first * lanes : (first + _AT_ONCE) * lanes]
                part = made[first : first + _AT_ONCE]
                part[...] = pack(self._filled(rows, lanes)).reshape(part.shape)
            release(held.codes)  # the plan's calls read the packed ones
            return made

        return packed

    def _filled(self, rows: Array, step: int) -> Array:
        return np.pad(rows, ((0, -len(rows) % step), (0, 0)))

    def _weights(
        self, mode: str, codes: Any, size: tuple[int, ...], scales: Any, zeros: Any,
        counts: tuple[int, ...], zero_type: Any,
    ) -> Weights:  # fmt: skip
        made = self.parts.constant
        middles = None
        if self.held.zero_points is not None:
            middles = made(lambda p: zeros(p.zero_points), counts, zero_type)
        return Weights(
            GEMV[mode], made(codes, size, np.uint8), self.by_in,
            made(lambda p: scales(p.scales), counts, np.float32), middles,
            mode.startswith("dots"),
        )  # fmt: skip


def _nibbles(codes: Array) -> Array:
    """The first half of the last axis in the lower 4 bits, the second above it."""
    halves = codes.reshape(*codes.shape[:-1], 2, -1)
    low, high = halves[..., 0, :], halves[..., 1, :]
    return (low | high << 4).reshape(codes.shape[0], -1)


def _sizes(held: Packed) -> tuple[int, int] | None:
    """Rows and columns of the blocks that share a scale; None where they are uneven."""
    counts, shape = held.scheme.level.counts(held.shape), held.shape
    if math.prod(counts) == 1:
        return shape[0], shape[1]
    if len(counts) != 2 or any(n % c for n, c in zip(shape, counts, strict=True)):
        return None
    sizes = shape[0] // counts[0], shape[1] // counts[1]
    blocks = [min(x) for x in zip(held.scheme.level.blocks(shape), shape, strict=True)]
    return sizes if list(sizes) == blocks else None
