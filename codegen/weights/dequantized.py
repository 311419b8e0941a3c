"""Lazily dequantized weights: codes stay in the file, values are computed when read.

A tensor computes its values, its scales or its zero points, in one shape. So a weight
that passes have transposed, split or joined can be read once as each of them, and
stored quantized again. A weight that is no such product any more is stored as float.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.program import Weight
from burnish.codegen.weights.entries import Entry
from burnish.codegen.weights.origin import is_exchanged
from burnish.errors import InputError
from burnish.lowbit import Level, Packed, QParams, QuantScheme

BITS = {
    ir.DataType[name]: bits
    for name, bits in (
        *(("INT8", 8), ("UINT8", 8), ("INT4", 4), ("UINT4", 4)),
        *(("INT2", 2), ("UINT2", 2)),
    )
    if name in ir.DataType.__members__  # an older ONNX has no 2 bits
}
_UNSIGNED = frozenset(("UINT8", "UINT4", "UINT2"))
_SCALES = ("float32", "float16", "bfloat16")


@dataclass
class _Asked:
    """Which part tensors give for now, and the bits of those that were read."""

    part: str = "values"
    bits: set[int] = field(default_factory=set)


_asked: ContextVar[_Asked | None] = ContextVar("asked", default=None)


class Dequantized(ir.LazyTensor):
    """(codes - zero points) * scales of constants, computed when it is read."""

    def __init__(
        self,
        name: str,
        codes: ir.TensorProtocol,
        scales: ir.TensorProtocol,
        zeros: ir.TensorProtocol | None,
        axis: int,
        block: int,
    ):
        self.codes, self.scales, self.zeros = codes, scales, zeros
        self.axis, self.block = axis, block
        shape = ir.Shape(codes.shape.numpy())
        super().__init__(self._now, scales.dtype, shape, name=name)

    def _now(self) -> ir.TensorProtocol:
        asked = _asked.get()
        if asked is not None:
            asked.bits.add(BITS.get(self.codes.dtype, 0))
        part = "values" if asked is None else asked.part
        middle = 2 ** (BITS.get(self.codes.dtype, 1) - 1)
        shift = middle if self.codes.dtype.name in _UNSIGNED else 0
        if part == "scales":
            array = self._spread(self.scales)
        elif part == "zero_points":
            array = self._zeros() - np.float32(shift)
        elif part == "codes":
            array = self.codes.numpy() - np.float32(shift)
        else:
            codes, scales = self.codes.numpy(), self._spread(self.scales)
            if self.zeros is not None and "FLOAT" not in self.codes.dtype.name:
                codes = codes.astype(np.int32) - self._zeros()
            array = codes.astype(scales.dtype) * scales
        return ir.tensor(np.asarray(array, self.dtype.numpy()), dtype=self.dtype)

    def _zeros(self) -> np.ndarray[Any, Any]:
        if self.zeros is None:
            return np.zeros(self.codes.shape.numpy(), np.int32)
        return self._spread(self.zeros).astype(np.int32)

    def _spread(self, tensor: ir.TensorProtocol) -> np.ndarray[Any, Any]:
        """One number for each of the codes."""
        held, shape = tensor.numpy(), tuple(self.codes.shape.numpy())
        if held.size == 1:
            return np.broadcast_to(held.reshape(()), shape)
        axis = self.axis % len(shape)
        if self.block:
            places = np.arange(shape[axis]) // self.block
            return np.take(held, places, axis=axis)
        return np.broadcast_to(held.reshape(-1, *(1 for _ in shape[axis + 1 :])), shape)


@contextmanager
def _asking(part: str) -> Iterator[_Asked]:
    asked = _Asked(part)
    token = _asked.set(asked)
    try:
        yield asked
    finally:
        _asked.reset(token)


def small(every: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries, with codes and scales for dequantized weights that can keep them."""
    return tuple(part for entry in every for part in _parts(entry))


def _parts(entry: Entry) -> Iterator[Entry]:
    packed = _packed(entry.weight) if entry.weight.trained else None
    if packed is None:
        yield entry
        return
    for name, array in packed.arrays().items():
        path, dtype = f"{entry.path}.{name}", str(array.dtype)
        read = partial(_part, entry.weight, packed.scheme, name, array)
        weight = Weight(path, dtype, array.shape, read, trained=False)
        yield Entry(path, dtype, weight)


def _part(
    weight: Weight, scheme: QuantScheme, name: str, array: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """One array of a packed weight, also where the file's tensors are exchanged."""
    if not is_exchanged() or name == "scheme" or not scheme.value.startswith("q8"):
        return np.ascontiguousarray(array)
    with _asking(name):
        now = weight.read()
    now = now if name == "codes" else _first(now, scheme.level)
    return np.ascontiguousarray(now).astype(array.dtype).reshape(array.shape)


def _packed(weight: Weight) -> Packed | None:
    """The weight in small numbers; None unless these are exactly it."""
    with _asking("values") as asked:
        values = weight.read()
    if len(asked.bits) != 1 or 0 in asked.bits or not values.size:
        return None
    with _asking("scales"):
        scales = weight.read()
    with _asking("zero_points"):
        zeros = weight.read()
    param = str(scales.dtype)
    if param not in _SCALES or values.ndim == 0:
        return None
    level = _level(scales, zeros)
    if level == Level.block(1):
        return None  # a scale each takes more than the numbers
    (bits,) = asked.bits
    mode = "affine" if zeros.any() else "symmetric"
    for value in (f"q{bits}s", f"q{bits}f"):
        try:
            scheme = QuantScheme(value, mode, level, param=param)
            params = QParams(
                _first(scales, level),
                _first(zeros, level).astype(np.int8) if mode == "affine" else None,
            )
            made = scheme.pack(values, params)
            if np.array_equal(made.unpack(), values):
                return made
        except InputError:
            continue
    return None


def _level(scales: np.ndarray[Any, Any], zeros: np.ndarray[Any, Any]) -> Level:
    """Who shares a scale and a zero point."""
    both = np.stack([scales.astype(np.float32), zeros.astype(np.float32)])
    if (both == both.reshape(2, -1)[:, 0].reshape(2, *(1,) * scales.ndim)).all():
        return Level.tensor()
    for axis in range(scales.ndim):
        first = np.moveaxis(both, axis + 1, 1).reshape(2, scales.shape[axis], -1)
        if scales.ndim > 1 and (first == first[:, :, :1]).all():
            return Level.channel(axis)
    rows = both.reshape(2, scales.shape[0] if scales.ndim > 1 else 1, -1)
    change = np.flatnonzero((rows[..., 1:] != rows[..., :-1]).any((0, 1))) + 1
    return Level.block(int(np.gcd.reduce(change)) if change.size else rows.shape[-1])


def _first(array: np.ndarray[Any, Any], level: Level) -> np.ndarray[Any, Any]:
    """One number a block, of an array that has it at each place."""
    blocks = level.blocks(array.shape)
    kept = len(blocks) - 1
    view = array.reshape(*array.shape[:kept], -1)
    return np.ascontiguousarray(view[tuple(slice(None, None, b) for b in blocks)])
