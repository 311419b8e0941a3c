"""Convolutions and their gradients."""

from __future__ import annotations

from functools import partial
from math import prod

from burnish.backend.cuda import layout
from burnish.backend.cuda.calls import called, once
from burnish.backend.cuda.convolution import (
    convolution,
    depthwise,
    few_channels,
    windows,
)
from burnish.backend.cuda.elementwise import fused
from burnish.backend.cuda.norms import rows
from burnish.backend.cuda.products import cublaslt
from burnish.ops._gpu.call import alike, or_plain, together
from burnish.ops._kernels.blocks import blockwise
from burnish.ops._kernels.window import window
from burnish.ops.spatial import conv


@conv.conv.prepared
def _(x, weight, bias=None, *, stride=1, padding=0, dilation=1, groups=1):
    fits = x.ndim == weight.ndim and x.shape[1:2] == (weight.shape[1] * groups,)
    if not fits or x.ndim < 3 or not alike(x, weight, bias) or len(weight) % groups:
        return None
    lead = (-1, *(1 for _ in weight.shape[2:]))
    w = window("conv", x.shape[2:], weight.shape[2:], stride, padding, dilation)
    if depthwise.fits(x, weight, groups):
        return lambda x, weight, bias=None: depthwise.depthwise(
            x, depthwise.taps(weight), w, bias
        )
    biased = bias is not None
    if groups == 1 and (own := few_channels.prepared(x, weight, w, biased=biased)):
        return own
    if convolution.pays(x, groups):
        product = partial(_by_cudnn, w=w, groups=groups)
    elif groups != 1:
        return None
    elif _is_pointwise(w, x.shape[2:]) and layout.is_last(x):
        return partial(_pointwise, shape=weight.shape[:2])
    else:
        product = _by_columns(x, len(weight), w)
    added = once(lambda y, bias: fused.prepared(_added, (y, bias)))

    def run(x, weight, bias=None):
        y = product(x, weight, bias)
        if y is None and bias is not None and (y := product(x, weight)) is not None:
            return added(y, bias.reshape(lead))
        return y

    return run


def _by_cudnn(x, weight, bias=None, *, w, groups):
    return convolution.conv(x, weight, w, groups, bias)


def _by_columns(x, channels, w):
    columns, multiplied = _columns(x, w), once(cublaslt.prepared)
    shape = len(x), channels, *w.out

    def product(x, weight, bias=None):
        if bias is not None:
            return None
        y = multiplied(weight.reshape(channels, -1), columns(x))
        return None if y is None else y.reshape(shape)

    return product


def _pointwise(x, weight, bias=None, *, shape):
    y = cublaslt.linear(_rows(x), weight.reshape(shape), bias)
    return None if y is None else _from_rows(y)


def _added(y, bias):
    return y + bias


@conv.conv.prepared_vjp
def _(g, y, x, weight, bias=None, *, needed, padding, **options):
    options["padding"] = conv._pads(x, weight, padding, **options)

    def to_x():
        run = _input_gradient(g, weight, sizes=x.shape[2:], **options)
        return run and (lambda g, y, x, weight, bias=None: run(g, weight))

    def to_weight():
        run = _weight_gradient(x, g, kernel=weight.shape[2:], **options)
        return run and (lambda g, y, x, weight, bias=None: run(x, g))

    def to_bias():
        run = _channel_sums(g)
        return run and (lambda g, *_: run(g))

    return together(needed, to_x, to_weight, to_bias)


@conv.conv_transpose.vjp("bias", on="cupy", takes_bfloat16=True)
def _(g, y, x, weight, bias, **options):
    return or_plain(called(_channel_sums, (g,), {}))


