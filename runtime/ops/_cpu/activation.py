"""Activations and their gradients by element-wise programs."""

from __future__ import annotations

import numpy as np

from burnish.ops._cpu.call import (
    dense,
    element_wise,
    launch,
    spreads,
    suits,
    two_results,
)
from burnish.ops._kernels.slopes import gated
from burnish.ops.activation import piecewise, smooth
from burnish.ops.elementwise import elementary


def _register(function):
    """A kernel of an activation."""

    @function.on("numpy")
    def _(x, **options):
        if not suits(x, gain=2):
            return function.value(x, **options)
        from burnish.kernels.elementwise import activation

        act = activation(function.name, function.defaults | options)
        if act is None:  # the plain form says of which option
            return function.value(x, **options)
        name, low, high = act
        return element_wise([(name, 0, 0, 0, low, high)], x)


def _register_gradient(function, gain):
    """A kernel of an activation's gradient."""

    @function.vjp("x", on="numpy")
    def _(g, y, x, **options):
        from burnish.kernels.elementwise import of_slope, slope

        known = slope(function.name, options)
        if known is None or g.shape != x.shape or not suits(g, x, y, gain=gain):
            return NotImplemented
        step, of, low = known
        return element_wise(of_slope(step, low), g, x if of == "x" else y)


for _function in (
    smooth.celu,
    smooth.elu,
    smooth.gelu,
    piecewise.hard_sigmoid,
    piecewise.hard_swish,
    piecewise.leaky_relu,
    smooth.sigmoid,
    smooth.softplus,
    smooth.swish,
):
    _register(_function)
    _register_gradient(_function, 0.125 if _function is smooth.sigmoid else 2)
_register_gradient(elementary.tanh, 0.125)  # its value is one call of NumPy's, as fast


@gated.on("numpy")
def _(g, x, *, above, below=None, slope=1.0):
    if g.shape != x.shape or not suits(g, x):
        return gated.value(g, x, above=above, below=below, slope=slope)
    y = np.empty(g.shape, g.dtype)
    launch(
        "gate", g.size, g=dense(g), x=dense(x), out=y, count=g.size,
        has_below=below is not None, above=above, below=below or 0.0, slope=slope,
    )  # fmt: skip
    return y


@smooth.log_sigmoid.on("numpy")
def _(x):
    return element_wise(_LOG, x) if suits(x, gain=2) else smooth.log_sigmoid.value(x)


@smooth.log_sigmoid.vjp("x", on="numpy")
def _(g, y, x):
    known = g.shape == x.shape and suits(g, x, gain=2)
    return element_wise(_LOGGED, g, x) if known else NotImplemented


@smooth.sigmoid_gate.on("numpy")
def _(a, b):
    known = a.shape == b.shape and suits(a, b, gain=2)
    return element_wise(_GATE, a, b) if known else smooth.sigmoid_gate.value(a, b)


@smooth.sigmoid_gate.vjp("a", "b", on="numpy")
def _(g, y, a, b):
    if not (g.shape == a.shape == b.shape and suits(g, a, b, gain=2)):
        return NotImplemented
    return two_results(_GATED, 5, g, a, b)


@elementary.erf.on("numpy")
def _(x):
    return element_wise(_ERF, x) if suits(x, gain=8) else elementary.erf.value(x)


@piecewise.prelu_of.on("numpy")
def _(x, slope):
    if suits(x, slope) and spreads(x, slope):
        return element_wise(_LEAKING, x, slope)
    return piecewise.prelu_of.value(x, slope)


@piecewise.prelu_of.vjp("x", on="numpy")
def _(g, y, x, slope):
    if g.shape == x.shape and suits(g, x, slope) and spreads(x, slope):
        return element_wise(_LEAKED, g, x, slope)
    return NotImplemented


_ERF = [("erf", 0, 0, 0, 0.0, 0.0)]
_LOG = [
    ("neg", 0, 0, 0, 0.0, 0.0),
    ("softplus", 1, 0, 0, 0.0, 0.0),
    ("neg", 2, 0, 0, 0.0, 0.0),
]
_LOGGED = [  # of g and x
    ("neg", 1, 0, 0, 0.0, 0.0),
    ("softplus_slope", 2, 0, 0, 0.0, 0.0),
]
_GATE = [("sigmoid", 1, 0, 0, 0.0, 0.0), ("mul", 0, 2, 0, 0.0, 0.0)]  # of a and b
_GATED = [  # of g, a and b: b's gradient, then a's
    ("sigmoid", 2, 0, 0, 0.0, 0.0),
    ("sigmoid_slope", 3, 0, 0, 0.0, 0.0),
    ("mul", 4, 1, 0, 0.0, 0.0),
    ("mul", 0, 3, 0, 0.0, 0.0),
]
_LEAKING = [("leak", 0, 0, 1, 0.0, 0.0)]  # of x and a slope
_LEAKED = [("leak", 1, 0, 2, 0.0, 0.0)]  # of g, x and a slope
