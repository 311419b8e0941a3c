"""Sums and products with one number for each row or plane, by element-wise programs."""

from __future__ import annotations

import numpy as np

from burnish.ops._cpu.call import element_wise, spreads, suits
from burnish.ops.elementwise import arithmetic

_GAIN = 0.125
"""NumPy takes one call too; only what it gains along rows pays for a kernel's."""


def _register(function, step):
    """A kernel of an operator of two arrays."""
    steps = [(step, 0, 1, 0, 0.0, 0.0)]
    turned = [(step, 1, 0, 0, 0.0, 0.0)]

    @function.on("numpy")
    def _(a, b):
        if type(a) is type(b) is np.ndarray and a.shape != b.shape:
            if _is_repeated(b, a):
                return element_wise(steps, a, b)
            if _is_repeated(a, b):
                return element_wise(turned, b, a)
        return function.value(a, b)


def _is_repeated(few, x):
    """Whether one array has a number for each row or plane of the other one, x."""
    if not few.ndim or few.shape[-1] != 1 or few.size == 1:
        return False
    return suits(x, few, gain=_GAIN) and x.flags.c_contiguous and spreads(x, few)


for _function, _step in (
    (arithmetic.add, "add"),
    (arithmetic.sub, "sub"),
    (arithmetic.mul, "mul"),
    (arithmetic.div, "div"),
):
    _register(_function, _step)
