"""Elementary functions: roots, exponentials, logarithms, trigonometry, erf."""

from __future__ import annotations

import math

from burnish.backend import Array, namespace, special
from burnish.operator import operator
from burnish.ops._kernels.blocks import blockwise, filled
from burnish.ops._shapes import unbroadcast
from burnish.ops.elementwise.compare import where


@operator
def sqrt(x) -> Array:
    """The square root; its gradient at 0 is infinite."""
    return namespace(x).sqrt(x)


@sqrt.vjp
def _(g, y, x):
    return 0.5 * g / y


@operator
def exp(x) -> Array:
    """e ** x"""
    return namespace(x).exp(x)


@exp.vjp
def _(g, y, x):
    return g * y


@operator
def expm1(x) -> Array:
    """e ** x - 1, accurate near 0."""
    return namespace(x).expm1(x)


@expm1.vjp
def _(g, y, x):
    return g * (y + 1)


@operator
def log(x) -> Array:
    """The natural logarithm."""
    return namespace(x).log(x)


@log.vjp
def _(g, y, x):
    return g / x


@operator
def log1p(x) -> Array:
    """log(1 + x), accurate near 0."""
    return namespace(x).log1p(x)


@log1p.vjp
def _(g, y, x):
    return g / (1 + x)


@operator
def sin(x) -> Array:
    """The sine of x in radians."""
    return namespace(x).sin(x)


@sin.vjp
def _(g, y, x):
    return g * cos(x)


@operator
def cos(x) -> Array:
    """The cosine of x in radians."""
    return namespace(x).cos(x)


@cos.vjp
def _(g, y, x):
    return -g * sin(x)


@operator
def tan(x) -> Array:
    """The tangent of x in radians."""
    return namespace(x).tan(x)


@tan.vjp
def _(g, y, x):
    return g * (1 + y * y)


@operator
def asin(x) -> Array:
    """The angle whose sine is x, in radians."""
    return namespace(x).arcsin(x)


@asin.vjp
def _(g, y, x):
    return g / sqrt(1 - x * x)


@operator
def acos(x) -> Array:
    """The angle whose cosine is x, in radians."""
    return namespace(x).arccos(x)


@acos.vjp
def _(g, y, x):
    return -g / sqrt(1 - x * x)


@operator
def atan(x) -> Array:
    """The angle whose tangent is x, in radians."""
    return namespace(x).arctan(x)


@atan.vjp
def _(g, y, x):
    return g / (1 + x * x)


@operator
def atan2(a, b) -> Array:
    """The angle of the point (b, a), in radians; (0, 0) has gradient 0."""
    return namespace(a, b).arctan2(a, b)


@atan2.vjp("a")
def _(g, y, a, b):
    return unbroadcast(g * b / _squared_radius(a, b), a)


@atan2.vjp("b")
def _(g, y, a, b):
    return unbroadcast(-g * a / _squared_radius(a, b), b)


def _squared_radius(a, b):
    radius = a * a + b * b
    return where(radius == 0, 1, radius)


@operator
def sinh(x) -> Array:
    """The hyperbolic sine."""
    return namespace(x).sinh(x)


@sinh.vjp
def _(g, y, x):
    return g * cosh(x)


@operator
def cosh(x) -> Array:
    """The hyperbolic cosine."""
    return namespace(x).cosh(x)


@cosh.vjp
def _(g, y, x):
    return g * sinh(x)


@operator
def tanh(x) -> Array:
    """The hyperbolic tangent."""
    return namespace(x).tanh(x)


@tanh.vjp
def _(g, y, x):
    return blockwise(lambda g, y: g * (1 - y * y), g, y)


@operator
def asinh(x) -> Array:
    """The inverse of sinh."""
    return namespace(x).arcsinh(x)


@asinh.vjp
def _(g, y, x):
    return g / sqrt(x * x + 1)


@operator
def acosh(x) -> Array:
    """The inverse of cosh, for x >= 1."""
    return namespace(x).arccosh(x)


@acosh.vjp
def _(g, y, x):
    return g / sqrt(x * x - 1)


@operator
def atanh(x) -> Array:
    """The inverse of tanh."""
    return namespace(x).arctanh(x)


@atanh.vjp
def _(g, y, x):
    return g / (1 - x * x)


@operator
def erf(x) -> Array:
    """The error function."""
    return blockwise(special.erf, x)


@erf.vjp
def _(g, y, x):
    return blockwise(_bell, g, x, 2 / math.sqrt(math.pi), -1.0)


@operator
def ndtr(x) -> Array:
    """The share of the normal distribution that is below x."""
    return filled(special.put_normal_share, x)


@ndtr.vjp
def _(g, y, x):
    return blockwise(_bell, g, x, 1 / math.sqrt(2 * math.pi), -0.5)


def _bell(g, x, height, bend):
    return g * (height * exp(bend * x * x))
