"""Weights that a module holds quantized, as the codes that kernels sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from burnish.capture import CaptureError
from burnish.lowbit import Packed, QuantScheme
from burnish.nn.core.param import Stored
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES
from burnish.plan.graph import Array, Constant

_BYTE = (-128, 127)


class Whole:
    """A weight (outs, ins, taps): codes less a zero point, times the output's scale.

    turned: the module holds (ins, outs).
    """

    def __init__(self, source: Stored, scheme: QuantScheme, turned: bool):
        self.source, self.turned, self._scheme = source, turned, scheme
        self.outs = source.shape[1 if turned else 0]
        self._made: dict[Any, Constant] = {}

    def packed(self, nr: int, ins: int, row: int) -> Constant:
        """Bytes (group of nr blocks, four inputs, outputs, these four).

        row: the inputs of a tap, with those that fill it up.
        """

        def pack(codes: Array) -> Array:
            taps = codes.reshape(self.outs, ins, -1).transpose(0, 2, 1)
            short = -self.outs % (nr * LANES)
            full = np.pad(taps, ((0, short), (0, 0), (0, row - ins)))
            full = full.reshape(-1, nr * LANES, full[0].size // 4, 4)
            return np.ascontiguousarray(full.transpose(0, 2, 1, 3))

        return self._once(("packed", nr, row), lambda: pack(self._codes()[0]))

    def windows(self, kernel: tuple[int, int]) -> Constant:
        """Bytes (block, four rows, columns, outputs, these four), a window each."""
        rows, columns = kernel

        def pack(codes: Array) -> Array:
            short = -self.outs % LANES, -rows % 4
            full = codes.reshape(self.outs, rows, columns)
            full = np.pad(full, ((0, short[0]), (0, short[1]), (0, 0)))
            full = full.reshape(-1, LANES, full.shape[1] // 4, 4, columns)
            return np.ascontiguousarray(full.transpose(0, 2, 4, 1, 3))

        return self._once(("windows", kernel), lambda: pack(self._symmetric()))

    @property
    def is_symmetric(self) -> bool:
        """Whether its codes need no correction by a zero point."""
        return not self._codes()[1].any()

    def _symmetric(self) -> Array:
        codes, off = self._codes()
        if off.any():
            raise CaptureError("a parameter's zero points are others")
        return codes

    def cells(self, order: tuple[int, ...]) -> Constant:
        """Bytes of a recurrent layer (gates, hidden), as recurrent_codes.c has them."""
        gates = len(order)

        def pack(codes: Array) -> Array:
            hidden = self.outs // gates
            short = -hidden % LANES
            full = codes.reshape(gates, hidden, hidden)[list(order)]
            full = np.pad(full, ((0, 0), (0, short), (0, short)))
            wide = hidden + short
            full = full.reshape(gates, wide // LANES, LANES, wide // 4, 4)
            return np.ascontiguousarray(full.transpose(1, 3, 0, 2, 4))

        return self._once(("cells", order), lambda: pack(self._codes()[0]))

    def scales(self, lanes: int) -> Constant:
        def make() -> Array:
            scales = self._held().scales.astype(np.float32).reshape(-1)
            return _filled(np.broadcast_to(scales, self.outs), lanes)

        return self._once(("scales", lanes), make)

    def zeros(self, lanes: int) -> Constant:
        """Zero points, of codes that are not less them already."""
        return self._once(
            ("zeros", lanes), lambda: _filled(self._codes()[1].astype(np.int32), lanes)
        )

    def totals(self, lanes: int) -> Constant:
        """The sum of the codes of each output."""

        def make() -> Array:
            codes = self._codes()[0].reshape(self.outs, -1)
            return _filled(codes.sum(axis=1, dtype=np.int32), lanes)

        return self._once(("totals", lanes), make)

    def _codes(self) -> tuple[Array, Array]:
        """Codes as bytes, outputs first, and the correction of each output's sum."""
        weight = self._held()
        number = _whole(weight)
        codes = number if _fits(number) else weight.codes.astype(np.int16)
        if self.turned:
            codes, number = codes.T, number.T
        off = (codes - number).reshape(self.outs, -1)[:, 0]
        return codes.astype(np.int8), off

    def _held(self) -> Packed:
        held = self.source.held
        if not isinstance(held, Packed) or held.scheme != self._scheme:
            raise CaptureError("a parameter is quantized in another way, or no more")
        return held

    def _once(self, key: Any, make: Callable[[], Array]) -> Constant:
        if key not in self._made:
            made = make()
            self._made[key] = Constant(make, made.shape, made.dtype, (self.source,))
        return self._made[key]


def whole(b: Builder, weight: Any, turned: bool) -> Whole | None:
    """A quantized parameter or its transpose; None for any other weight."""
    if not isinstance(weight, Constant) or len(weight.sources) != 1:
        return None
    key = (id(weight), turned)
    if key not in b.whole:
        b.whole[key] = _found(b.whole, weight, turned)
    return b.whole[key]


def is_whole(weight: Any) -> bool:
    """Whether the products of a quantized parameter (outs, ins) are sums of codes."""
    if not isinstance(weight, Constant) or len(weight.sources) != 1:
        return False
    return _found({}, weight, False) is not None


def _found(known: dict[Any, Any], weight: Constant, turned: bool) -> Whole | None:
    (source,) = weight.sources
    held = source.held
    if not isinstance(held, Packed) or not held.scheme.kind.whole:
        return None
    if held.scheme.kind.bits > 8:
        return None
    if not weight.shape or not all(weight.shape) or held.dtype != np.float32:
        return None
    values, used = held.unpack(), weight.make()
    used = used.T if turned else used
    axis = 0
    if values.ndim == 2 and not np.array_equal(values, used):
        values, axis = values.T, 1
    if not np.array_equal(values, used) or not _is_by_output(held, axis):
        return None
    if not _fits(_whole(held)) and held.scheme.store != "native":
        return None
    key = (id(source), axis)
    if key not in known:
        known[key] = Whole(source, held.scheme, bool(axis))
    return known[key]


def _is_by_output(weight: Packed, axis: int) -> bool:
    level = weight.scheme.level
    if level.kind == "channel":
        return level.sizes[0] % len(weight.shape) == axis
    return level.kind == "tensor"


def _whole(weight: Packed) -> Any:
    """Codes less zero points."""
    ones = np.ones_like(weight.scales)
    return replace(weight, scales=ones).unpack().astype(np.int16)


def _fits(numbers: Any) -> bool:
    return bool(numbers.min() >= _BYTE[0] and numbers.max() <= _BYTE[1])


def _filled(array: Any, lanes: int) -> Array:
    return np.pad(array, (0, lanes - len(array)))
