"""Element-wise arithmetic. Shapes broadcast and dtypes promote as NumPy's do."""

from __future__ import annotations

from burnish.backend import namespace
from burnish.operator import operator
from burnish.ops._shapes import unbroadcast


@operator
def add(a, b):
    """a + b"""
    return a + b


@add.vjp("a")
def _(g, y, a, b):
    return unbroadcast(g, a)


@add.vjp("b")
def _(g, y, a, b):
    return unbroadcast(g, b)


@operator
def sub(a, b):
    """a - b"""
    return a - b


@sub.vjp("a")
def _(g, y, a, b):
    return unbroadcast(g, a)


@sub.vjp("b")
def _(g, y, a, b):
    return unbroadcast(-g, b)


@operator
def mul(a, b):
    """a * b"""
    return a * b


@mul.vjp("a")
def _(g, y, a, b):
    return unbroadcast(g * b, a)


@mul.vjp("b")
def _(g, y, a, b):
    return unbroadcast(g * a, b)


@operator
def neg(x):
    """-x"""
    return -x


@neg.vjp
def _(g, y, x):
    return -g


@operator
def exp(x):
    """e ** x"""
    return namespace(x).exp(x)


@exp.vjp
def _(g, y, x):
    return g * y
