"""Operators' kernels for NVIDIA GPUs, and those of their gradients.

A kernel does what is common: floats of one kind. For everything else it gives None, and
the operator's plain value, which CuPy computes too, takes over.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnish.backend import bfloat16, namespace
from burnish.backend.cuda import kernels, layout
from burnish.backend.cuda.convolution import convolution, depthwise, windows
from burnish.backend.cuda.elementwise import fused
from burnish.backend.cuda.norms import channels, loss, residual, rows
from burnish.backend.cuda.products import cublaslt
from burnish.ops import (
    activation,
    arithmetic,
    attention,
    conv,
    embedding,
    index,
    linear,
    norm,
    pool,
    shape,
)
from burnish.ops import clip as clipping
from burnish.ops import loss as losses
from burnish.ops._kernels import slopes
from burnish.ops._kernels.blocks import blockwise, positive
from burnish.ops._kernels.window import window
from burnish.ops._shapes import cast, unbroadcast


def _plain(op, *args, **options):
    """The plain value: of bfloat16 computed in float32, as no kernel did it."""
    if not bfloat16.is_among(args):
        return op.value(*bfloat16.widened(args), **options)
    return bfloat16.narrowed(op.value(*bfloat16.widened(args), **options))


# --- arithmetic ---


def _fused(op, formula):
    @op.on("cupy", takes_bfloat16=True)
    def _(a, b):
        y = fused.evaluated(formula, (a, b))
        return _plain(op, a, b) if y is None else y


_fused(arithmetic.add, lambda a, b: a + b)
_fused(arithmetic.sub, lambda a, b: a - b)
_fused(arithmetic.mul, lambda a, b: a * b)
_fused(arithmetic.div, lambda a, b: a / b)


# --- activations ---


@activation.relu.on("cupy", takes_bfloat16=True)
def _(x):
    return blockwise(positive, x)


@activation.relu6.on("cupy")
def _(x):
    return _held(x, 0, 6, activation.relu6.value)


@clipping.clip.on("cupy")
def _(x, min=None, max=None):
    if not all(isinstance(bound, int | float) for bound in (min, max)):
        return clipping.clip.value(x, min, max)
    return _held(x, min, max, lambda x: clipping.clip.value(x, min, max))


def _held(x, low, high, plain):
    """x between two numbers."""
    y = fused.evaluated(_bounded, (x, low, high)) if x.dtype.kind == "f" else None
    return plain(x) if y is None else y


def _bounded(x, low, high):
    return namespace(x).clip(x, low, high)


@activation.softmax.on("cupy", takes_bfloat16=True)
def _(x, *, axis=-1):
    y = rows.softmax(x, axis, "softmax")
    return _plain(activation.softmax, x, axis=axis) if y is None else y


@activation.log_softmax.on("cupy", takes_bfloat16=True)
def _(x, *, axis=-1):
    y = rows.softmax(x, axis, "log_softmax")
    return _plain(activation.log_softmax, x, axis=axis) if y is None else y


@attention.softmax_or_zero.on("cupy", takes_bfloat16=True)
def _(x):
    y = rows.softmax(x, -1, "softmax_or_zero")
    return _plain(attention.softmax_or_zero, x) if y is None else y


@activation.softmax.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x, *, axis):
    return _or_plain(rows.softmax_gradient(g, y, axis, "softmax"))


@activation.log_softmax.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x, *, axis):
    return _or_plain(rows.softmax_gradient(g, y, axis, "log_softmax"))


@attention.softmax_or_zero.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x):
    return _or_plain(rows.softmax_gradient(g, y, -1, "softmax"))


# --- normalisation ---


@norm.layer_norm_from.on("cupy", takes_bfloat16=True)
def _(x, weight=None, bias=None, *, axis=-1, eps=1e-5):
    n, fits = _row(x, axis, weight, bias)
    y = _normed_rows(x, weight, bias, n, eps, True) if fits else None
    if y is None:
        return _plain(norm.layer_norm_from, x, weight, bias, axis=axis, eps=eps)
    return y


@norm.rms_norm_from.on("cupy", takes_bfloat16=True)
def _(x, weight=None, *, axis=-1, eps=1e-5):
    n, fits = _row(x, axis, weight)
    y = _normed_rows(x, weight, None, n, eps, False) if fits else None
    return _plain(norm.rms_norm_from, x, weight, axis=axis, eps=eps) if y is None else y


def _normed_rows(x, weight, bias, n, eps, center):
    """Rows of n last elements: in registers where they are short, else from memory."""
    y = residual.norm(x, weight, bias, n, eps, center)
    return rows.layer_norm(x, weight, bias, n, eps, center) if y is None else y


@norm.layer_norm_from.vjp("x", "weight", "bias", on="cupy")
def _(g, y, x, weight=None, bias=None, *, axis, eps):
    n, fits = _row(x, axis, weight, bias)
    parts = rows.layer_norm_gradient(g, x, weight, n, eps, True) if fits else None
    return NotImplemented if parts is None else _shaped(parts, (x, weight, bias))


@norm.rms_norm_from.vjp("x", "weight", on="cupy")
def _(g, y, x, weight=None, *, axis, eps):
    n, fits = _row(x, axis, weight)
    parts = rows.layer_norm_gradient(g, x, weight, n, eps, False) if fits else None
    return NotImplemented if parts is None else _shaped(parts[:2], (x, weight))


@norm.batch_norm.on("cupy")
def _(x, running_mean, running_var, weight=None, bias=None, *, eps=1e-5):
    lead = (-1, *(1,) * (x.ndim - 2))
    given = (running_mean, running_var, weight, bias)
    beside = (a if a is None else a.reshape(lead) for a in given)
    return blockwise(_standardized, x, *beside, eps)


@norm.channel_norm.on("cupy")
def _(x, scale=None, bias=None, *, eps=1e-5):
    found = channels.batch_norm(x, scale, bias, eps)
    return norm.channel_norm.value(x, scale, bias, eps=eps) if found is None else found


@norm.channel_norm.vjp("x", "scale", "bias", on="cupy")
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
    """How many elements a row has, and whether what is given has as many."""
    shape = x.shape[axis % max(x.ndim, 1) :]
    return prod(shape), x.ndim and all(a is None or a.shape == shape for a in given)


def _shaped(parts, given):
    """Gradients in the shapes of their arguments."""
    return tuple(
        a if a is None else part.reshape(a.shape)
        for a, part in zip(given, parts, strict=True)
    )


# --- products ---


@linear.linear.on("cupy", takes_bfloat16=True)
def _(x, weight, bias=None):
    y = cublaslt.linear(x, weight, bias)
    return _plain(linear.linear, x, weight, bias) if y is None else y


@linear.matmul.on("cupy", takes_bfloat16=True)
def _(a, b):
    fits = a.ndim and b.ndim and a.shape[-1] == b.shape[max(b.ndim - 2, 0)]
    y = cublaslt.matmul(a, b) if fits else None
    return _plain(linear.matmul, a, b) if y is None else y


@linear.matmul.vjp("a", on="cupy", takes_bfloat16=True)
def _(g, y, a, b):
    if a.ndim < 2 or b.ndim < 2:
        return NotImplemented
    part = cublaslt.matmul(g, b.mT)
    return NotImplemented if part is None else unbroadcast(part, a)


@linear.matmul.vjp("b", on="cupy", takes_bfloat16=True)
def _(g, y, a, b):
    if a.ndim < 2 or b.ndim < 2:
        return NotImplemented
    if b.ndim == 2:
        return _or_plain(cublaslt.matmul(_matrix(a).T, _matrix(g)))
    part = cublaslt.matmul(a.mT, g)
    return NotImplemented if part is None else unbroadcast(part, b)


@linear.linear.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x, weight, bias=None):
    return _or_plain(cublaslt.matmul(g, weight))


@linear.linear.vjp("weight", on="cupy", takes_bfloat16=True)
def _(g, y, x, weight, bias=None):
    return _or_plain(cublaslt.matmul(_matrix(g).T, _matrix(x)))


@linear.linear.vjp("bias", on="cupy", takes_bfloat16=True)
def _(g, y, x, weight, bias):
    if g.shape[-1:] != bias.shape or not g.size:
        return NotImplemented
    return _or_plain(rows.channel_sums(g, g.size // len(bias), len(bias), 1))


def _matrix(x):
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


# --- convolution and pooling ---


@conv.conv.on("cupy", takes_bfloat16=True)
def _(x, weight, bias=None, *, stride=1, padding=0, dilation=1, groups=1):
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    fits = x.ndim == weight.ndim and x.shape[1:2] == (weight.shape[1] * groups,)
    if not fits or x.ndim < 3 or not _alike(x, weight, bias) or len(weight) % groups:
        return _plain(conv.conv, x, weight, bias, groups=groups, **options)
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
        return _plain(conv.conv, x, weight, bias, groups=groups, **options)
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
        return _or_plain(rows.channel_sums(turned, *sizes))
    return _or_plain(rows.channel_sums(g, len(g), g.shape[1], prod(g.shape[2:])))


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
    if _alike(g, weight) and groups > 1:
        y = _by_channel(g, weight, w, sizes, groups)
        if y is not None:
            return y
    if _alike(g, weight) and convolution.pays(g, groups):
        y = convolution.input_gradient(g, weight, w, tuple(sizes), groups)
        if y is not None:
            return y
    if groups == 1 and _alike(g, weight):
        slopes = g.reshape(*g.shape[:2], prod(w.out))
        cols = cublaslt.matmul(weight.reshape(len(weight), -1).T, slopes)
    if cols is None:
        options = {"stride": stride, "dilation": dilation, "groups": groups}
        given = {"sizes": sizes, "padding": padding, **options}
        return _plain(conv.conv_input_gradient, g, weight, **given)
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
    if _alike(x, g) and convolution.pays(x, groups):
        y = convolution.weight_gradient(x, g, w, groups)
        if y is not None:
            return y
    if groups == 1 and _alike(x, g):
        total = None
        for part in conv._parts(len(x), x.shape[1] // _ROOM + 1, w):
            cols = windows.columns(x[part], x.shape[2:], w, together=True)
            cols = cols.reshape(len(cols), -1)
            slopes = g[part].swapaxes(0, 1).reshape(g.shape[1], -1)
            found = cublaslt.matmul(slopes, cols.T)
            if found is None:
                break
            total = found if total is None else total + found
        else:
            if total is not None:
                return total.reshape(g.shape[1], x.shape[1], *kernel)
    options = {"stride": stride, "dilation": dilation, "groups": groups}
    given = {"kernel": kernel, "padding": padding, **options}
    return _plain(conv.conv_weight_gradient, x, g, **given)


_ROOM = 128


def _alike(*given):
    """Whether arrays are floats of one kind, and none is empty."""
    held = [a for a in given if a is not None]
    return rows.takes(*held) and windows.fits(*(a.shape for a in held))


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
        return _plain(pool.max_pool, x, **dict(zip(_POOL, options, strict=True)))
    return _reduced("max", x, w)


@pool.max_pool.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x, **options):
    w = pool.window_of("max_pool", x, *(options[name] for name in _POOL))
    return _or_plain(depthwise.max_gradient(g, y, x, w))


@pool.window_sum.on("cupy", takes_bfloat16=True)
def _(x, *, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    options = (kernel_size, stride, padding, dilation, ceil_mode)
    w = pool.window_of("window_sum", x, *options)
    if not windows.takes(x):
        return _plain(pool.window_sum, x, **dict(zip(_POOL, options, strict=True)))
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


# --- shapes ---


@shape.concat_of.on("cupy", takes_bfloat16=True)
def _(*arrays, axis=0):
    first = arrays[0]
    rank = first.ndim
    if rank < 3 or axis not in (1, 1 - rank) or not any(map(layout.is_last, arrays)):
        return _plain(shape.concat_of, *arrays, axis=axis)
    beside = (len(first), *first.shape[2:])
    alike = all(
        a.ndim == rank
        and a.dtype == first.dtype
        and (len(a), *a.shape[2:]) == beside
        and a.size
        for a in arrays
    )
    if not alike or len(arrays) * first.nbytes >= kernels.LONG:
        return _plain(shape.concat_of, *arrays, axis=axis)
    return layout.joined(arrays)


@embedding.embedding.on("cupy", takes_bfloat16=True)
def _(ids, weight, *, padding_idx=None):
    fits = isinstance(ids, type(weight)) and ids.dtype.char in "il" and ids.size
    y = layout.taken(weight, ids) if fits and weight.ndim == 2 and weight.size else None
    return embedding.embedding.value(ids, weight) if y is None else y


_reshape = shape.reshape.value


@shape.reshape.on("cupy", takes_bfloat16=True)
def _(x, *, shape, keep_zeros=False):
    if not x._c_contiguous and x.size and not keep_zeros:
        y = x.view()
        try:
            y.shape = shape
        except (AttributeError, ValueError):  # it is no view
            x = layout.contiguous(x)
        else:
            return y
    return _reshape(x, shape, keep_zeros)


for _op in (shape.transpose, shape.split, index.getitem):
    _op.takes_bfloat16.add("cupy")  # they move values
for _formula in (
    activation.gelu,
    activation.sigmoid,
    activation.swish,
    slopes.dropped,
    slopes.gated,
    slopes.gelu_gradient,
    slopes.swish_gradient,
):
    _formula.takes_bfloat16.add(
        "cupy"
    )  # they are formulas, which `fused` makes kernels of


# --- gradients whose rules are kernels, or move values, as they are ---

_RULES: tuple[tuple[Any, str], ...] = (
    (activation.relu, "x"),
    (activation.gelu, "x"),
    (activation.swish, "x"),
    (arithmetic.add, "a"),
    (arithmetic.add, "b"),
    (conv.conv, "x"),
    (conv.conv, "weight"),
    (shape.reshape, "x"),
    (shape.transpose, "x"),
    (slopes.dropped, "x"),
)
for _owner, _name in _RULES:
    _owner.vjp(_name, on="cupy", takes_bfloat16=True)(_owner.rules[_name][0])


@arithmetic.mul.vjp("a", on="cupy", takes_bfloat16=True)
def _(g, y, a, b):
    return unbroadcast(arithmetic.mul(g, b), a)


@arithmetic.mul.vjp("b", on="cupy", takes_bfloat16=True)
def _(g, y, a, b):
    return unbroadcast(arithmetic.mul(g, a), b)


@cast.on("cupy", takes_bfloat16=True)
def _(x, *, dtype):
    dtype = np.dtype(dtype)
    are_floats = all(each.name in _FLOATS for each in (x.dtype, dtype))
    return fused.cast(x, dtype) if are_floats else cast.value(x, dtype)


_FLOATS = ("float16", "bfloat16", "float32", "float64")


@cast.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x, *, dtype):
    return cast(g, dtype=x.dtype)


# --- losses ---


@losses.softmax_cross_entropy.on("cupy")
def _(x, classes, shares, offset=0, *, axis=-1, summed=False):
    found = loss.cross_entropy(x, classes, shares, axis, offset, summed)
    if found is None:
        given = (x, classes, shares, offset)
        return losses.softmax_cross_entropy.value(*given, axis=axis, summed=summed)
    return found


@losses.softmax_cross_entropy.vjp("x", on="cupy")
def _(g, y, x, classes, shares, offset=0, *, axis, summed):
    slope, share_g = g
    if share_g is not None:
        return NotImplemented
    return _or_plain(loss.cross_entropy_gradient(slope, shares, y[1], classes, axis))


def _or_plain(part):
    """A gradient that a kernel found; else the plain rule has to."""
    return NotImplemented if part is None else part
