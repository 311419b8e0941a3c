"""Depthwise convolutions of images, as products with banded matrices, and of signals.

A strip of rows of the result is a banded matrix, the weights of each column of the
kernel repeated along diagonals, times the rows that the strip sees: one product for all
columns of the kernel, all images and all places of a row. What the columns found is
then added up, each shifted by its place: a view, because between two rows are stored
the zeros that a shift runs into. Where the kernel has one row there is no band, and the
shifted rows are added up as they are.

Legend: N batch, C channels in, M channels out for each of them, (H, W) an image's
sizes, (P, Q) the result's, (K, L) the kernel's. A signal is an image of one row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from burnish.backend import Array
from burnish.ops._kernels.window import Window

_STRIP = 4  # rows that a strip sees: more cost products, fewer cost calls
_PART = 1 << 19  # products at a time: they are added up before they leave the cache

_view = np.lib.stride_tricks.as_strided


def correlated(x: Array, taps: Array, w: Window) -> Array:
    """x (N, C, *S), taps (C, M, *K) -> (N, C, M, *P)"""
    image, kernel, moves = _image(x, 2), _image(taps, 2), _flat(w)
    y = _correlated(image, kernel, *_forward(image.shape[-1], moves))
    return y.reshape(*y.shape[:3], *w.out)


def input_gradient(g: Array, taps: Array, w: Window, sizes: tuple[int, ...]) -> Array:
    """x's gradient (N, C, *sizes), from g (N, C, M, *P)"""
    image, kernel = _image(g, 3), _image(taps, 2)[..., ::-1]
    moves = _backward((1, *sizes)[-2:], _flat(w))
    y = _correlated(image[:, :, 0], kernel[:, :1], *moves)
    for m in range(1, g.shape[2]):
        y += _correlated(image[:, :, m], kernel[:, m : m + 1], *moves)
    return y.reshape(*y.shape[:2], *sizes)


def taps_gradient(x: Array, g: Array, w: Window) -> Array:
    """taps' gradient (C, M, *K), from x (N, C, *S), g (N, C, M, *P)"""
    image, moves = _image(x, 2), _flat(w)
    found = _taps(image, _image(g, 3), *_forward(image.shape[-1], moves))
    return found.reshape(*found.shape[:2], *w.kernel)


def _image(x: Array, lead: int) -> Array:
    """x with two axes behind `lead`: a signal has one row."""
    return x if x.ndim == lead + 2 else x[..., None, :]


def _flat(w: Window) -> Window:
    """`w` over images, where it is over signals."""
    if len(w.kernel) == 2:
        return w
    return Window(
        (1, *w.kernel), (1, *w.stride), (1, *w.dilation), ((0, 0), *w.pads), (1, *w.out)
    )


