"""Convolutions, their gradients, and that of max pooling, by kernels."""

from __future__ import annotations

from math import prod

import numpy as np

from burnish.ops import conv, pool
from burnish.ops._cpu.call import dense, suits
from burnish.ops._kernels.window import window

_FEW_PRODUCTS = 1 << 18
_FEW_ROWS = 6
_FEW_DEEP = 64
_FEW_TAPS = 2
_FEW_PLACES = 256
"""Below any of these, or where a stride goes over more places, NumPy's products win."""


@conv.conv.on("numpy")
def _(x, weight, bias=None, *, stride=1, padding=0, dilation=1, groups=1):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    if _is_single(x, weight) and _fits(x, weight, bias, groups):
        w = window("conv", x.shape[2:], weight.shape[2:], *options.values())
        given = dense(x), dense(weight), dense(bias)
        if 1 < groups == x.shape[1]:
            if maps := _planes(x, w):
                return maps.depthwise(*given, w)
        elif maps := _forward_maps(x, w, len(weight) // groups, weight[0].size):
            return maps.correlated(*given, w, groups)
    return conv.conv.value(x, weight, bias, **options, groups=groups)


@conv.conv_input_gradient.on("numpy")
def _(g, weight, *, sizes, padding, stride=1, dilation=1, groups=1):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    outs = len(weight) // groups
    if _is_single(g, weight) and g.shape[1] == len(weight) == outs * groups:
        w = conv.window_of(g, weight.shape[2:], stride, padding, dilation)
        given = dense(g), dense(weight), w, sizes
        if outs == weight.shape[1] == 1 < groups:
            if maps := _planes(g, w):
                return maps.depthwise_input_gradient(*given)
        elif maps := _maps(g, w, weight.shape[1], outs * prod(w.kernel)):
            return maps.input_gradient(*given, groups)
    return conv.conv_input_gradient.value(
        g, weight, sizes=sizes, **options, groups=groups
    )


@conv.conv_weight_gradient.on("numpy")
def _(x, g, *, kernel, padding, stride=1, dilation=1, groups=1):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    is_depthwise = 1 < groups == x.shape[1] and not g.shape[1] % groups
    if is_depthwise and _is_single(x, g) and len(x) == len(g):
        w = conv.window_of(g, kernel, stride, padding, dilation)
        if maps := _planes(x, w):
            return maps.depthwise_weight_gradient(dense(x), dense(g), w)
    return conv.conv_weight_gradient.value(
        x, g, kernel=kernel, **options, groups=groups
    )


def _is_single(x, other):
    """Whether both are float32 and of as many axes."""
    return x.dtype == other.dtype == np.float32 and x.ndim == other.ndim > 2


def _fits(x, weight, bias, groups):
    """Whether channels are as many as the weight and the bias say."""
    alike = bias is None or (bias.shape == weight.shape[:1] and bias.dtype == x.dtype)
    return alike and x.shape[1] == weight.shape[1] * groups and not len(weight) % groups


def _planes(x, w):
    """The module of kernels that go plane by plane, where they take such an array."""
    if not suits(x):
        return None
    from burnish.ops._cpu import maps

    return maps if maps.fits(x, w) else None


def _forward_maps(x, w, rows, depth):
    """`_maps` for a convolution itself, which may go over places by a stride."""
    strided = prod(w.stride) > 1 and prod(w.out) > _FEW_PLACES
    return None if strided else _maps(x, w, rows, depth)


def _maps(x, w, rows, depth):
    """The module of kernels that multiply, where NumPy's products are slower.

    rows: channels of the result in a group. depth: how many numbers each one sums.
    """
    products = len(x) * prod(w.out) * rows * depth
    if rows < _FEW_ROWS or products < _FEW_PRODUCTS:
        return None
    if prod(w.kernel) < _FEW_TAPS or depth < _FEW_DEEP:
        return None
    return _planes(x, w)


@pool.max_pool.vjp("x", on="numpy")
def _(g, y, x, **options):
    w = pool.window_of("max_pool", x, *options.values())
    if x.dtype == g.dtype == np.float32 and (maps := _planes(x, w)):
        return maps.max_pool_gradient(dense(g), dense(x), w)
    return NotImplemented
