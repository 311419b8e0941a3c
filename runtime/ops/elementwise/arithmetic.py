"""Element-wise arithmetic. Shapes broadcast and dtypes promote as NumPy's do."""

from __future__ import annotations

import functools
from typing import Any

from burnish.backend import Array, namespace
from burnish.operator import composed, operator
from burnish.ops._shapes import cast, unbroadcast
from burnish.ops.elementwise.compare import where
from burnish.ops.elementwise.elementary import log


@operator
def add(a, b) -> Array:
    """a + b"""
    return a + b


@add.vjp("a")
def _(g, y, a, b):
    return unbroadcast(g, a)


@add.vjp("b")
def _(g, y, a, b):
    return unbroadcast(g, b)


@operator
def sub(a, b) -> Array:
    """a - b"""
    return a - b


@sub.vjp("a")
def _(g, y, a, b):
    return unbroadcast(g, a)


@sub.vjp("b")
def _(g, y, a, b):
    return unbroadcast(-g, b)


@operator
def mul(a, b) -> Array:
    """a * b"""
    return a * b


@mul.vjp("a")
def _(g, y, a, b):
    return unbroadcast(g * b, a)


@mul.vjp("b")
def _(g, y, a, b):
    return unbroadcast(g * a, b)


@operator
def div(a, b) -> Array:
    """a / b, true division: integers give floats."""
    return a / b


@div.vjp("a")
def _(g, y, a, b):
    return unbroadcast(g / b, a)


@div.vjp("b")
def _(g, y, a, b):
    return unbroadcast(-g * y / b, b)


@operator
def int_div(a, b) -> Array:
    """Integers divided and rounded towards zero, as ONNX's Div has it."""
    quotient = a // b
    inexact = (quotient < 0) & (quotient * b != a)
    return quotient + inexact.astype(quotient.dtype)


@operator
def floor_div(a, b) -> Array:
    """a // b, rounded down."""
    return a // b


@floor_div.vjp("a", "b")
def _(g, y, a, b):
    return None, None


@operator
def mod(a, b, *, fmod: bool = False) -> Array:
    """The remainder of a / b, with b's sign, or with a's where `fmod`."""
    xp = namespace(a, b)
    return (xp.fmod if fmod else xp.mod)(a, b)


@mod.vjp("a")
def _(g, y, a, b, *, fmod):
    return unbroadcast(g, a)


@mod.vjp("b")
def _(g, y, a, b, *, fmod):
    return unbroadcast(-g * rint((a - y) / b), b)


@operator
def pow_(a, b) -> Array:
    """a ** b"""
    return a**b


@pow_.vjp("a")
def _(g, y, a, b):
    if isinstance(b, int | float):
        return unbroadcast(g * (b * a ** (b - 1)), a) if b else None
    exponent = where((a == 0) & (b == 0), 1, b)  # not 0 * 0 ** -1
    return unbroadcast(g * (b * a ** (exponent - 1)), a)


@pow_.vjp("b")
def _(g, y, a, b):
    base = a if isinstance(a, int | float) and a > 0 else where(a == 0, 1, a)
    return unbroadcast(g * y * log(base), b)


@operator
def maximum(a, b) -> Array:
    """The greater of a and b; where equal, each gets half of the gradient."""
    return namespace(a, b).maximum(a, b)


@maximum.vjp("a")
def _(g, y, a, b):
    return unbroadcast(_won(g, a > b, a == b), a)


@maximum.vjp("b")
def _(g, y, a, b):
    return unbroadcast(_won(g, b > a, a == b), b)


@operator
def minimum(a, b) -> Array:
    """The lesser of a and b; where equal, each gets half of the gradient."""
    return namespace(a, b).minimum(a, b)


@minimum.vjp("a")
def _(g, y, a, b):
    return unbroadcast(_won(g, a < b, a == b), a)


@minimum.vjp("b")
def _(g, y, a, b):
    return unbroadcast(_won(g, b < a, a == b), b)


def _won(g, won, tied):
    return where(won, g, where(tied, 0.5 * g, 0))


@composed
def max_of(*arrays) -> Array:
    """The elementwise maximum of any number of arrays."""
    return functools.reduce(maximum, arrays)


@composed
def min_of(*arrays) -> Array:
    """The elementwise minimum of any number of arrays."""
    return functools.reduce(minimum, arrays)


@composed
def sum_of(*arrays) -> Array:
    """The sum of any number of arrays."""
    return functools.reduce(add, arrays)


@composed
def mean_of(*arrays) -> Array:
    """The mean of any number of arrays, element by element."""
    return sum_of(*arrays) / len(arrays)


@operator
def neg(x) -> Array:
    """-x"""
    return -x


@neg.vjp
def _(g, y, x):
    return -g


@operator
def abs_(x) -> Array:
    """|x|; the gradient at 0 is 0."""
    return abs(x)


@abs_.vjp
def _(g, y, x):
    return g * sign(x)


@operator
def sign(x) -> Array:
    """-1, 0 or 1; of booleans itself."""
    return x if x.dtype.kind == "b" else namespace(x).sign(x)


@sign.vjp
def _(g, y, x):
    return None


@operator
def floor(x) -> Array:
    """The integer at or below x, in x's dtype."""
    return x if _is_integer(x) else namespace(x).floor(x)


@floor.vjp
def _(g, y, x):
    return None


@operator
def ceil(x) -> Array:
    """The integer at or above x, in x's dtype."""
    return x if _is_integer(x) else namespace(x).ceil(x)


@ceil.vjp
def _(g, y, x):
    return None


@operator
def rint(x) -> Array:
    """The nearest integer, halves to the even one, in x's dtype."""
    return x if _is_integer(x) else namespace(x).rint(x)


@rint.vjp
def _(g, y, x):
    return None


@composed
def round_(x: Any, decimals: int = 0) -> Array:
    """x rounded to decimals, halves to the even number, in x's dtype.

    decimals: 0 gives integers, -1 tens.
    """
    if decimals == 0 or (decimals > 0 and _is_integer(x)):
        return rint(x)
    unit = 10.0 ** abs(decimals)
    if decimals > 0:
        return div(rint(mul(x, unit)), unit)
    return cast(mul(rint(div(x, unit)), unit), dtype=x.dtype)


@operator
def trunc(x) -> Array:
    """x without its fraction, rounded towards zero, in x's dtype."""
    return x if _is_integer(x) else namespace(x).trunc(x)


@trunc.vjp
def _(g, y, x):
    return None


def _is_integer(x):
    return x.dtype.kind in "iub"


@operator
def square(x) -> Array:
    """x * x"""
    return x * x


@square.vjp
def _(g, y, x):
    return 2 * g * x


@operator
def reciprocal(x) -> Array:
    """1 / x"""
    return 1 / x


@reciprocal.vjp
def _(g, y, x):
    return -g * y * y
