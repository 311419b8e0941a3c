"""Special functions that NumPy lacks; CuPy has them under another name."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from burnish.backend import symbols
from burnish.backend.namespace import Array, namespace

# erf(x) / x for |x| <= 1, a polynomial in 2 x**2 - 1: interpolated at Chebyshev nodes.
_INNER = (
    0.9654687386698673,
    -0.1405360890227171,
    0.019852496688984218,
    -0.0022854855611440855,
    0.00021751715603563488,
    -1.75371694412802e-05,
    1.2233827638093572e-06,
    -7.51156925108609e-08,
    4.115751500265885e-09,
    -2.035231956483527e-10,
    9.21125018742823e-12,
    -3.80659122412214e-13,
)

# erfc(x) exp(x**2) for 1 <= x <= 6, a polynomial in (12/5) (x - 3) / (x + 3) + 1/5.
_OUTER = (
    0.20798329133342885,
    -0.15436117429436919,
    0.04969844540339414,
    -0.012713147695691918,
    0.002479314697086253,
    -0.0003316029605792838,
    1.956358319778174e-05,
    2.425557485042923e-06,
    -5.54127309801664e-07,
    -4.5267318133461335e-09,
    1.133933573114706e-08,
    -2.637756022974126e-10,
    -2.5700407551346905e-10,
    6.02173256030324e-12,
    6.043792147788813e-12,
    6.697645564790815e-15,
)

# float32: erf(x) = x P(x**2) / Q(x**2) on [-4, 4], where it has reached 1 (Eigen, XLA).
_P = (
    -1.60960333262415e-02,
    -2.95459980854025e-03,
    -7.34990630326855e-04,
    -5.69250639462346e-05,
    -2.10102402082508e-06,
    2.77068142495902e-08,
    -2.72614225801306e-10,
)
_Q = (
    -1.42647390514189e-02,
    -7.37332916720468e-03,
    -1.68282697438203e-03,
    -2.13374055278905e-04,
    -1.45660718464996e-05,
)

# float32: log((1 - F) / F) = -x (a s + b + c / (s**2 + d s + e)), s = x**2, F the
# normal distribution's share below x. Fitted for the least greatest error of x F,
# 1.3e-7 (weighted least squares, repeated); right for any larger |x| too.
_SHARE = (
    0.039612275433632695,
    2.160550435174125,
    -171.85163521135007,
    17.815269178715067,
    304.2785647868585,
)


def erf(x: Array) -> Array:
    """The error function, to one rounding in float64 and four in float32."""
    if namespace(x) is symbols.library:
        return symbols.library.erf(x)
    if namespace(x) is not np:
        return _erf_elsewhere(x)
    x = np.asarray(x)
    if x.dtype == np.float64 or x.dtype.kind in "iub":
        return _erf64(x.astype(np.float64, copy=False))
    return _erf32(x.astype(np.float32, copy=False)).astype(x.dtype, copy=False)


def _erf_elsewhere(x: Array) -> Array:
    xp = namespace(x)
    if xp.__name__ != "cupy":
        return xp.asarray(erf(xp.asnumpy(x)))
    from cupyx.scipy.special import erf as on_gpu

    return on_gpu(x)


def put_normal_share(y: Array, x: Array, times: Any = 1) -> None:
    """Write into y: `times` the share of the normal distribution that is below x.

    To three roundings of 1; x and y of one floating dtype.
    """
    xp = namespace(x)
    if xp is symbols.library:
        y[...] = xp.normcdf(x) * times
        return
    if x.dtype == np.float64 or xp is not np:
        xp.multiply(erf(x * 0.5**0.5) + 1, 0.5, out=y)
        y *= times
        return
    power, rate = fast_power()
    a, b, c, d, e = _SHARE
    a *= -rate  # of squares in units of a, the quotient has another numerator
    square = x * x
    square *= a
    np.add(square, a * d, out=y)
    y *= square
    y += a * a * e
    np.divide(-rate * c * a * a, y, out=y)
    y += square
    y += -rate * b
    y *= x
    power(y, out=y)
    y += 1
    np.divide(times, y, out=y)


@functools.cache
def fast_power() -> tuple[np.ufunc, float]:
    """A power function of NumPy's, fast in float32, and the r with power(r x) = e**x.

    `exp2` costs half of `exp` where NumPy was built with vectors for it.
    """
    try:
        from numpy.lib.introspect import opt_func_info
    except ImportError:  # NumPy 2.0
        return np.exp, 1.0
    found = opt_func_info(func_name="^exp2$", signature="float32").get("exp2", {})
    vectors = any(
        not kernel["current"].startswith("baseline") for kernel in found.values()
    )
    return (np.exp2, 1 / math.log(2)) if vectors else (np.exp, 1.0)


def _erf64(x: Array) -> Array:
    size = np.minimum(np.abs(x), 6.0)
    y = _polynomial(2 * size * size - 1, _INNER)
    y *= size
    far = size > 1
    if far.any():
        z = size[far]
        tail = _polynomial(2.4 * (z - 3) / (z + 3) + 0.2, _OUTER)
        y[far] = 1 - np.exp(-z * z) * tail
    return np.copysign(y, x)


def _erf32(x: Array) -> Array:
    x = np.clip(x, -4, 4)
    square = x * x
    y = _polynomial(square, _P)
    y *= x
    y /= _polynomial(square, _Q)
    return y


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Any:
    """The sum of coefficients[i] * x**i, in x's dtype, by Horner's rule."""
    y = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        y *= x
        y += coefficient
    return y
