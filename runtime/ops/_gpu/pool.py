"""Pooling and its gradients."""

from __future__ import annotations

from functools import partial

from burnish.backend.cuda.convolution import depthwise, windows
from burnish.ops._gpu.call import or_plain, together
from burnish.ops._kernels.window import window
from burnish.ops.spatial import pool


def _reduced(form, op, x, options):
    """The "sum" or the "max" under each window, channels-last where x is."""
    w = pool.window_of(op.name, x.shape[2:], *options)
    if not windows.takes(x):
        return None
    if depthwise.pools(x, w):
        return partial(depthwise.pooled, form, w=w)
    return windows.reduced(form, x, w)


@pool.max_pool.prepared
def _(x, *, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    options = (kernel_size, stride, padding, dilation, ceil_mode)
    return _reduced("max", pool.max_pool, x, options)


@pool.max_pool.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x, **options):
    w = pool.window_of("max_pool", x.shape[2:], *(options[name] for name in _POOL))
    return or_plain(depthwise.max_gradient(g, y, x, w))


@pool.window_sum.prepared
def _(x, *, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    options = (kernel_size, stride, padding, dilation, ceil_mode)
    return _reduced("sum", pool.window_sum, x, options)


@pool.window_sum.prepared_vjp
def _(g, y, x, *, needed, **options):
    def to_x():
        run = _window_spread(g, sizes=x.shape[2:], **options)
        return run and (lambda g, y, x: run(g))

    return together(needed, to_x)


@pool.window_spread.prepared
def _window_spread(
    x, *, sizes, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False
):
    if not windows.takes(x):
        return None
    kernel, stride = pool._numbers(kernel_size, stride, len(sizes))
    w = window("window_spread", sizes, kernel, stride, padding, dilation, ceil_mode)
    return windows.spread(x, tuple(sizes), w)


_POOL = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