class _Rows(NamedTuple):
    """Which rows a strip of the result sees, and through which row of the kernel."""

    joined: Array  # (K, strip, tall): 1 where the kernel's row joins the two
    step: int  # rows between the first ones that two strips see
    above: int  # rows of zeros above the image; negative: rows left out
    out: int  # how many the result has

    @property
    def strip(self) -> int:
        return self.joined.shape[1]

    @property
    def tall(self) -> int:
        return self.joined.shape[2]

    @property
    def strips(self) -> int:
        return -(-self.out // self.strip)

    @property
    def seen(self) -> int:
        """Rows that any strip sees."""
        return (self.strips - 1) * self.step + self.tall


class _Columns(NamedTuple):
    """Where in a row the places of the result look."""

    kernel: int
    stride: int
    dilation: int
    before: int  # zeros before the image; negative: columns left out
    wide: int  # places in a stored row: the image's, then zeros
    apart: int  # places from one column of the image to the next
    out: int  # how many the result has

    @property
    def head(self) -> int:
        """Places before the first stored row."""
        return max(self.before, 0)

    @property
    def room(self) -> int:
        """Places before the first stored row and after the last."""
        return abs(self.before) + (self.kernel - 1) * self.dilation


def _forward(width: int, w: Window) -> tuple[_Rows, _Columns]:
    """How `w` moves over images of a width."""
    (kernel, long), (count, across) = w.kernel, w.out
    (stride, along), (dilation, apart) = w.stride, w.dilation
    strip = _strip(count, _STRIP // stride if kernel > 1 else 1)
    tall = (strip - 1) * stride + (kernel - 1) * dilation + 1
    k, row = np.indices((kernel, strip))
    joined = np.zeros((kernel, strip, tall), np.float32)
    joined[k, row, row * stride + k * dilation] = 1
    (above, _), (before, _) = w.pads
    columns = _columns(width, 1, long, along, apart, before, across)
    return _Rows(joined, strip * stride, above, count), columns


def _backward(sizes: tuple[int, ...], w: Window) -> tuple[_Rows, _Columns]:
    """How each place of the images is seen, from images as `_forward` gives them.

    The kernel's columns are turned round, its rows are not.
    """
    (high, wide), (kernel, long) = sizes, w.kernel
    (stride, along), (dilation, apart) = w.stride, w.dilation
    (above, _), (before, _) = w.pads
    strip = _strip(high, _STRIP if kernel > 1 else 1, stride)
    first = -(((kernel - 1) * dilation - above) // stride)
    tall = (strip - 1 + above) // stride - first + 1
    k, row = np.indices((kernel, strip))
    place, rest = np.divmod(row + above - k * dilation, stride)
    joined = np.zeros((kernel, strip, tall), np.float32)
    joined[k, row, place - first] = rest == 0
    before = (long - 1) * apart - before
    columns = _columns(w.out[1], along, long, 1, apart, before, wide)
    return _Rows(joined, strip // stride, -first, high), columns


def _strip(count: int, about: int, multiple: int = 1) -> int:
    """Rows in a strip, about so many: all strips have the same multiple."""
    strips = max(1, round(count / max(about, 1)))
    return -(-count // strips // multiple) * multiple


def _columns(
    width: int,
    apart: int,
    kernel: int,
    stride: int,
    dilation: int,
    before: int,
    count: int,
) -> _Columns:
    last = (width - 1) * apart
    after = (count - 1) * stride + (kernel - 1) * dilation - before - last
    wide = max(last + max(before, after, 0), (count - 1) * stride) + 1
    return _Columns(
        kernel, stride, dilation, before, wide + -wide % stride, apart, count
    )


def _correlated(x: Array, taps: Array, rows: _Rows, columns: _Columns) -> Array:
    """x (N, C, H, W), taps (C, M, K, L) -> (N, C, M, P, Q)"""
    (n, c), many = x.shape[:2], taps.shape[1]
    high, long = rows.strip, columns.kernel
    if rows.joined.size == 1:
        return _correlated_rows(x, taps[:, :, 0], rows, columns)
    band = taps.swapaxes(-1, -2) @ _flattened(rows, x.dtype)
    band = band.reshape(c, many, 1, long * high, rows.tall)
    y = np.empty((n, c, many, rows.out, columns.out), x.dtype)
    for images, channels in _parts(n, c, many, rows, columns):
        part = x[images]
        line = len(part) * columns.wide
        held = np.zeros((channels, rows.seen, line), x.dtype)
        room = columns.room + long * high * line
        made = np.zeros((channels, many, rows.strips, room), x.dtype)
        for first in range(0, c, channels):
            some = slice(first, first + channels)
            seen = _filled(held, part[:, some], rows, columns)
            found = made[: len(seen)]
            into = found[..., columns.head : columns.head + long * high * line]
            into = into.reshape(*found.shape[:3], long * high, line)
            np.matmul(band[some], _strips(seen, rows)[:, None], out=into)
            sums = _shifted(found, columns, high * line).sum(axis=3)
            sums = sums.reshape(*found.shape[:2], rows.strips * high, len(part), -1)
            sums = sums[:, :, : rows.out, :, : columns.out]
            y[images, some] = sums.transpose(3, 0, 1, 2, 4)
    return y


def _correlated_rows(x: Array, taps: Array, rows: _Rows, columns: _Columns) -> Array:
    """x (N, C, H, W), taps (C, M, L) -> (N, C, M, P, Q)"""
    (n, c), many = x.shape[:2], taps.shape[1]
    y = np.empty((n, c, many, rows.out, columns.out), x.dtype)
    for images, channels in _parts(n, c, many, rows, columns):
        part = x[images]
        line = len(part) * columns.wide
        held, middle = _room(channels, line, rows, columns, x.dtype)
        places = line // columns.stride
        sums = np.empty((channels, many, rows.strips, places), x.dtype)
        for first in range(0, c, channels):
            some = slice(first, first + channels)
            count = len(_filled(middle, part[:, some], rows, columns))
            moved = _moved(held[:count], rows, columns, line)[:, 0, ..., 0]
            moved = moved[..., :: columns.stride]  # (C, strips, L, places)
            labels, into = [0, 2, 3, 4], np.moveaxis(sums[:count], -1, 0)
            # in Fortran's order a row of places is the innermost loop
            np.einsum(
                moved, labels, taps[some], [0, 1, 3], [4, 0, 1, 2], out=into, order="F"
            )
            found = sums[:count].reshape(count, many, rows.strips, len(part), -1)
            y[images, some] = found[..., : columns.out].transpose(3, 0, 1, 2, 4)
    return y


def _taps(x: Array, g: Array, rows: _Rows, columns: _Columns) -> Array:
    """x (N, C, H, W), g (N, C, M, P, Q) -> the gradient of taps (C, M, K, L)"""
    (n, c), many = x.shape[:2], g.shape[2]
    high, tall, long = rows.strip, rows.tall, columns.kernel
    total = np.zeros((c, many, long, high, tall), x.dtype)
    apart = slice(None, columns.out * columns.stride, columns.stride)
    for images, channels in _parts(n, c, many, rows, columns):
        part = x[images]
        line = len(part) * columns.wide
        held, middle = _room(channels, line, rows, columns, x.dtype)
        shape = (channels, many, rows.strips * high, len(part), columns.wide)
        spread = np.zeros(shape, x.dtype)
        for first in range(0, c, channels):
            some = slice(first, first + channels)
            count = len(_filled(middle, part[:, some], rows, columns))
            given = g[images, some].transpose(1, 2, 3, 0, 4)
            spread[:count, :, : rows.out, :, apart] = given
            lines = spread[:count].reshape(count, many, rows.strips, 1, high, line)
            moved = _moved(held[:count], rows, columns, line)
            total[some] += (lines @ moved).sum(axis=2)
    found = total.reshape(c, many, long, -1) @ _flattened(rows, x.dtype).T
    return found.swapaxes(-1, -2)


def _flattened(rows: _Rows, dtype: np.dtype) -> Array:
    return rows.joined.reshape(len(rows.joined), -1).astype(dtype)


def _parts(
    n: int, c: int, many: int, rows: _Rows, columns: _Columns
) -> Iterator[tuple[slice, int]]:
    """Parts of a batch, and how many channels at a time: at most `_PART` products"""
    one = many * rows.strips * rows.strip * columns.kernel * columns.wide
    images = -(-n // -(-n // max(1, min(n, _PART // one))))
    channels = max(1, min(c, _PART // (one * images)))
    for first in range(0, n, images):
        yield slice(first, first + images), channels


def _room(
    channels: int, line: int, rows: _Rows, columns: _Columns, dtype: np.dtype
) -> tuple[Array, Array]:
    """Zeros for stored rows and all that a shift runs into, and the rows of them."""
    size = rows.seen * line
    held = np.zeros((channels, columns.room + size), dtype)
    middle = held[:, columns.head : columns.head + size]
    return held, middle.reshape(channels, rows.seen, line)


def _filled(held: Array, x: Array, rows: _Rows, columns: _Columns) -> Array:
    """x (N, C, H, W) as rows of all images (C, rows, N * wide), between zeros"""
    n, c, high, wide = x.shape
    lines = held[:c].reshape(c, rows.seen, n, columns.wide)
    under, out = max(rows.above, 0), max(-rows.above, 0)
    lines = lines[
        :, under : under + high - out, :, : wide * columns.apart : columns.apart
    ]
    lines[...] = x[:, :, out : out + lines.shape[1]].transpose(1, 2, 0, 3)
    return held[:c]


def _strips(held: Array, rows: _Rows) -> Array:
    """The rows that each strip sees: (C, strips, tall, line), a view"""
    channel, row, place = held.strides
    shape = (len(held), rows.strips, rows.tall, held.shape[2])
    return _view(held, shape, (channel, rows.step * row, row, place))


def _shifted(made: Array, columns: _Columns, size: int) -> Array:
    """Each kernel column's results at its offset: (C, M, strips, L, places), a view"""
    *lead, place = made.strides
    start = made[..., columns.head - columns.before :]
    shape = (*made.shape[:-1], columns.kernel, size // columns.stride)
    steps = ((size + columns.dilation) * place, columns.stride * place)
    return _view(start, shape, (*lead, *steps))


def _moved(held: Array, rows: _Rows, columns: _Columns, line: int) -> Array:
    """Each kernel column's inputs, by strip: (C, 1, strips, L, line, tall), a view"""
    channel, place = held.strides
    start = held[:, columns.head - columns.before :]
    shape = (len(held), 1, rows.strips, columns.kernel, line, rows.tall)
    lines = (rows.step * line * place, columns.dilation * place)
    return _view(start, shape, (channel, 0, *lines, place, line * place))
