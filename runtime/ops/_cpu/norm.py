"""Norms and their gradients by kernels."""

from __future__ import annotations

from math import prod

import numpy as np

from burnish.ops import normalization
from burnish.ops._cpu.call import dense, launch, suits

_FEW_PLACES = 8
"""Places of a map below which NumPy's sums win, unless there is one alone."""

_GAIN = 16
"""NumPy takes a dozen calls for a norm of few rows, a kernel one."""


@normalization.channel_norm.on("numpy")
def _(x, scale=None, bias=None, *, eps=1e-5):
    if _are_few(x) or not suits(x, scale, bias, gain=_GAIN):
        return normalization.channel_norm.value(x, scale, bias, eps=eps)
    y = np.empty(x.shape, x.dtype)
    mean, var = np.empty((2, x.shape[1]), x.dtype)
    launch(
        "batch_norm", x.size, x=dense(x), scale=dense(scale), bias=dense(bias),
        out=y, mean=mean, var=var, **_sizes(x), eps=eps,
    )  # fmt: skip
    return y, mean, var


@normalization.channel_norm.vjp("x", "scale", "bias", on="numpy")
def _(g, y, x, scale=None, bias=None, *, eps):
    inward, *others = g
    known = not any(a is not None for a in others)
    if _are_few(x) or not (known and suits(x, inward, scale, gain=_GAIN)):
        return NotImplemented
    dx = np.empty(x.shape, x.dtype)
    dscale, dbias = np.empty((2, x.shape[1]), x.dtype)
    launch(
        "batch_norm_gradient", 2 * x.size, g=dense(inward), x=dense(x), mean=y[1],
        var=y[2], scale=dense(scale), out=dx, dscale=dscale, dbias=dbias, **_sizes(x),
        eps=eps,
    )  # fmt: skip
    return dx, scale if scale is None else dscale, bias if bias is None else dbias


def _are_few(x):
    """Whether a map has several places, and no more than is worth a vector."""
    return 1 < prod(x.shape[2:]) < _FEW_PLACES


def _sizes(x):
    return {"count": len(x), "channels": x.shape[1], "inner": prod(x.shape[2:])}


def _register(function, center):
    """Kernels of a norm from an axis to the last one, and of its gradient."""

    @function.on("numpy")
    def _(x, *scales, axis=-1, eps=1e-5):
        shape = x.shape[axis % x.ndim :] if x.ndim else ()
        if not (suits(x, *scales, gain=_GAIN) and _are_rows(scales, shape)):
            return function.value(x, *scales, axis=axis, eps=eps)
        width = prod(shape)
        y = np.empty(x.shape, x.dtype)
        weight, bias = (*map(dense, scales), None, None)[:2]
        launch(
            "layer_norm", 8 * x.size, x=dense(x), weight=weight, bias=bias, out=y,
            rows=x.size // width, width=width, center=center, eps=eps,
        )  # fmt: skip
        return y

    @function.vjp(*function.arguments, on="numpy")
    def _(g, y, x, *scales, axis, eps):
        shape = x.shape[axis % x.ndim :]
        if not (suits(x, g, *scales, gain=_GAIN) and _are_rows(scales, shape)):
            return NotImplemented
        from burnish.kernels.forms import CHUNK

        width = prod(shape)
        rows = x.size // width
        dx = np.empty(x.shape, x.dtype)
        sums = [
            None if a is None else np.empty((-(-rows // CHUNK), width), x.dtype)
            for a in scales
        ]
        weight = dense(scales[0]) if scales else None
        dweight, dbias = (*sums, None, None)[:2]
        launch(
            "layer_norm_gradient", 12 * x.size, g=dense(g), x=dense(x), weight=weight,
            out=dx, dweight=dweight, dbias=dbias, rows=rows, width=width, center=center,
            eps=eps,
        )  # fmt: skip
        others = (
            None if part is None else part.sum(axis=0).reshape(a.shape)
            for a, part in zip(scales, sums, strict=True)
        )
        return (dx, *others, None, None)[: len(function.arguments)]


def _are_rows(scales, shape):
    """Whether weights and biases are one for each number of a row of this shape."""
    given = [a for a in scales if a is not None]
    whole = all(a.shape[-len(shape) :] == shape for a in given)
    return shape and whole and all(a.size == prod(shape) for a in given)


_register(normalization.layer_norm_from, center=1)
_register(normalization.rms_norm_from, center=0)


@normalization.group_norm_of.on("numpy")
def _(x, scale=None, bias=None, *, num_groups, eps=1e-5):
    known = suits(x, scale, bias, gain=_GAIN) and _are_channels(x, scale, bias)
    if not known or x.shape[1] % num_groups:
        return normalization.group_norm_of.value(
            x, scale, bias, num_groups=num_groups, eps=eps
        )
    y = np.empty(x.shape, x.dtype)
    launch(
        "group_norm", 8 * x.size, x=dense(x), weight=dense(scale), bias=dense(bias),
        out=y, count=len(x), groups=num_groups, channels=x.shape[1] // num_groups,
        inner=prod(x.shape[2:]), eps=eps,
    )  # fmt: skip
    return y


@normalization.group_norm_of.vjp("x", "scale", "bias", on="numpy")
def _(g, y, x, scale=None, bias=None, *, num_groups, eps):
    known = g.shape == x.shape and suits(x, g, scale, bias, gain=_GAIN)
    if not (known and _are_channels(x, scale, bias) and x.shape[1] % num_groups == 0):
        return NotImplemented
    dx = np.empty(x.shape, x.dtype)
    dscale, dbias = (
        None if a is None else np.empty(x.shape[:2], x.dtype) for a in (scale, bias)
    )
    launch(
        "group_norm_gradient", 12 * x.size, g=dense(g), x=dense(x),
        weight=dense(scale), out=dx, dweight=dscale, dbias=dbias, count=len(x),
        groups=num_groups, channels=x.shape[1] // num_groups, inner=prod(x.shape[2:]),
        eps=eps,
    )  # fmt: skip
    return dx, *(a if a is None else a.sum(axis=0) for a in (dscale, dbias))


def _are_channels(x, *given):
    """Whether all are one number for each channel of x (N, C, *S)."""
    return all(a is None or a.shape == x.shape[1:2] for a in given)


@normalization.batch_norm.on("numpy")
def _(x, running_mean, running_var, weight=None, bias=None, *, eps=1e-5):
    given = (running_mean, running_var, weight, bias)
    if not (suits(x, *given) and _are_channels(x, *given)):
        return normalization.batch_norm.value(x, *given, eps=eps)
    factor = 1 / np.sqrt(running_var + np.float32(eps))
    factor = factor if weight is None else factor * weight
    offset = -running_mean * factor if bias is None else bias - running_mean * factor
    y = np.empty(x.shape, x.dtype)
    launch(
        "channel_affine", x.size, x=dense(x), factor=dense(factor),
        offset=dense(offset), out=y, **_sizes(x),
    )  # fmt: skip
    return y
