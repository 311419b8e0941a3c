"""Convolutions over any number of spatial axes, through matrix products.

Legend: N batch, C channels in, O channels out, *S sizes in, *K kernel, *P sizes out.
The three operators `conv`, `conv_input_gradient` and `conv_weight_gradient` are the
derivatives of one trilinear form, so each one's gradients are the other two.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import operator
from burnish.ops._kernels.depthwise import (
    depthwise,
    depthwise_input_gradient,
    depthwise_weight_gradient,
)
from burnish.ops._kernels.window import (
    Window,
    columns,
    cropped,
    each,
    padded,
    pairs,
    window,
)
from burnish.ops._shapes import sum_to


@operator
def conv(
    x,
    weight,
    bias=None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """Correlation: x (N, C, *S), weight (O, C/groups, *K), bias (O,) -> (N, O, *P)

    padding: a number, one for each axis, or (before, after) for each axis.
    """
    _check("conv", x, weight, groups)
    kernel = weight.shape[2:]
    w = window("conv", x.shape[2:], kernel, stride, padding, dilation)
    if x.dtype == np.float16:  # summed in single precision, rounded once
        wide = (None if a is None else a.astype(np.float32) for a in (x, weight, bias))
        x, weight, bias = wide
        return _with_bias(_correlate(x, weight, w, groups), bias).astype(np.float16)
    return _with_bias(_correlate(x, weight, w, groups), bias)


@conv.vjp("x")
def _(g, y, x, weight, bias=None, *, padding, **options):
    sizes, pads = x.shape[2:], _pads(x, weight, padding, **options)
    return conv_input_gradient(g, weight, sizes=sizes, padding=pads, **options)


@conv.vjp("weight")
def _(g, y, x, weight, bias=None, *, padding, **options):
    kernel, pads = weight.shape[2:], _pads(x, weight, padding, **options)
    return conv_weight_gradient(x, g, kernel=kernel, padding=pads, **options)


@conv.vjp("bias")
def _(g, y, x, weight, bias, **options):
    return _channel_sums(g)


@operator
def conv_transpose(
    x,
    weight,
    bias=None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """The adjoint of `conv`: x (N, O, *P), weight (O, C/groups, *K) -> (N, C, *S)

    Sizes: S = (P - 1) * stride - padding before and after + the kernel's span
    + output_padding. bias is (C,).
    """
    if x.shape[1] != weight.shape[0]:
        raise InputError(
            f"conv_transpose: x has {x.shape[1]} channels, "
            f"but weight {weight.shape} takes {weight.shape[0]}"
        )
    rank = len(weight.shape) - 2
    stride = each(stride, rank, "conv_transpose: stride")
    dilation = each(dilation, rank, "conv_transpose: dilation")
    extra = each(output_padding, rank, "conv_transpose: output_padding")
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:], strict=True)]
    pads = pairs(padding, x.shape[2:], spans, stride, "conv_transpose")
    sizes = tuple(
        (p - 1) * s - sum(pad) + span + e
        for p, s, pad, span, e in zip(
            x.shape[2:], stride, pads, spans, extra, strict=True
        )
    )
    if min(sizes, default=0) < 0:
        raise InputError(
            f"conv_transpose: expected padding that leaves something of x {x.shape}, "
            f"got {pads}, which makes sizes {sizes}"
        )
    options = {"stride": stride, "dilation": dilation, "groups": groups}
    y = conv_input_gradient(x, weight, sizes=sizes, padding=pads, **options)
    return _with_bias(y, bias)


@conv_transpose.vjp("x")
def _(g, y, x, weight, bias=None, *, output_padding, **options):
    return _fit(conv(g, weight, **options), x.shape)


@conv_transpose.vjp("weight")
def _(g, y, x, weight, bias=None, *, output_padding, padding, **options):
    kernel, pads = weight.shape[2:], _pads(g, weight, padding, **options)
    return conv_weight_gradient(g, x, kernel=kernel, padding=pads, **options)


@conv_transpose.vjp("bias")
def _(g, y, x, weight, bias, **options):
    return _channel_sums(g)


@operator
def conv_input_gradient(
    g,
    weight,
    *,
    sizes: tuple[int, ...],
    padding: Any,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """`conv`'s gradient with respect to x (N, C, *sizes), from g (N, O, *P)."""
    w = window_of(g, weight.shape[2:], stride, padding, dilation)
    n, o = g.shape[:2]
    xp = namespace(g)
    c = weight.shape[1] * groups
    if groups > 1 and weight.shape[1] == 1:
        return depthwise_input_gradient(g, weight, w, sizes, c)
    room = [s + b + a for s, (b, a) in zip(sizes, padding, strict=True)]
    kernel = weight.reshape(groups, o // groups, -1)
    if prod(w.kernel) == 1 and tuple(room) == w.out:  # each place is read once
        rows = g.reshape(n, groups, o // groups, prod(w.out))
        return cropped((kernel.mT @ rows).reshape(n, c, *room), padding)
    out = xp.zeros((n, c, *room), xp.result_type(g, weight))
    for part in _parts(n, c, w):
        rows = g[part].reshape(-1, groups, o // groups, prod(w.out))
        cols = kernel.mT @ rows
        cols = cols.reshape(-1, c, *w.kernel, *w.out)
        y = out[part]
        for offset in w.offsets():
            y[w.under(offset)] += cols[(slice(None), slice(None), *offset)]
    return cropped(out, padding)


@conv_input_gradient.vjp("g")
def _(g, y, grad, weight, *, sizes, **options):
    return _fit(conv(g, weight, **options), grad.shape)


@conv_input_gradient.vjp("weight")
def _(g, y, grad, weight, *, sizes, **options):
    return conv_weight_gradient(g, grad, kernel=weight.shape[2:], **options)


@operator
def conv_weight_gradient(
    x,
    g,
    *,
    kernel: tuple[int, ...],
    padding: Any,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """`conv`'s gradient with respect to weight (O, C/groups, *kernel)."""
    w = window_of(g, kernel, stride, padding, dilation)
    n, c = x.shape[:2]
    o = g.shape[1]
    xp = namespace(x)
    if groups > 1 and c == groups:
        return depthwise_weight_gradient(x, g, w)
    x = padded(x, padding)
    total = xp.zeros((groups, o // groups, c // groups * prod(kernel)), x.dtype)
    for part in _parts(n, c, w):  # a product for each group over all places of a part
        cols = xp.moveaxis(columns(x[part], w), 0, 1 + len(kernel))
        cols = cols.reshape(groups, total.shape[-1], -1)
        rows = xp.moveaxis(g[part], 0, 1).reshape(groups, o // groups, -1)
        total = total + rows @ cols.swapaxes(-1, -2)
    return total.reshape(o, c // groups, *kernel)


def _parts(n: int, c: int, w: Window) -> list[slice]:
    """Parts of a batch whose columns are a few times those of `_COLUMNS`."""
    step = max(1, 8 * _COLUMNS // max(1, c * prod(w.kernel) * prod(w.out)))
    return [slice(start, start + step) for start in range(0, n, step)]


@conv_weight_gradient.vjp("x")
def _(g, y, x, grad, *, kernel, **options):
    return conv_input_gradient(grad, g, sizes=x.shape[2:], **options)


@conv_weight_gradient.vjp("g")
def _(g, y, x, grad, *, kernel, **options):
    return _fit(conv(x, g, **options), grad.shape)


def _correlate(x: Array, weight: Array, w: Window, groups: int) -> Array:
    """Every kernel at every place of x."""
    n, c = x.shape[:2]
    o = weight.shape[0]
    if groups > 1 and c == groups:
        return depthwise(x, weight, w)
    x = padded(x, w.pads)
    kernel = weight.reshape(groups, o // groups, -1)
    pointwise = prod(w.kernel) == 1
    cols = x[w.under((0,) * len(w.kernel))] if pointwise else columns(x, w)
    if pointwise or namespace(x) is not np or not cols.size:
        y = kernel @ cols.reshape(n, groups, kernel.shape[-1], prod(w.out))
        return y.reshape(n, o, *w.out)
    dtype = np.result_type(x, weight)
    y = np.empty((n, groups, o // groups, *w.out), dtype)
    parts = cols.reshape(n, groups, c // groups, *cols.shape[2:])  # still a view
    whole = (slice(None),) * (2 + len(w.kernel))
    behind = prod(w.out[1:])
    step = max(1, _COLUMNS // (kernel.shape[-1] * groups * behind))
    for i in range(n):
        for start in range(0, w.out[0], step):
            rows = slice(start, start + step)
            seen = parts[i][(*whole, rows)].reshape(groups, kernel.shape[-1], -1)
            part = y[i, :, :, rows]
            part[...] = (kernel @ seen).reshape(part.shape)
    return y.reshape(n, o, *w.out)


_COLUMNS = 1 << 18
"""Elements of columns that are made at a time: they are used while in cache."""


def window_of(g: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Window:
    """The geometry of a convolution whose output has g's sizes."""
    stride = each(stride, len(kernel), "conv: stride")
    dilation = each(dilation, len(kernel), "conv: dilation")
    pads = tuple(map(tuple, padding))
    return Window(tuple(kernel), stride, dilation, pads, g.shape[2:])


def _pads(
    x: Any, weight: Any, padding: Any, stride: Any, dilation: Any, **_: Any
) -> Any:
    """`padding` as (before, after) pairs."""
    rank = len(weight.shape) - 2
    dilation = each(dilation, rank, "conv: dilation")
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:], strict=True)]
    stride = each(stride, rank, "conv: stride")
    return pairs(padding, x.shape[2:], spans, stride, "conv")


def _fit(y: Any, shape: tuple[int, ...]) -> Any:
    """y without the places that only an output_padding reached."""
    return y if y.shape == shape else y[tuple(map(slice, shape))]


def _with_bias(y: Array, bias: Array | None) -> Array:
    if bias is None:
        return y
    bias = bias.reshape(-1, *(1 for _ in y.shape[2:]))
    if y.dtype != bias.dtype:
        return y + bias
    y += bias
    return y


def _channel_sums(g: Any) -> Any:
    c = g.shape[1]
    return sum_to(g, shape=(1, c, *(1 for _ in g.shape[2:]))).reshape(c)


def _check(where: str, x: Array, weight: Array, groups: int) -> None:
    if x.ndim != weight.ndim or x.ndim < 3:
        raise InputError(
            f"{where}: expected x with the axes (batch, channels, *spatial) of weight "
            f"{weight.shape}, got x {x.shape}"
        )
    if x.shape[1] != weight.shape[1] * groups:
        raise InputError(
            f"{where}: x has {x.shape[1]} channels, but weight {weight.shape} with "
            f"groups={groups} takes {weight.shape[1] * groups}"
        )
    if weight.shape[0] % groups:
        raise InputError(
            f"{where}: weight {weight.shape} has {weight.shape[0]} output channels, "
            f"expected a multiple of groups={groups}"
        )
