"""Running sums along the last axis by a kernel."""

from __future__ import annotations

from math import prod

import numpy as np

from burnish.ops._cpu.call import dense, launch, suits
from burnish.ops.arrays import cumulative

_FEW = 4
"""Rows below which NumPy's products of strips are faster."""


@cumulative.cum_sum.on("numpy")
def _(x, *, axis, exclusive=False, reverse=False):
    rows = prod(x.shape[:-1])
    if rows < _FEW or axis not in (-1, x.ndim - 1) or not suits(x):
        return cumulative.cum_sum.value(
            x, axis=axis, exclusive=exclusive, reverse=reverse
        )
    y = np.empty(x.shape, x.dtype)
    launch(
        "cum_sum", 2 * x.size, x=dense(x), out=y, rows=rows, width=x.shape[-1],
        reverse=reverse, exclusive=exclusive,
    )  # fmt: skip
    return y
