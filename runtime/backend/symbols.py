"""Trace array formulas on symbols to generate the body of a kernel.

A formula is a function of arrays that works element by element: NumPy's arithmetic,
`namespace(x)`'s functions with `out=`, arrays that are changed in place. Run on symbols
it leaves statements in C behind, which `burnish.backend.cuda.elementwise.fused`
compiles. A formula that branches on an element, or calls what is not here, raises
Unwritten: it is then computed as it is, a kernel for every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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

    def call(self, name: str, args: Sequence[Any], out: Symbol | None) -> Symbol:
        """The value of one of the functions below; `out` changed to it, where given."""
        text, kind = _TEXTS[name]
        made = self.emit(text.format(*map(self.operand, args)), kind)
        return made if out is None else self.change(out, made)

    def change(self, symbol: Symbol, value: Any) -> Symbol:
        """Change a variable in place."""
        given = self.operand(value)
        if given != symbol.name:
            self.lines.append(f"{symbol.name} = {given};")
        return symbol

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
        name = "truth" if np.dtype(dtype) == bool else "number"
        return self.script.call(name, (self,), None)

    def clip(self, low: Any, high: Any, out: Any = None) -> Symbol:
        y = self if low is None else maximum(self, low)
        y = y if high is None else minimum(y, high)
        return y if out is None else self.script.change(out, y)

    def __getitem__(self, index: Any) -> Symbol:
        if index is not ...:
            raise Unwritten("a kernel's formula takes no parts of arrays")
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        self.script.change(self[index], value)

    def __getattr__(self, name: str) -> Any:
        raise Unwritten(f"a kernel's formula has no {name} of arrays")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise Unwritten("a kernel's formula calls NumPy, not namespace(x)")

    def __array_function__(self, *_: Any) -> Any:
        self.__array__()

    def __bool__(self) -> bool:
        raise Unwritten("a kernel's formula branches on an element")

    def __neg__(self) -> Symbol:
        return self.script.call("negative", (self,), None)

    def __invert__(self) -> Symbol:
        return self.script.call("logical_not", (self,), None)

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


def _function(name: str) -> Callable[..., Symbol]:
    """A function of symbols and numbers."""

    def call(*args: Any, out: Any = None, dtype: Any = None) -> Symbol:
        script = next(a.script for a in (*args, out) if isinstance(a, Symbol))
        return script.call(name, args, out)

    return call


_TEXTS = {
    **{
        name: (f"{{0}} {sign} {{1}}", "wide")
        for name, sign in (
            ("add", "+"),
            ("subtract", "-"),
            ("multiply", "*"),
            ("divide", "/"),
        )
    },
    **{
        name: (f"{{0}} {sign} {{1}}", "bool")
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
        name: (f"{name}({{0}})", "wide")
        for name in ("exp", "exp2", "expm1", "log", "log1p", "sqrt", "tanh", "erf")
    },
    "negative": ("-{0}", "wide"),
    "logical_not": ("!{0}", "bool"),
    "isnan": ("{0} != {0}", "bool"),
    "truth": ("{0} != 0", "bool"),
    "number": ("(wide){0}", "wide"),
    "square": ("{0} * {0}", "wide"),
    "abs": ("fabs({0})", "wide"),
    "rint": ("rint({0})", "wide"),
    "floor": ("floor({0})", "wide"),
    "ceil": ("ceil({0})", "wide"),
    "sign": ("{0} > 0 ? (wide)1 : {0} < 0 ? (wide)-1 : {0}", "wide"),
    "power": ("pow((wide){0}, (wide){1})", "wide"),
    "copysign": ("copysign((wide){0}, (wide){1})", "wide"),
    "normcdf": ("normal_share({0})", "wide"),
    "maximum": ("{0} > {1} || {0} != {0} ? {0} : {1}", "wide"),
    "minimum": ("{0} < {1} || {0} != {0} ? {0} : {1}", "wide"),
    "where": ("{0} ? {1} : {2}", "wide"),
}
"""Functions in C, of {0}, {1}, ..., and the kind of their value."""

_FUNCTIONS = {name: _function(name) for name in _TEXTS}
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
