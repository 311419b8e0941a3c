"""Norms and their gradients by kernels."""

from __future__ import annotations

from math import prod

import numpy as np

from burnish.ops import norm
from burnish.ops._cpu.call import dense, launch, suits


@norm.channel_norm.on("numpy")
def _(x, scale=None, bias=None, *, eps=1e-5):
    if not suits(x, scale, bias):
        return norm.channel_norm.value(x, scale, bias, eps=eps)
    y = np.empty(x.shape, x.dtype)
    mean, var = np.empty((2, x.shape[1]), x.dtype)
    launch(
        "batch_norm", x.size, x=dense(x), scale=dense(scale), bias=dense(bias),
        out=y, mean=mean, var=var, **_sizes(x), eps=eps,
    )  # fmt: skip
    return y, mean, var


@norm.channel_norm.vjp("x", "scale", "bias", on="numpy")
def _(g, y, x, scale=None, bias=None, *, eps):
    inward, *others = g
    if any(each is not None for each in others) or not suits(x, inward, scale):
        return NotImplemented
    dx = np.empty(x.shape, x.dtype)
    dscale, dbias = np.empty((2, x.shape[1]), x.dtype)
    launch(
        "batch_norm_gradient", 2 * x.size, g=dense(inward), x=dense(x), mean=y[1],
        var=y[2], scale=dense(scale), out=dx, dscale=dscale, dbias=dbias, **_sizes(x),
        eps=eps,
    )  # fmt: skip
    return dx, scale if scale is None else dscale, bias if bias is None else dbias


def _sizes(x):
    return {"count": len(x), "channels": x.shape[1], "inner": prod(x.shape[2:])}
