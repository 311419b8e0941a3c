"""Convolutions and their gradients."""

from __future__ import annotations

from math import prod

from burnish.backend.cuda import layout
from burnish.backend.cuda.convolution import convolution, depthwise, windows
from burnish.backend.cuda.norms import rows
from burnish.backend.cuda.products import cublaslt
from burnish.ops._gpu.call import alike, or_plain, plain
from burnish.ops._kernels.blocks import blockwise
from burnish.ops._kernels.window import window
from burnish.ops.spatial import conv


@conv.conv.on("cupy", takes_bfloat16=True)
def _(x, weight, bias=None, *, stride=1, padding=0, dilation=1, groups=1):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    fits = x.ndim == weight.ndim and x.shape[1:2] == (weight.shape[1] * groups,)
    if not fits or x.ndim < 3 or not alike(x, weight, bias) or len(weight) % groups:
        return plain(conv.conv, x, weight, bias, groups=groups, **options)
    kernel = weight.shape[2:]
    w = window("conv", x.shape[2:], kernel, stride, padding, dilation)
    if depthwise.fits(x, weight, groups):
        return depthwise.depthwise(x, depthwise.taps(weight), w, bias)
    y = None
    if convolution.pays(x, groups):
        if (y := convolution.conv(x, weight, w, groups, bias)) is not None:
            return y
        y = convolution.conv(x, weight, w, groups)
    elif groups == 1:
        y = cublaslt.matmul(weight.reshape(len(weight), -1), _columns(x, w))
    if y is None:
        return plain(conv.conv, x, weight, bias, groups=groups, **options)
    y = y.reshape(len(x), len(weight), *w.out)
    if bias is None:
        return y
    return blockwise(_added, y, bias.reshape(-1, *(1 for _ in kernel)))


def _added(y, bias):
    return y + bias


@conv.conv.vjp("bias", on="cupy", takes_bfloat16=True)
@conv.conv_transpose.vjp("bias", on="cupy", takes_bfloat16=True)
def _(g, y, x, weight, bias, **options):
    if not g.size:
        return NotImplemented
    turned = g.transpose(0, *range(2, g.ndim), 1)
    if turned._c_contiguous:
        sizes = g.size // g.shape[1], g.shape[1], 1
        return or_plain(rows.channel_sums(turned, *sizes))
    return or_plain(rows.channel_sums(g, len(g), g.shape[1], prod(g.shape[2:])))


def _columns(x, w):
    """im2col, the input elements of each output position: (N, C * prod(K), prod(P))"""
    if prod(w.kernel) == 1 and set(w.stride) == {1} and not any(map(any, w.pads)):
        return x.reshape(*x.shape[:2], prod(w.out))
    return windows.columns(x, x.shape[2:], w, together=False)


@conv.conv_input_gradient.on("cupy", takes_bfloat16=True)
def _(g, weight, *, sizes, padding, stride=1, dilation=1, groups=1):
    pads = tuple(map(tuple, padding))
    w = conv.window_of(g, weight.shape[2:], stride, pads, dilation)
    cols = None
    if alike(g, weight) and groups > 1:
        y = _by_channel(g, weight, w, sizes, groups)
        if y is not None:
            return y
    if alike(g, weight) and convolution.pays(g, groups):
        y = convolution.input_gradient(g, weight, w, tuple(sizes), groups)
        if y is not None:
            return y
    if groups == 1 and alike(g, weight):
        slopes = g.reshape(*g.shape[:2], prod(w.out))
        cols = cublaslt.matmul(weight.reshape(len(weight), -1).T, slopes)
    if cols is None:
        options = {"stride": stride, "dilation": dilation, "groups": groups}
        given = {"sizes": sizes, "padding": padding, **options}
        return plain(conv.conv_input_gradient, g, weight, **given)
    return windows.spread_columns(cols, (len(g), weight.shape[1], *sizes), w)


@conv.conv_transpose.on("cupy", takes_bfloat16=True)
def _(
    x,
    weight,
    bias=None,
    *,
    stride=1,
    padding=0,
    output_padding=0,
    dilation=1,
    groups=1,
):
    y = conv.conv_transpose.value(
        x,
        weight,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
    )
    lead = (-1, *(1,) * (x.ndim - 2))
    return y if bias is None else blockwise(_added, y, bias.reshape(lead))


def _by_channel(g, weight, w, sizes, groups):
    """A depthwise convolution's input gradient: one by the flipped kernel, or None."""
    around = depthwise.flipped(w, sizes)
    if around is None or not depthwise.fits(g, weight, groups):
        return None
    if min(map(min, around.pads)) < 0:
        return None
    return depthwise.depthwise(g, depthwise.taps(weight)[::-1].copy(), around)


@conv.conv_weight_gradient.on("cupy", takes_bfloat16=True)
def _(x, g, *, kernel, padding, stride=1, dilation=1, groups=1):
    pads = tuple(map(tuple, padding))
    w = conv.window_of(g, kernel, stride, pads, dilation)
    if alike(x, g) and convolution.pays(x, groups):
        y = convolution.weight_gradient(x, g, w, groups)
        if y is not None:
            return y
    if groups == 1 and alike(x, g):
        total = None
        for part in conv._parts(len(x), x.shape[1] // _ROOM + 1, w):
            cols = windows.columns(x[part], x.shape[2:], w, together=True)
            cols = cols.reshape(len(cols), -1)
            slopes = g[part].reshape(-1, g.shape[1], prod(w.out)).swapaxes(0, 1)
            slopes = layout.contiguous(slopes).reshape(g.shape[1], -1)
            found = cublaslt.matmul(slopes, cols.T)
            if found is None:
                break
            total = found if total is None else total + found
        else:
            if total is not None:
                return total.reshape(g.shape[1], x.shape[1], *kernel)
    options = {"stride": stride, "dilation": dilation, "groups": groups}
    given = {"kernel": kernel, "padding": padding, **options}
    return plain(conv.conv_weight_gradient, x, g, **given)


_ROOM = 128
