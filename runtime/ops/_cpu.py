"""Operators' kernels of the C library, and those of their gradients.

A kernel takes float32 arrays that are worth the call, where the library was built
before; for everything else the operator's plain value takes over.
"""

from __future__ import annotations

from math import prod

import numpy as np

from burnish.ops import conv, norm, pool, trees
from burnish.ops._slopes import gated
from burnish.ops._window import window

_FEW = 1 << 12
"""Elements below which a call of a kernel costs more than it spares."""


def _suits(*arrays):
    """Whether kernels take these arrays, the first being the largest."""
    if any(a is not None and a.dtype != np.float32 for a in arrays):
        return False
    return arrays[0].size >= _FEW and arrays[0].size > 0 and _usable()


def _usable():
    """Whether the library was built before."""
    from burnish.kernels import direct

    return direct.usable() is not None


def _launch(kernel, work, **fields):
    """Run a kernel; `work` is how many elements, or products by eight, it goes over."""
    from burnish.kernels import direct

    direct.launch(kernel, direct.shares(work), **fields)


def _dense(a):
    return None if a is None else np.ascontiguousarray(a)


# --- convolutions ---

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
        given = _dense(x), _dense(weight), _dense(bias)
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
        given = _dense(g), _dense(weight), w, sizes
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
            return maps.depthwise_weight_gradient(_dense(x), _dense(g), w)
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
    if not _suits(x):
        return None
    from burnish.ops import _maps

    return _maps if _maps.fits(x, w) else None


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


# --- activations and pooling ---


@gated.on("numpy")
def _(g, x, *, above, below=None, slope=1.0):
    if g.shape != x.shape or not _suits(g, x):
        return gated.value(g, x, above=above, below=below, slope=slope)
    y = np.empty(g.shape, g.dtype)
    _launch(
        "gate", g.size, g=_dense(g), x=_dense(x), out=y, count=g.size,
        has_below=below is not None, above=above, below=below or 0.0, slope=slope,
    )  # fmt: skip
    return y


@pool.max_pool.vjp("x", on="numpy")
def _(g, y, x, **options):
    w = pool.window_of("max_pool", x, *options.values())
    if x.dtype == g.dtype == np.float32 and (maps := _planes(x, w)):
        return maps.max_pool_gradient(_dense(g), _dense(x), w)
    return NotImplemented


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


# --- trees ---

_STEPS = 64
"""The cost of a walk down a tree, in elements."""


@trees.tree_ensemble.on("numpy")
def _(
    x, roots, features, thresholds, yes, no, targets, weights, modes=None, missing=None,
    members=None, *, outputs, aggregate="sum",
):  # fmt: skip
    nodes = trees.Nodes(features, thresholds, yes, no, modes, missing, members)
    if _walks(x, roots, nodes):
        walk = _walking(nodes, len(targets))
        try:
            return trees.counted(x, walk, roots, targets, weights, outputs, aggregate)
        except LookupError:
            pass  # a place that is none: the plain form says of what
    return trees.tree_ensemble.value(
        x, roots, *nodes[:4], targets, weights, *nodes[4:], outputs=outputs,
        aggregate=aggregate,
    )  # fmt: skip


def _walks(x, roots, nodes):
    """Whether the kernel goes down such trees."""
    whole = (roots, nodes.features, nodes.yes, nodes.no)
    return (
        x.ndim == 2
        and nodes.members is None
        and x.dtype == nodes.thresholds.dtype == np.float32
        and all(a.dtype == np.int64 and a.ndim == 1 for a in whole)
        and nodes.thresholds.shape == nodes.yes.shape == nodes.no.shape
        and nodes.features.shape == nodes.yes.shape
        and len(roots) * len(x) > 0
        and _usable()
    )


def _walking(nodes, leaves):
    """`trees.walking` by the kernel."""
    asked = {n: _dense(getattr(nodes, n)) for n in nodes._fields[:4]}
    modes = None if nodes.modes is None else _dense(nodes.modes).view(np.uint8)
    missing = None if nodes.missing is None else _dense(nodes.missing).view(np.uint8)

    def walk(x, roots):
        leaf = np.empty((len(roots), len(x)), np.int64)
        fault = np.zeros(1, np.int64)
        _launch(
            "trees", leaf.size * _STEPS, x=_dense(x), roots=_dense(roots), **asked,
            modes=modes, missing=missing, out=leaf, fault=fault, rows=len(x),
            width=x.shape[1], trees=len(roots), nodes=len(asked["yes"]), leaves=leaves,
        )  # fmt: skip
        if fault[0]:
            raise LookupError
        return leaf

    return walk
