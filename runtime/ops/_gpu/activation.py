"""Activations, softmax and their gradients."""

from __future__ import annotations

from burnish.backend import namespace
from burnish.backend.cuda.elementwise import fused
from burnish.backend.cuda.norms import rows
from burnish.ops._gpu.call import or_plain, together
from burnish.ops._kernels import slopes
from burnish.ops._kernels.blocks import positive
from burnish.ops.activation import piecewise, probabilities, smooth
from burnish.ops.elementwise import clip as clipping
from burnish.ops.sequences import attention


@piecewise.relu.prepared
def _(x):
    return fused.prepared(positive, (x,))


@piecewise.relu.prepared_vjp
def _(g, y, x, *, needed):
    def to_x():
        run = fused.prepared(slopes._gated, (g, y, 0, None, 1.0), writes=True)
        return run and (lambda g, y, x: run(g, y))

    return together(needed, to_x)


@piecewise.relu6.on("cupy")
def _(x):
    return _held(x, 0, 6, piecewise.relu6.value)


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


@probabilities.softmax.prepared
def _(x, *, axis=-1):
    return rows.prepared_softmax(x, axis, "softmax")


@probabilities.log_softmax.prepared
def _(x, *, axis=-1):
    return rows.prepared_softmax(x, axis, "log_softmax")


@attention.softmax_or_zero.prepared
def _(x):
    return rows.prepared_softmax(x, -1, "softmax_or_zero")


@smooth.gelu.prepared
def _(x, *, approximate="none"):
    formula = smooth.GELUS.get(approximate)
    return formula and fused.prepared(formula, (x,), writes=True)


@probabilities.softmax.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x, *, axis):
    return or_plain(rows.softmax_gradient(g, y, axis, "softmax"))


@probabilities.log_softmax.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x, *, axis):
    return or_plain(rows.softmax_gradient(g, y, axis, "log_softmax"))


@attention.softmax_or_zero.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x):
    return or_plain(rows.softmax_gradient(g, y, -1, "softmax"))
