"""Many arrays in one launch: copied, cast, divided by a factor, turned or packed."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend.cuda.kernels import ELEMENTS, by_value, kernel, wide
from burnish.backend.cuda.layout import contiguous, empty

_THREADS, _PIECE, _MOST = 256, 2048, 100
_TURNED = 80
"""Arrays of a launch that turns them: kernels take 4 KB of arguments."""
_BYTES = 1 << 14
"""Bytes that a block copies."""
_ROOM = 64
"""Elements that packed arrays begin at multiples of: 256 bytes of float32."""


def cast_all(arrays: list[Any], dtype: Any, scale: Any = None) -> list[Any]:
    """Floating arrays with a dtype; those that have it are the same arrays.

    scale: what they are divided by, a `Scale`; then all results are new, and those of
    other dtypes than half precision keep theirs.
    """
    import cupy

    made, groups = list(arrays), dict[Any, list[int]]()
    for i, array in enumerate(arrays):
        out = dtype if array.dtype.itemsize < 4 or scale is None else array.dtype
        if array.size and (array.dtype != out or scale is not None):
            made[i] = cupy.ndarray(array.shape, out)
            groups.setdefault((array.dtype, np.dtype(out)), []).append(i)
    beside = () if scale is None else (scale.state, scale.overflow)
    for (kind, out), places in groups.items():
        run = _casts(kind, out, scaled=scale is not None)
        pairs = [(contiguous(arrays[i]), made[i]) for i in places]
        _launched(run, [(*p, p[0].size) for p in pairs], _PIECE, beside)
    return made


def turned_all(arrays: list[Any], dtype: Any) -> list[Any]:
    """Arrays (N, C, *S) in C order with another floating dtype and channels last."""
    made = [empty(array.shape, np.dtype(dtype)) for array in arrays]
    groups: dict[Any, list[Any]] = {}
    for x, y in zip(arrays, made, strict=True):
        if x.size:
            n, c = x.shape[:2]
            row = contiguous(x), y, x.size, c, x.size // (n * c)
            groups.setdefault(x.dtype, []).append(row)
    for kind, rows in groups.items():
        _launched(_casts(kind, np.dtype(dtype), turned=True), rows, _PIECE, (), _TURNED)
    return made


def packed(arrays: list[Any], dtype: Any, weight: Any) -> tuple[Any, list[Any]]:
    """Floating arrays times a weight, in one array of a dtype; and each one's part.

    weight: one float64 on the GPU.
    """
    import cupy

    starts = np.cumsum([0, *(-(-array.size // _ROOM) * _ROOM for array in arrays)])
    whole = cupy.empty(int(starts[-1]), dtype)
    parts = [
        whole[start : start + array.size].reshape(array.shape)
        for start, array in zip(starts.tolist(), arrays, strict=False)
    ]
    groups: dict[Any, list[Any]] = {}
    for x, y in zip(arrays, parts, strict=True):
        if x.size:
            groups.setdefault(x.dtype, []).append((contiguous(x), y, x.size))
    for kind, rows in groups.items():
        run = _casts(kind, whole.dtype, weighed=True)
        _launched(run, rows, _PIECE, (weight,))
    return whole, parts


def copy_all(pairs: list[tuple[Any, Any]], scale: Any = None) -> None:
    """Give arrays the values of others like them: (to, from) for each.

    Those to write to are contiguous. scale: a `Scale`; nothing is copied where its
    gradients overflowed.
    """
    run = kernel("copies", skips=scale is not None, most=_MOST, piece=_BYTES)
    written = {y.data.ptr for y, _ in pairs}
    given = [
        (x.copy() if x.data.ptr in written else contiguous(x), y, y.nbytes)
        for y, x in pairs
        if y.nbytes
    ]
    beside = () if scale is None else (scale.overflow,)
    _launched(run, given, _BYTES, beside)


def _casts(
    kind: Any,
    out: Any,
    scaled: bool = False,
    weighed: bool = False,
    turned: bool = False,
) -> Any:
    return kernel(
        "casts",
        element=ELEMENTS[kind.name],
        out=ELEMENTS[out.name],
        wide=wide(kind, out),
        scaled=scaled,
        weighed=weighed,
        turned=turned,
        most=_TURNED if turned else _MOST,
        piece=_PIECE,
    )


def _launched(
    run: Any, rows: list[Any], piece: int, beside: tuple[Any, ...], most: int = _MOST
) -> None:
    """rows: source, target, number of elements, sizes; a block takes a piece."""
    for start in range(0, len(rows), most):
        some = rows[start : start + most]
        table, blocks = np.zeros((len(some[0]) + 1, most), np.int64), 0
        for i, (x, y, size, *sizes) in enumerate(some):
            table[:, i] = x.data.ptr, y.data.ptr, size, blocks, *sizes
            blocks += -(-size // piece)
        run((blocks,), (_THREADS,), (by_value(table), len(some), *beside))
