"""Pooling and its gradients."""

from __future__ import annotations

from burnish.backend.cuda.convolution import depthwise, windows
from burnish.ops._gpu.call import or_plain, plain
from burnish.ops._kernels.window import window
from burnish.ops.spatial import pool


def _reduced(form, x, w):
    """The "sum" or the "max" under each window, channels-last where x is."""
    if depthwise.pools(x, w):
        return depthwise.pooled(form, x, w)
    return windows.reduced(form, x, w)


@pool.max_pool.on("cupy", takes_bfloat16=True)
def _(x, *, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    options = (kernel_size, stride, padding, dilation, ceil_mode)
    w = pool.window_of("max_pool", x, *options)
    if not windows.takes(x):
        return plain(pool.max_pool, x, **dict(zip(_POOL, options, strict=True)))
    return _reduced("max", x, w)


@pool.max_pool.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x, **options):
    w = pool.window_of("max_pool", x, *(options[name] for name in _POOL))
    return or_plain(depthwise.max_gradient(g, y, x, w))


@pool.window_sum.on("cupy", takes_bfloat16=True)
def _(x, *, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    options = (kernel_size, stride, padding, dilation, ceil_mode)
    w = pool.window_of("window_sum", x, *options)
    if not windows.takes(x):
        return plain(pool.window_sum, x, **dict(zip(_POOL, options, strict=True)))
    return _reduced("sum", x, w)


@pool.window_spread.on("cupy")
def _(x, *, sizes, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    options = (kernel_size, stride, padding, dilation, ceil_mode)
    if not windows.takes(x):
        named = dict(zip(_POOL, options, strict=True))
        return pool.window_spread.value(x, sizes=sizes, **named)
    kernel, stride = pool._numbers(kernel_size, stride, len(sizes))
    w = window("window_spread", sizes, kernel, stride, padding, dilation, ceil_mode)
    return windows.spread(x, tuple(sizes), w)


_POOL = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
