"""Find which element of the model file each element of a weight was read from.

A weight is read again while the file's tensors hold the digits of their elements'
numbers: the result tells where each element came from, whatever was transposed, split,
concatenated or reordered on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from burnish.codegen.weights.entries import Entry
from burnish.codegen.weights.origin import Origin, exchanged

_MIXED, _MODULUS = 2654435761, (1 << 31) - 1


@dataclass(frozen=True)
class Places:
    """For every element of a weight: the origin it is of, and its number in there.

    known: where that is so. factor, summand: of an element that is not copied, what it
    is multiplied by, and the term added then.
    """

    origins: tuple[Origin, ...]
    which: np.ndarray
    number: np.ndarray
    known: np.ndarray
    factor: np.ndarray | None = None
    summand: np.ndarray | None = None


def origins_of(entry: Entry) -> tuple[np.ndarray, list[Origin]]:
    """The weight's values, and the tensors of the file that they are read from.

    Those of int64 that only say what is read (axes, starts, shapes) are none of these.
    """
    with exchanged({}) as reading:
        values = np.ascontiguousarray(entry.weight.read()).reshape(entry.weight.shape)
    whole = values.dtype == np.int64
    return values, [o for o in reading.read if whole or o.dtype != ir.DataType.INT64]


def copied_from(entry: Entry, origins: Sequence[Origin]) -> Places:
    """Where each element was copied from."""
    return _traced(entry, tuple(origins), None, None)


def scaled_from(entry: Entry, origin: Origin) -> Places | None:
    """Where each element is of one tensor, multiplied and shifted on the way.

    None where the weight is no such function of it.
    """
    ones = np.ones(origin.shape.numpy(), origin.dtype.numpy())
    shift = _read(entry, {origin: np.zeros_like(ones)}).astype(np.float64)
    factor = _read(entry, {origin: ones}).astype(np.float64) - shift
    if not (np.isfinite(factor).all() and np.isfinite(shift).all() and factor.all()):
        return None
    places = _traced(entry, (origin,), factor, shift)
    return places if places.known.all() else None


def _traced(
    entry: Entry,
    origins: tuple[Origin, ...],
    factor: np.ndarray | None,
    summand: np.ndarray | None,
) -> Places:
    sizes = [origin.size for origin in origins]
    starts = np.cumsum([0, *sizes])
    base = min(_base(o.dtype.numpy()) for o in origins)
    base = min(base, _base(np.dtype(entry.weight.read().dtype)))
    if factor is not None:
        base = min(base, 64)
    count = max(1, math.ceil(math.log(max(2, int(starts[-1])), base)))

    def digits(of: np.ndarray, power: int) -> np.ndarray:
        if power == count:  # a second opinion, that no arithmetic agrees with
            of, power = of * _MIXED % _MODULUS, 1
        return of // base**power % base

    def probed(power: int) -> np.ndarray:
        values = {
            origin: digits(np.arange(start, start + size), power)
            .astype(origin.dtype.numpy())
            .reshape(origin.shape.numpy())
            for origin, start, size in zip(origins, starts, sizes, strict=False)
        }
        found = _read(entry, values).astype(np.float64)
        if factor is not None and summand is not None:
            found = (found - summand) / factor
        return found

    number = np.zeros(entry.weight.shape, np.int64)
    known = np.ones(entry.weight.shape, bool)
    for power in range(count):
        found = probed(power)
        digit = np.rint(np.nan_to_num(found)).astype(np.int64)
        known &= _near(found, digit, factor is None) & (digit >= 0) & (digit < base)
        number += digit * base**power
    known &= number < starts[-1]
    number = np.where(known, number, 0)
    known &= _near(probed(count), digits(number, count), factor is None)
    which = np.searchsorted(starts, number, "right") - 1
    return Places(origins, which, number - starts[which], known, factor, summand)


def _read(entry: Entry, values: dict[Origin, np.ndarray]) -> np.ndarray:
    with exchanged(values), np.errstate(all="ignore"):
        return np.asarray(entry.weight.read()).reshape(entry.weight.shape)


def _near(found: np.ndarray, digit: np.ndarray, exact: bool) -> np.ndarray:
    return found == digit if exact else np.abs(found - digit) < 0.05


def _base(dtype: np.dtype) -> int:
    """How many whole numbers from 0 on the dtype holds exactly; a power of two."""
    if dtype.kind == "b":
        return 2
    numbers = np.arange(1 << 8)
    if dtype.itemsize > 1 and dtype.kind in "fiuc":
        return 1 << (10 if dtype.itemsize == 2 else 20)
    with np.errstate(all="ignore"):
        same = numbers.astype(dtype).astype(np.float64) == numbers
    return 1 << int(np.log2(same.argmin() if not same.all() else 256))
