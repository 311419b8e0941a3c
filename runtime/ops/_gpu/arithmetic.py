"""Arithmetic, fused formulas and casts."""

from __future__ import annotations

import numpy as np

from burnish.backend.cuda.elementwise import fused
from burnish.ops._gpu.call import together
from burnish.ops._kernels import slopes
from burnish.ops._shapes import cast
from burnish.ops.activation import smooth
from burnish.ops.elementwise import arithmetic


def _fused(op, formula):
    @op.prepared
    def _(a, b):
        return fused.prepared(formula, (a, b))


_fused(arithmetic.add, lambda a, b: a + b)
_fused(arithmetic.sub, lambda a, b: a - b)
_fused(arithmetic.mul, lambda a, b: a * b)
_fused(arithmetic.div, lambda a, b: a / b)


@slopes.dropped.prepared
def _(x, kept, *, factor):
    return fused.prepared(slopes._dropped, (x, kept, factor))


@slopes.dropped.prepared_vjp
def _(g, y, x, kept, *, needed, factor):
    def to_x():
        run = fused.prepared(slopes._dropped, (g, kept, factor))
        return run and (lambda g, y, x, kept: run(g, kept))

    return together(needed, to_x)


@slopes.gated.prepared
def _(g, x, *, above, below=None, slope=1.0):
    return fused.prepared(slopes._gated, (g, x, above, below, slope), writes=True)


for _formula in (
    smooth.gelu,
    smooth.sigmoid,
    smooth.swish,
    slopes.gelu_gradient,
    slopes.swish_gradient,
):
    _formula.takes_bfloat16.add(
        "cupy"
    )  # they are formulas, which `fused` makes kernels of


@cast.on("cupy", takes_bfloat16=True)
def _(x, *, dtype):
    dtype = np.dtype(dtype)
    are_floats = all(each.name in _FLOATS for each in (x.dtype, dtype))
    return fused.cast(x, dtype) if are_floats else cast.value(x, dtype)


_FLOATS = ("float16", "bfloat16", "float32", "float64")


@cast.vjp("x", on="cupy", takes_bfloat16=True)
def _(g, y, x, *, dtype):
    return cast(g, dtype=x.dtype)
