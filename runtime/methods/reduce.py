"""Reduction methods: axis is an integer, a tuple or None for all axes."""

from __future__ import annotations

from burnish import ops
from burnish.autodiff import Variable
from burnish.methods._bind import method
from burnish.ops.arrays._scalars import along


class ReduceMethods(Variable):
    """Reductions, scans, softmax and normalisation along an axis."""

    __slots__ = ()

    sum = method(ops.sum)
    mean = method(ops.mean)
    max = method(ops.max)
    min = method(ops.min)
    prod = method(ops.prod)
    any = method(ops.any)
    all = method(ops.all)
    logsumexp = method(ops.logsumexp)
    var = method(ops.var)
    std = method(ops.std)
    var_mean = method(ops.var_mean)
    norm = method(ops.norm)
    argmax = method(ops.argmax)
    argmin = method(ops.argmin)
    max_with_indices = method(ops.max_with_indices)
    min_with_indices = method(ops.min_with_indices)
    median = along(method(ops.median))
    median_with_indices = along(method(ops.median_with_indices))
    softmax = method(ops.softmax)
    log_softmax = method(ops.log_softmax)
    cumsum = method(ops.cumsum)
    cumprod = method(ops.cumprod)
    cum_max = along(method(ops.cum_max))
    cum_min = along(method(ops.cum_min))
