"""Comparisons, logic and choice. Results are booleans; only `where` has gradients."""

from __future__ import annotations

from burnish.backend import Array, namespace
from burnish.operator import operator
from burnish.ops._kernels.blocks import select
from burnish.ops._shapes import unbroadcast


@operator
def equal(a, b) -> Array:
    """a == b"""
    return namespace(a, b).equal(a, b)


@operator
def not_equal(a, b) -> Array:
    """a != b"""
    return namespace(a, b).not_equal(a, b)


@operator
def greater(a, b) -> Array:
    """a > b"""
    return namespace(a, b).greater(a, b)


@operator
def greater_or_equal(a, b) -> Array:
    """a >= b"""
    return namespace(a, b).greater_equal(a, b)


@operator
def less(a, b) -> Array:
    """a < b"""
    return namespace(a, b).less(a, b)


@operator
def less_or_equal(a, b) -> Array:
    """a <= b"""
    return namespace(a, b).less_equal(a, b)


@operator
def logical_and(a, b) -> Array:
    """Both are true (not zero)."""
    return namespace(a, b).logical_and(a, b)


@operator
def logical_or(a, b) -> Array:
    """One is true (not zero), or both."""
    return namespace(a, b).logical_or(a, b)


@operator
def logical_xor(a, b) -> Array:
    """Exactly one is true (not zero)."""
    return namespace(a, b).logical_xor(a, b)


@operator
def logical_not(x) -> Array:
    """x is false (zero)."""
    return namespace(x).logical_not(x)


@operator
def where(condition, a, b) -> Array:
    """a where the condition holds, b elsewhere; all three broadcast."""
    return namespace(condition, a, b).where(condition, a, b)


where.on("numpy")(select)


@where.vjp("a")
def _(g, y, condition, a, b):
    return unbroadcast(where(condition, g, 0), a)


@where.vjp("b")
def _(g, y, condition, a, b):
    return unbroadcast(where(condition, 0, g), b)


@operator
def is_nan(x) -> Array:
    """x is not a number."""
    return namespace(x).isnan(x)


@operator
def is_inf(x, /, detect_negative: bool = True, detect_positive: bool = True) -> Array:
    """x is infinite, of the signs asked for."""
    xp = namespace(x)
    if detect_negative and detect_positive:
        return xp.isinf(x)
    if detect_negative:
        return xp.isneginf(x)
    if detect_positive:
        return xp.isposinf(x)
    return xp.zeros(x.shape, bool)


@operator
def is_finite(x) -> Array:
    """x is neither infinite nor not a number."""
    return namespace(x).isfinite(x)


@operator
def is_close(a, b, /, rtol: float = 1e-5, atol: float = 1e-8) -> Array:
    """|a - b| <= atol + rtol * |b|"""
    return namespace(a, b).isclose(a, b, rtol, atol)
