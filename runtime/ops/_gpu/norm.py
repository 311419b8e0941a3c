"""Normalisation of rows and of channels."""

from __future__ import annotations

from math import prod

from burnish.backend import namespace
from burnish.backend.cuda.norms import channels, residual, rows
from burnish.ops._kernels.blocks import blockwise
from burnish.ops.normalization import (
    batch_norm,
    channel_norm,
    layer_norm_from,
    rms_norm_from,
)


@layer_norm_from.prepared
def _(x, weight=None, bias=None, *, axis=-1, eps=1e-5):
    n, fits = _row(x, axis, weight, bias)
    return _normed_rows(x, weight, bias, n, eps, True) if fits else None


@rms_norm_from.prepared
def _(x, weight=None, *, axis=-1, eps=1e-5):
    n, fits = _row(x, axis, weight)
    return _normed_rows(x, weight, None, n, eps, False) if fits else None


def _normed_rows(x, weight, bias, n, eps, center):
    """Rows of n last elements: in registers where they are short, else from memory."""
    short = residual.prepared_norm(x, weight, bias, n, eps, center)
    if short is not None:
        return short
    return lambda x, weight=None, bias=None: rows.layer_norm(
        x, weight, bias, n, eps, center
    )


@layer_norm_from.vjp("x", "weight", "bias", on="cupy")
def _(g, y, x, weight=None, bias=None, *, axis, eps):
    n, fits = _row(x, axis, weight, bias)
    parts = rows.layer_norm_gradient(g, x, weight, n, eps, True) if fits else None
    return NotImplemented if parts is None else _shaped(parts, (x, weight, bias))


@rms_norm_from.vjp("x", "weight", on="cupy")
def _(g, y, x, weight=None, *, axis, eps):
    n, fits = _row(x, axis, weight)
    parts = rows.layer_norm_gradient(g, x, weight, n, eps, False) if fits else None
    return NotImplemented if parts is None else _shaped(parts[:2], (x, weight))


@batch_norm.on("cupy")
def _(x, running_mean, running_var, weight=None, bias=None, *, eps=1e-5):
    lead = (-1, *(1,) * (x.ndim - 2))
    given = (running_mean, running_var, weight, bias)
    beside = (a if a is None else a.reshape(lead) for a in given)
    return blockwise(_standardized, x, *beside, eps)


@channel_norm.on("cupy")
def _(x, scale=None, bias=None, *, eps=1e-5):
    found = channels.batch_norm(x, scale, bias, eps)
    return channel_norm.value(x, scale, bias, eps=eps) if found is None else found


@channel_norm.vjp("x", "scale", "bias", on="cupy")
def _(g, y, x, scale=None, bias=None, *, eps):
    slope, *others = g
    if slope is None or any(other is not None for other in others):
        return NotImplemented
    _, mean, var = y
    parts = channels.batch_norm_gradient(slope, x, mean, var, scale, eps)
    if parts is None:
        return NotImplemented
    given = (x, scale, bias)
    return tuple(
        p if a is not None else None for a, p in zip(given, parts, strict=True)
    )


def _standardized(x, mean, var, weight, bias, eps):
    factor = (1 if weight is None else weight) / namespace(x).sqrt(var + eps)
    return x * factor + ((0 if bias is None else bias) - mean * factor)


def _row(x, axis, *given):
    """How many elements a row has, and whether weight and bias have as many."""
    shape = x.shape[axis % max(x.ndim, 1) :]
    return prod(shape), x.ndim and all(a is None or a.shape == shape for a in given)


def _shaped(parts, given):
    """Gradients in the shapes of their arguments."""
    return tuple(
        a if a is None else part.reshape(a.shape)
        for a, part in zip(given, parts, strict=True)
    )