def _channel_sums(g):
    """How to sum g (N, C, *S) to (C,)"""
    n, c = g.shape[:2]
    if not layout.is_last(g):
        return rows.prepared_channel_sums(g, n, c, prod(g.shape[2:]))
    across = rows.prepared_channel_sums(_rows(g), g.size // c, c, 1)
    return across and (lambda g: across(_rows(g)))


def _columns(x, w):
    """im2col, which gives each output position's inputs: (N, C * prod(K), prod(P))"""
    if _is_pointwise(w, x.shape[2:]):
        shape = *x.shape[:2], prod(w.out)
        return lambda x: x.reshape(shape)
    return windows.columns(x, x.shape[2:], w, together=False)


def _is_pointwise(w, sizes):
    """Whether a window is one element, and each element of these sizes a window."""
    is_one = prod(w.kernel) == 1 and set(w.stride) == {1} and not any(map(any, w.pads))
    return is_one and sizes == w.out  # an output_padding has no window


def _rows(x):
    """A channels-last array (N, C, *S) as it is in memory: (N, *S, C)"""
    return x.transpose(0, *range(2, x.ndim), 1)


def _from_rows(y):
    """The adjoint of `_rows`."""
    return y.transpose(0, y.ndim - 1, *range(1, y.ndim - 1))


@conv.conv_input_gradient.prepared
def _input_gradient(g, weight, *, sizes, padding, stride=1, dilation=1, groups=1):
    if not alike(g, weight):
        return None
    w = conv.window_of(g, weight.shape[2:], stride, padding, dilation)
    sizes = tuple(sizes)
    if groups > 1 and (own := _by_channel(g, weight, w, sizes, groups)) is not None:
        return own
    if groups == 1 and (own := few_channels.prepared_gradient(g, weight, w, sizes)):
        return own
    pays = convolution.pays(g, groups)
    if groups > 1 and not pays:
        return None
    matrix, flat = weight.shape[:2], (*g.shape[:2], prod(w.out))
    is_rows = _is_pointwise(w, sizes) and layout.is_last(g)
    shape = len(g), weight.shape[1], *sizes
    multiplied, product = once(cublaslt.prepared), once(cublaslt.prepared_slopes)
    spread = once(lambda cols: windows.spread_columns(cols, shape, w))

    def run(g, weight):
        if pays:
            y = convolution.input_gradient(g, weight, w, sizes, groups)
            if y is not None or groups > 1:
                return y
        if is_rows:
            y = multiplied(_rows(g), weight.reshape(matrix))
            return None if y is None else _from_rows(y)
        cols = product(weight.reshape(len(weight), -1), g.reshape(flat))
        return None if cols is None else spread(cols)

    return run


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
    """How to compute a depthwise convolution's input gradient, or None.

    It is a convolution by the flipped kernel.
    """
    around = depthwise.flipped(w, sizes)
    if around is None or not depthwise.fits(g, weight, groups):
        return None
    if min(map(min, around.pads)) < 0:
        return None
    return lambda g, weight: depthwise.depthwise(
        g, depthwise.taps(weight)[::-1].copy(), around
    )


@conv.conv_weight_gradient.prepared
def _weight_gradient(x, g, *, kernel, padding, stride=1, dilation=1, groups=1):
    if not alike(x, g):
        return None
    w = conv.window_of(g, kernel, stride, padding, dilation)
    if groups == 1 and (own := few_channels.prepared_slopes(x, g, w)):
        return own
    is_thin = groups == 1 and x.shape[1] <= _THIN and x.dtype.char == "f"
    pays = convolution.pays(x, groups) and not is_thin
    if groups > 1 and not pays:
        return None
    is_rows = layout.is_last(x) or layout.is_last(g)
    is_rows = is_rows and _is_pointwise(w, x.shape[2:])
    first, *others = ((part, once(partial(_slopes, w=w))) for part in _parts(x, w))
    shape = g.shape[1], x.shape[1], *w.kernel

    def run(x, g):
        if pays:
            y = convolution.weight_gradient(x, g, w, groups)
            if y is not None or groups > 1:
                return y
        if is_rows:
            return _pointwise_slopes(x, g, w)
        part, slopes = first
        total = slopes(x[part], g[part]) if others else slopes(x, g)
        for part, slopes in others:
            if total is None or (found := slopes(x[part], g[part])) is None:
                return None
            total = total + found
        return None if total is None else total.reshape(shape)

    return run


def _pointwise_slopes(x, g, w):
    x, g = (_rows(layout.last(part)).reshape(-1, part.shape[1]) for part in (x, g))
    y = cublaslt.matmul(g.T, x)
    return None if y is None else y.reshape(*y.shape, *w.kernel)


def _slopes(x, g, w):
    """How to compute the weight's gradient, as a matrix, of arrays alike."""
    columns = windows.columns(x, x.shape[2:], w, together=True)
    (n, o), places = g.shape[:2], prod(w.out)
    if layout.is_last(g):
        multiplied = once(cublaslt.prepared)

        def run_last(x, g):
            y = multiplied(columns(x), _rows(g).reshape(n * places, o))
            return None if y is None else y.T

        return run_last
    product = once(cublaslt.prepared_linear)
    turned = once(lambda g: layout.prepared_reshape(g, (o, n * places)))

    def run(x, g):
        slopes = turned(g.reshape(n, o, places).swapaxes(0, 1))
        return product(slopes, columns(x))

    return run


def _parts(x, w):
    """Parts of a batch whose columns fit into `_ROOM`, or are those of one example."""
    step = max(1, _ROOM // (x.shape[1] * prod(w.kernel) * prod(w.out)))
    return [slice(start, start + step) for start in range(0, len(x), step)]


_ROOM = 1 << 27  # elements: small parts leave a GPU idle
_THIN = 4  # channels of pictures: cuDNN's TF32 kernel takes long for them
