"""Losses whose gradient must be written by hand to stay finite."""

from __future__ import annotations

import numpy as np

from burnish.backend import namespace
from burnish.operator import operator
from burnish.ops._blocks import blockwise, filled
from burnish.ops._shapes import unbroadcast
from burnish.ops.arithmetic import clip

_FLOOR = -100.0
_STEEPEST = 1e-12


@operator
def binary_cross_entropy(p, target):
    """-(target * log(p) + (1 - target) * log(1 - p)), logarithms held above -100"""
    return -(target * _log(p) + (1 - target) * _log(1 - p))


@binary_cross_entropy.vjp("p")
def _(g, y, p, target):
    return unbroadcast(g * (p - target) / clip(p * (1 - p), _STEEPEST), p)


@binary_cross_entropy.vjp("target")
def _(g, y, p, target):
    return unbroadcast(g * (clipped_log(1 - p) - clipped_log(p)), target)


@operator
def huber(x, *, delta: float = 1.0):
    """x ** 2 / 2 where |x| <= delta, delta * (|x| - delta / 2) elsewhere"""
    return filled(_huber, x, delta)


@huber.vjp
def _(g, y, x, *, delta):
    return blockwise(lambda g, x: g * clip(x, -delta, delta), g, x)


def _huber(y, x, delta):
    near = namespace(x).clip(x, -delta, delta)
    namespace(x).multiply(near, -0.5, out=y)
    y += x
    y *= near


@operator
def clipped_log(x):
    """log(x), held above -100"""
    return _log(x)


@clipped_log.vjp
def _(g, y, x):
    return g / clip(x, _STEEPEST)


def _log(x):
    xp = namespace(x)
    with np.errstate(divide="ignore"):
        return xp.maximum(xp.log(x), _FLOOR)
