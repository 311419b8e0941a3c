"""Trace array formulas on symbols to generate the body of a kernel.

A formula is a function of arrays that works element by element: NumPy's arithmetic,
`namespace(x)`'s functions with `out=`, arrays that are changed in place. Run on symbols
it leaves statements in C behind, which `burnish.backend.cuda.elementwise.fused`
compiles. A formula that branches on an element, or calls what is not here, raises
Unwritten: it is then computed as it is, a kernel for every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


class Unwritten(AttributeError):
    """Raised for a formula that a kernel's body cannot express."""


class Script:
    """The statements of one formula.

    named: constants become the elements of an array `constant` instead of literals, so
    that one kernel serves every value of a learning rate.
    """

    def __init__(self, dtype: Any, *, named: bool = False):
        self.dtype = np.dtype(dtype)
        self.lines: list[str] = []
        self.constants: list[float] = []
        self.named = named
        self.count = 0

    def variable(self, name: str, kind: str = "wide") -> Symbol:
        """A symbol for a variable that the kernel declares."""
        return Symbol(self, name, kind)

    def emit(self, text: str, kind: str = "wide") -> Symbol:
        """A new variable with the value of an expression."""
        self.count += 1
        name = f"t{self.count}"
        self.lines.append(f"{kind} {name} = {text};")
        return Symbol(self, name, kind)

    def operand(self, value: Any) -> str:
        """A symbol's name, or a number as C has it."""
        if isinstance(value, Symbol):
            return value.name
        if isinstance(value, bool | np.bool_):
            return "true" if value else "false"
        if not isinstance(value, int | float | np.number) or isinstance(value, complex):
            raise Unwritten(f"a kernel has no {type(value).__name__}")
        if self.named:
            self.constants.append(float(value))
            return f"constant[{len(self.constants) - 1}]"
        return _literal(float(value))


class Symbol:
    """A symbolic array element, which records a formula as it is computed."""

    __slots__ = ("kind", "name", "script")
    __array_ufunc__ = None  # NumPy's scalars leave arithmetic to it

    def __init__(self, script: Script, name: str, kind: str):
        self.script, self.name, self.kind = script, name, kind

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(bool) if self.kind == "bool" else self.script.dtype

    def astype(self, dtype: Any, copy: bool = True) -> Symbol:
        """As a number of the kernel's precision, or as a truth value."""
        if np.dtype(dtype) == bool:
            return self.script.emit(f"{self.name} != 0", "bool")
        return self.script.emit(f"(wide){self.name}")

    def clip(self, low: Any, high: Any, out: Any = None) -> Symbol:
        y = self if low is None else maximum(self, low)
        return _into(out, y if high is None else minimum(y, high))

    def __getitem__(self, index: Any) -> Symbol:
        if index is not ...:
            raise Unwritten("a kernel's formula takes no parts of arrays")
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        self[index]
        self.assign(value)

    def assign(self, value: Any) -> Symbol:
        """Change the variable in place."""
        given = self.script.operand(value)
        if given != self.name:
            self.script.lines.append(f"{self.name} = {given};")
        return self

    def __getattr__(self, name: str) -> Any:
        raise Unwritten(f"a kernel's formula has no {name} of arrays")

    def __bool__(self) -> bool:
        raise Unwritten("a kernel's formula branches on an element")

    def __neg__(self) -> Symbol:
        return self.script.emit(f"-{self.name}")

    def __invert__(self) -> Symbol:
        return self.script.emit(f"!{self.name}", "bool")

    def __abs__(self) -> Symbol:
        return _FUNCTIONS["abs"](self)

    def __pow__(self, exponent: Any) -> Symbol:
        return _FUNCTIONS["power"](self, exponent)

    __hash__ = None  # type: ignore[assignment]  # == is an expression


def _literal(value: float) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    return f"((wide){value!r})"


def _into(out: Any, y: Symbol) -> Symbol:
    return y if out is None else out.assign(y)


def _function(text: str, kind: str = "wide") -> Callable[..., Symbol]:
    """A function of symbols and numbers from an expression with {0}, {1}, ..."""

    def call(*args: Any, out: Any = None, dtype: Any = None) -> Symbol:
        script = next(a.script for a in (*args, out) if isinstance(a, Symbol))
        return _into(out, script.emit(text.format(*map(script.operand, args)), kind))

    return call


_FUNCTIONS: dict[str, Callable[..., Symbol]] = {
    **{
        name: _function(f"{{0}} {sign} {{1}}")
        for name, sign in (
            ("add", "+"),
            ("subtract", "-"),
            ("multiply", "*"),
            ("divide", "/"),
        )
    },
    **{
        name: _function(f"{{0}} {sign} {{1}}", "bool")
        for name, sign in (
            ("less", "<"),
            ("less_equal", "<="),
            ("greater", ">"),
            ("greater_equal", ">="),
            ("equal", "=="),
            ("not_equal", "!="),
            ("logical_and", "&&"),
            ("logical_or", "||"),
        )
    },
    **{
        name: _function(f"{name}({{0}})")
        for name in ("exp", "exp2", "expm1", "log", "log1p", "sqrt", "tanh", "erf")
    },
    "negative": _function("-{0}"),
    "logical_not": _function("!{0}", "bool"),
    "isnan": _function("{0} != {0}", "bool"),
    "square": _function("{0} * {0}"),
    "abs": _function("fabs({0})"),
    "rint": _function("rint({0})"),
    "floor": _function("floor({0})"),
    "ceil": _function("ceil({0})"),
    "sign": _function("{0} > 0 ? (wide)1 : {0} < 0 ? (wide)-1 : {0}"),
    "power": _function("pow((wide){0}, (wide){1})"),
    "copysign": _function("copysign((wide){0}, (wide){1})"),
    "normcdf": _function("normal_share({0})"),
    "maximum": _function("{0} > {1} || {0} != {0} ? {0} : {1}"),
    "minimum": _function("{0} < {1} || {0} != {0} ? {0} : {1}"),
    "where": _function("{0} ? {1} : {2}"),
}
maximum, minimum = _FUNCTIONS["maximum"], _FUNCTIONS["minimum"]


def _operators() -> None:
    for symbol, name in (
        ("add", "add"),
        ("sub", "subtract"),
        ("mul", "multiply"),
        ("truediv", "divide"),
        ("and", "logical_and"),
        ("or", "logical_or"),
    ):
        made = _FUNCTIONS[name]
        setattr(Symbol, f"__{symbol}__", lambda a, b, f=made: f(a, b))
        setattr(Symbol, f"__r{symbol}__", lambda a, b, f=made: f(b, a))
        setattr(Symbol, f"__i{symbol}__", lambda a, b, f=made: f(a, b, out=a))
    for symbol, name in (
        ("lt", "less"),
        ("le", "less_equal"),
        ("gt", "greater"),
        ("ge", "greater_equal"),
        ("eq", "equal"),
        ("ne", "not_equal"),
    ):
        setattr(Symbol, f"__{symbol}__", lambda a, b, f=_FUNCTIONS[name]: f(a, b))


_operators()


class Library:
    """The array namespace of symbols: NumPy's functions by their names."""

    __name__ = "symbols"
    bool_ = bool

    def __getattr__(self, name: str) -> Callable[..., Symbol]:
        if name not in _FUNCTIONS:
            raise Unwritten(f"a kernel's formula has no {name}")
        return _FUNCTIONS[name]

    @staticmethod
    def clip(x: Symbol, low: Any, high: Any, out: Any = None) -> Symbol:
        return x.clip(low, high, out)


library = Library()
