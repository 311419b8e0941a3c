"""im2col and col2im: windows as columns, and columns summed back to their windows.

Legend: N batch, C channels, *S an image's sizes, *K a block's, P how many places.
"""

from __future__ import annotations

from math import prod
from typing import Any

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import operator
from burnish.ops._kernels.window import Window, columns, cropped, padded, window


@operator
def im2col(
    x, /, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1
) -> Array:
    """Every window's content as a column: (N, C, *S) -> (N, C * prod(K), P)"""
    n, c, *sizes = x.shape
    w = window("im2col", tuple(sizes), kernel_size, stride, padding, dilation)
    seen = columns(padded(x, w.pads), w)
    return seen.reshape(n, c * prod(w.kernel), prod(w.out))


@im2col.vjp
def _(g, y, x, *, kernel_size, stride, padding, dilation):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    return col2im(g, sizes=x.shape[2:], kernel_size=kernel_size, **options)


@operator
def col2im(
    x,
    *,
    sizes: Any,
    kernel_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
) -> Array:
    """Columns added where their windows were: (N, C * prod(K), P) -> (N, C, *S)"""
    kernel = tuple(kernel_size)
    w = window("col2im", tuple(sizes), kernel, stride, padding, dilation)
    n, rows, places = x.shape
    count = prod(kernel)
    if rows % count or places != prod(w.out):
        raise InputError(
            f"col2im: expected (N, C * {count}, {prod(w.out)}) for an image "
            f"{tuple(sizes)} and blocks {kernel}, got {x.shape}"
        )
    parts = x.reshape(n, rows // count, *kernel, *w.out)
    y = namespace(x).zeros((n, rows // count, *_around(sizes, w)), x.dtype)
    for offset in w.offsets():
        y[w.under(offset)] += parts[:, :, *offset]
    return cropped(y, w.pads)


@col2im.vjp
def _(g, y, x, *, sizes, kernel_size, stride, padding, dilation):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    return im2col(g, kernel_size=tuple(kernel_size), **options)


def _around(sizes: Any, w: Window) -> list[int]:
    return [
        n + before + after for n, (before, after) in zip(sizes, w.pads, strict=True)
    ]
