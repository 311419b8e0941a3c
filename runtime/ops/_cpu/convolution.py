"""Convolutions, their gradients, and that of max pooling, by kernels."""

from __future__ import annotations

from math import prod

import numpy as np

from burnish.ops._cpu.call import dense, launch_shared, single, suits, usable
from burnish.ops._kernels.window import window
from burnish.ops.spatial import conv, pool

_FEW_PRODUCTS = 1 << 16
_FEW_INS, _FEW_OUTS = 2, 6
_FEW_TAPS = 2
"""Below any of these NumPy's products win: kernels compute 16 channels at a time."""

_LARGE = 1 << 20
_THIN = 9
"""Depthwise kernels go plane by plane for maps of at least so many elements and windows
of at most so many taps: to copy the maps to blocks of channels takes longer."""

_SEVERAL = 4

_SMALL_GROUP = 4
_LONG_ROW = 24
"""Groups of at most so many channels go plane by plane for rows from this length on."""


@conv.conv.on("numpy")
def _(x, weight, bias=None, *, stride=1, padding=0, dilation=1, groups=1):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    if _is_single(x, weight) and _fits(x, weight, bias, groups):
        w = window("conv", x.shape[2:], weight.shape[2:], *options.values())
        shape = len(x), len(weight), *w.out
        if 1 < groups == x.shape[1] and (maps := _planes(x, w, len(weight) // groups)):
            return maps.depthwise(dense(x), dense(weight), dense(bias), w)
        if groups > 1 and _has_small_groups(weight, w) and (maps := _maps(x, w)):
            return maps.grouped(dense(x), dense(weight), dense(bias), w, groups)
        products = prod(shape) * weight[0].size
        if _is_worth(products, x.shape[1], len(weight), w, groups):
            if _is_product(x, w):
                return _product(dense(weight), dense(x), bias)
            y = _planned("conv", (x, weight, bias), w, groups, shape)
            if y is not None:
                return y
    return conv.conv.value(x, weight, bias, **options, groups=groups)


@conv.conv_input_gradient.on("numpy")
def _(g, weight, *, sizes, padding, stride=1, dilation=1, groups=1):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    outs, ins = len(weight) // groups, weight.shape[1]
    if _is_single(g, weight) and g.shape[1] == len(weight) == outs * groups:
        w = conv.window_of(g, weight.shape[2:], stride, padding, dilation)
        shape = len(g), ins * groups, *sizes
        if outs == ins == 1 < groups and (maps := _planes(g, w)):
            return maps.depthwise_input_gradient(dense(g), dense(weight), w, sizes)
        products = g.size * weight[0].size
        if _is_worth(products, len(weight), shape[1], w, groups):
            x = _planned("conv_input_gradient", (g, weight), w, groups, shape)
            if x is not None:
                return x
    return conv.conv_input_gradient.value(
        g, weight, sizes=sizes, **options, groups=groups
    )


@conv.conv_weight_gradient.on("numpy")
def _(x, g, *, kernel, padding, stride=1, dilation=1, groups=1):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    ins, outs = x.shape[1] // groups, g.shape[1] // groups
    are_whole = (ins * groups, outs * groups) == (x.shape[1], g.shape[1])
    if _is_single(x, g) and len(x) == len(g) and are_whole:
        w = conv.window_of(g, kernel, stride, padding, dilation)
        shape = g.shape[1], ins, *w.kernel
        if ins == 1 < groups and (maps := _planes(x, w, outs)):
            return maps.depthwise_weight_gradient(dense(x), dense(g), w)
        products = g.size * prod(shape[1:])
        is_dense = _has_taps(w) or prod(w.stride) == 1
        if is_dense and _has_enough(products, x.shape[1], g.shape[1]):
            found = _planned("conv_weight_gradient", (x, g), w, groups, shape)
            if found is not None:
                return found
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


def _has_taps(w):
    """Whether a window has several taps: those of one are products of matrices."""
    return prod(w.kernel) >= _FEW_TAPS


def _is_worth(products, ins, outs, w, groups):
    """Whether a plan is faster; with one tap where it gives no more than it reads.

    NumPy's products of a matrix with few rows are slow; a plan changes the layouts of
    what it reads and gives.
    """
    has_few_rows = outs <= ins and prod(w.stride) == groups == 1
    return (_has_taps(w) or has_few_rows) and _has_enough(products, ins, outs)


def _has_enough(products, ins, outs):
    """Whether a plan is faster for so many products, and channels that they go over."""
    return (
        products >= _FEW_PRODUCTS and ins >= _FEW_INS and outs >= _FEW_OUTS and usable()
    )


def _is_product(x, w):
    """Whether to multiply maps as they are: to copy large ones to blocks takes longer.

    Several images, so that threads share them; the number of threads changes nothing.
    """
    fits = not _has_taps(w) and not any(map(any, w.pads))
    return fits and x.size >= _LARGE and len(x) >= _SEVERAL


def _product(weight, x, bias):
    """weight (O, C, 1, ..) times each of x (N, C, *S) -> (N, O, *S)"""
    from burnish.kernels.forms import whole

    outs, ins = weight.shape[:2]
    count, wide = len(x), prod(x.shape[2:])
    y = np.empty((count, outs, *x.shape[2:]), x.dtype)
    batch = {"size0": 1, "size1": 1, "size2": count}
    batch |= {"a0": 0, "a1": 0, "a2": 0, "b0": 0, "b1": 0, "b2": ins * wide}
    launch_shared(
        "matmul", y.size * ins / 8, count, ins * whole(wide), a=weight, b=x, out=y,
        rows=outs, k=ins, n=wide, a_row=ins, a_column=1, b_row=wide, b_column=1,
        **batch,
    )  # fmt: skip
    if bias is not None:
        y += bias.reshape(-1, *[1] * (x.ndim - 2))
    return y


def _planned(name, arrays, w, groups, shape):
    """The operator's result by its plan; None where there is none.

    Groups that are no blocks of channels are merged with zeros between them: where a
    result is not finite, its NaN may have come from another group.
    """
    options = {
        "stride": w.stride,
        "padding": w.pads,
        "dilation": w.dilation,
        "groups": groups,
        "kernel": w.kernel,
    }
    made = single(name, tuple(map(dense, arrays)), options, shape)
    if groups > 1 and made is not None:
        flat = made.reshape(-1)
        return made if np.isfinite(np.dot(flat, flat)) else None
    return made


def _has_small_groups(weight, w):
    """Whether the products with the zeros of merged groups cost more than planes do."""
    is_long = prod(w.stride) == 1 and w.out[-1] >= _LONG_ROW
    is_small = 1 < weight.shape[1] <= _SMALL_GROUP and len(w.kernel) < 3
    return is_small and is_long


def _maps(x, w):
    """The module of kernels that go plane by plane, where they take such an array."""
    if not suits(x):
        return None
    from burnish.ops._cpu import maps

    return maps if maps.fits(x, w) else None


def _planes(x, w, multiplier=1):
    """`_maps` where depthwise convolutions are faster so than in blocks of channels."""
    return _maps(x, w) if multiplier > 1 or _is_thin(x, w) else None


def _is_thin(x, w):
    """Whether copying a map takes longer than the convolution itself."""
    return prod(w.stride) == 1 and prod(w.kernel) <= _THIN and x.size >= _LARGE


@pool.max_pool.vjp("x", on="numpy")
def _(g, y, x, **options):
    w = pool.window_of("max_pool", x.shape[2:], *options.values())
    if x.dtype == g.dtype == np.float32 and (maps := _maps(x, w)):
        return maps.max_pool_gradient(dense(g), dense(x), w)
    return NotImplemented
