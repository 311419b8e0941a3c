"""Reduction methods: axis is an integer, a tuple or None for all axes."""

from __future__ import annotations

from burnish import ops
from burnish.autodiff import Variable
from burnish.methods._bind import method


class ReduceMethods(Variable):
    """Reductions, scans, softmax and normalisation along an axis."""

    __slots__ = ()

    sum = method(lambda: ops.sum)
    mean = method(lambda: ops.mean)
    max = method(lambda: ops.max)
    min = method(lambda: ops.min)
    prod = method(lambda: ops.prod)
    any = method(lambda: ops.any)
    all = method(lambda: ops.all)
    logsumexp = method(lambda: ops.logsumexp)
    var = method(lambda: ops.var)
    std = method(lambda: ops.std)
    var_mean = method(lambda: ops.var_mean)
    norm = method(lambda: ops.norm)
    argmax = method(lambda: ops.argmax)
    argmin = method(lambda: ops.argmin)
    max_with_indices = method(lambda: ops.max_with_indices)
    min_with_indices = method(lambda: ops.min_with_indices)
    median = method(lambda: ops.median, scalars=True)
    median_with_indices = method(lambda: ops.median_with_indices, scalars=True)
    softmax = method(lambda: ops.softmax)
    log_softmax = method(lambda: ops.log_softmax)
    cumsum = method(lambda: ops.cumsum)
    cumprod = method(lambda: ops.cumprod)
    cum_max = method(lambda: ops.cum_max, scalars=True)
    cum_min = method(lambda: ops.cum_min, scalars=True)
