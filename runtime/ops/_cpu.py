"""Operators' kernels of the C library, and those of their gradients.

A kernel takes float32 arrays that are worth the call, where the library was built
before; for everything else the operator's plain value takes over.
"""

from __future__ import annotations

from math import prod

import numpy as np

from burnish.ops import norm

_FEW = 1 << 12
"""Elements below which a call of a kernel costs more than it spares."""


def _suits(*arrays):
    """Whether kernels take these arrays, of which the first is the largest."""
    if any(a is not None and a.dtype != np.float32 for a in arrays):
        return False
    if arrays[0].size < _FEW:
        return False
    from burnish.kernels import direct

    return direct.usable() is not None


def _launch(kernel, work, **fields):
    """Run a kernel; `work` is how many elements, or products by eight, it goes over."""
    from burnish.kernels import direct

    direct.launch(kernel, direct.shares(work), **fields)


def _dense(a):
    return None if a is None else np.ascontiguousarray(a)


# --- normalisation ---


@norm.channel_norm.on("numpy")
def _(x, scale=None, bias=None, *, eps=1e-5):
    if not _suits(x, scale, bias):
        return norm.channel_norm.value(x, scale, bias, eps=eps)
    y = np.empty(x.shape, x.dtype)
    mean, var = np.empty((2, x.shape[1]), x.dtype)
    _launch(
        "batch_norm", x.size, x=_dense(x), scale=_dense(scale), bias=_dense(bias),
        out=y, mean=mean, var=var, **_sizes(x), eps=eps,
    )  # fmt: skip
    return y, mean, var


@norm.channel_norm.vjp("x", "scale", "bias", on="numpy")
def _(g, y, x, scale=None, bias=None, *, eps):
    inward, *others = g
    if any(each is not None for each in others) or not _suits(x, inward, scale):
        return NotImplemented
    dx = np.empty(x.shape, x.dtype)
    dscale, dbias = np.empty((2, x.shape[1]), x.dtype)
    _launch(
        "batch_norm_gradient", 2 * x.size, g=_dense(inward), x=_dense(x), mean=y[1],
        var=y[2], scale=_dense(scale), out=dx, dscale=dscale, dbias=dbias, **_sizes(x),
        eps=eps,
    )  # fmt: skip
    return dx, scale if scale is None else dscale, bias if bias is None else dbias


def _sizes(x):
    return {"count": len(x), "channels": x.shape[1], "inner": prod(x.shape[2:])}
