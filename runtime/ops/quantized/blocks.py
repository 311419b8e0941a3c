"""Block-quantized arrays: a block shares a scale and perhaps a zero point.

x is near (q - zero_point) * scale. `blocks` says how far a scale reaches along each
axis; with fewer blocks than axes the last one is for all axes that are left, read as
one: (size,) is one scale for all, (1, 64) one for 64 neighbours of a row. The last
block of an axis may be shorter. Scales have one number a block, and as many axes.

`quantize_linear` has the forms that model files know, with axes and zero points.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import memory_bound, operator
from burnish.ops._shapes import cast
from burnish.ops.quantized.small import (
    STORES,
    encoded,
    packed,
    rounded,
    small,
    unpacked,
)


@operator
def quantize_blocks(
    x,
    scales,
    zero_points=None,
    *,
    value: str = "q8s",
    blocks: tuple[int, ...],
    store: str | None = "native",
) -> Array:
    """rint(x / scale) + zero_point, saturated, as codes

    value: "q8s" (-127 to 127), "q8f" (-128 to 127), "q16s", "q16f", "q4s", "q4f",
    "q2s", "q2f", or the floats "e4m3", "e5m2", "e2m1". store: "native" has a code an
    element, in x's shape; "packed_u8" and "packed_u32" have no gaps, in one axis, the
    first code lowest.
    """
    kind = small(value)
    if store not in STORES:
        raise InputError(
            f"quantize_blocks: expected store out of {', '.join(STORES)}, got {store!r}"
        )
    numbers = _numbers(x, scales, zero_points, value, blocks)
    codes = encoded(_joined(numbers, x.shape, blocks), kind)
    return packed(codes, kind, store)


@memory_bound
@operator
def dequantize_blocks(
    codes,
    scales,
    zero_points=None,
    *,
    value: str = "q8s",
    blocks: tuple[int, ...],
    store: str | None = "native",
    shape: tuple[int, ...],
    dtype: Any = np.float32,
) -> Array:
    """(q - zero_point) * scale of `quantize_blocks`, in the shape that x had"""
    numbers = _split(unpacked(codes, small(value), store, shape), blocks)
    values = _values(numbers, scales, zero_points, _view(shape, blocks), blocks)
    return _joined(values, shape, blocks).astype(dtype, copy=False)


@memory_bound
@operator
def fake_quantize(
    x, scales, zero_points=None, *, value: str = "q8s", blocks: tuple[int, ...]
) -> Array:
    """x quantized and dequantized in blocks, in x's dtype

    The gradient of x goes straight through where x is in range and is 0 elsewhere;
    that of the scales is of LSQ (https://arxiv.org/abs/1902.08153).
    """
    numbers = _numbers(x, scales, zero_points, value, blocks)
    values = _values(numbers, scales, zero_points, _view(x.shape, blocks), blocks)
    return _joined(values, x.shape, blocks).astype(x.dtype, copy=False)


@fake_quantize.vjp("x")
def _(g, y, x, scales, zero_points=None, *, value, blocks):
    inside, _ = fake_quantize_slopes(x, scales, zero_points, value=value, blocks=blocks)
    return g * cast(inside, dtype=g.dtype)


@fake_quantize.vjp("scales")
def _(g, y, x, scales, zero_points=None, *, value, blocks):
    _, slopes = fake_quantize_slopes(x, scales, zero_points, value=value, blocks=blocks)
    return block_sums(cast(g, dtype=slopes.dtype) * slopes, blocks=blocks)


@operator
def fake_quantize_slopes(
    x, scales, zero_points=None, *, value: str, blocks: tuple[int, ...]
) -> tuple[Array, Array]:
    """Where x is in range; d fake_quantize / d scale, both in x's shape"""
    kind, xp = small(value), namespace(x)
    scale = _beside(scales, _view(x.shape, blocks), blocks)
    y = _split(_wide(x), blocks) / scale
    zero: Any = 0
    if zero_points is not None:
        zero = _beside(zero_points, _view(x.shape, blocks), blocks)
    level = (xp.rint(y) if kind.whole else y) + zero
    inside = (level >= kind.low) & (level <= kind.high)
    number = _numbers(x, scales, zero_points, value, blocks) - zero
    slopes = number - y * inside
    return _joined(inside, x.shape, blocks), _joined(slopes, x.shape, blocks)


@operator
def block_sums(x, *, blocks: tuple[int, ...]) -> Array:
    """The sum of each block; one number a block, as many axes"""
    return block_groups(x, blocks).sum(axis=-1)


def block_groups(x, blocks: tuple[int, ...]):
    """(blocks along each axis..., values of a block), short ones with zeros"""
    xp, view = namespace(x), _view(x.shape, blocks)
    blocks = tuple(map(min, blocks, (max(n, 1) for n in view)))
    x = _filled(x.reshape(view), blocks)
    split = [part for n, b in zip(x.shape, blocks, strict=True) for part in (n // b, b)]
    counts, inner = range(0, len(split), 2), range(1, len(split), 2)
    x = xp.transpose(x.reshape(split), (*counts, *inner))
    return x.reshape(*x.shape[: len(blocks)], math.prod(blocks))


def _numbers(x, scales, zero_points, value, blocks):
    """x / scale + zero_point as numbers of the kind, in split axes"""
    view = _view(x.shape, blocks)
    y = _split(_wide(x), blocks) / _beside(scales, view, blocks)
    kind = small(value)
    if zero_points is None:
        return rounded(y, kind)
    y = namespace(y).rint(y) + _beside(zero_points, view, blocks)
    return rounded(y, kind)


def _values(numbers, scales, zero_points, view, blocks):
    if zero_points is not None:
        zero = _beside(zero_points, view, blocks)
        numbers = numbers.astype(np.float32) - zero
    return numbers * _beside(scales, view, blocks)


def _wide(x):
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


def _view(shape, blocks):
    """The shape of x with the axes from the last block on as one."""
    kept = len(blocks) - 1
    if len(shape) < kept:
        raise InputError(
            f"quantization: expected at least {kept} axes for blocks {blocks}, "
            f"got shape {tuple(shape)}"
        )
    return (*shape[:kept], math.prod(shape[kept:]))


def _split(x, blocks):
    """x with every axis that has several blocks as two: (blocks, places in one)"""
    x = _filled(x.reshape(_view(x.shape, blocks)), blocks)
    parts: list[int] = []
    for n, b in zip(x.shape, blocks, strict=True):
        parts += [n // b, b] if 1 < b < n else [n]
    return x.reshape(parts)


def _filled(x, blocks):
    more = [-n % b if 1 < b < n else 0 for n, b in zip(x.shape, blocks, strict=True)]
    return namespace(x).pad(x, [(0, m) for m in more]) if any(more) else x


def _joined(x, shape, blocks):
    """The inverse of `_split`: padding is cut off"""
    view = _view(shape, blocks)
    full = [
        -(-n // b) * b if 1 < b < n else n for n, b in zip(view, blocks, strict=True)
    ]
    x = x.reshape(full)
    if tuple(full) != view:
        x = x[tuple(map(slice, view))]
    return x.reshape(shape)


def _beside(values, view, blocks):
    """Scales or zero points, float32, in a shape that broadcasts to split axes

    An array of size 0 may have the one scale that it has in other sizes.
    """
    count = tuple(-(-n // b) for n, b in zip(view, blocks, strict=True))
    if 0 in view and len(values.shape) == len(view):
        held = zip(values.shape, view, count, strict=True)
        count = tuple(c if n == 0 and c == 1 else wanted for c, n, wanted in held)
    if tuple(values.shape) != count:
        raise InputError(
            f"quantization: expected scales of shape {count} for blocks {blocks} of "
            f"an array {view}, got {tuple(values.shape)}"
        )
    parts: list[int] = []
    for n, b, c in zip(view, blocks, count, strict=True):
        parts += [c, 1] if 1 < b < n else [c]
    return values.astype(np.float32, copy=False).reshape(parts)
