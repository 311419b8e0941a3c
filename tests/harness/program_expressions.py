"""Parse expressions of a program's text: Python's syntax with a few keywords."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from burnish.codegen.program import (
    Attribute,
    BinOp,
    Call,
    Conditional,
    Constant,
    Expression,
    Host,
    Keyed,
    Layer,
    ListOrTuple,
    Literal,
    Method,
    Name,
    Slice,
    Subscript,
    UnaryOp,
    Unwritten,
    Value,
    Weight,
)

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//",
    ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.And: "and", ast.Or: "or",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in",
    ast.NotIn: "not in",
}  # fmt: skip
_SPECIAL = {"_each", "_unary", "_name", "_constant", "_host"}


class Expressions:
    """Parses expressions over the values and weights that are known by name."""

    def __init__(self) -> None:
        self.known: dict[str, Value | Weight] = {}

    def expression(self, e: ast.expr) -> Expression:
        match e:
            case ast.Name(id=name) if name in self.known:
                return self.known[name]
            case ast.Attribute(value=ast.Name(id="self")):
                return Name(ast.unparse(e))
            case ast.BinOp():
                return self._binary(e.op, e.left, e.right)
            case ast.BoolOp(values=[left, right]):
                return self._binary(e.op, left, right)
            case ast.Compare(ops=[operator], comparators=[right]):
                return self._binary(operator, e.left, right)
            case ast.IfExp():
                return Conditional(*map(self.expression, (e.body, e.test, e.orelse)))
            case ast.List(elts=items) | ast.Tuple(elts=items) if not _is_plain(e):
                brackets = "[]" if isinstance(e, ast.List) else "()"
                return ListOrTuple(self._each(items), brackets)
            case ast.Dict():
                keys = [ast.literal_eval(key) for key in e.keys if key is not None]
                return Keyed(tuple(zip(keys, self._each(e.values), strict=True)))
            case ast.Subscript():
                keys = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
                return Subscript(self.expression(e.value), self._each(keys))
            case ast.Attribute():
                return Attribute(self.expression(e.value), e.attr)
            case ast.Call():
                return self._call(e)
        return Literal(plain(e))

    def _each(self, items: list[ast.expr]) -> tuple[Expression, ...]:
        return tuple(map(self.expression, items))

    def _binary(self, operator: ast.AST, left: ast.expr, right: ast.expr) -> BinOp:
        ends = self.expression(left), self.expression(right)
        return BinOp(_OPERATORS[type(operator)], *ends)

    def _call(self, e: ast.Call) -> Expression:
        options = tuple((k.arg or "", self.expression(k.value)) for k in e.keywords)
        match e.func:
            case ast.Name(id="_slice"):
                return Slice(**dict(options))
            case ast.Name(id=name) if name in _SPECIAL:
                return self._special(name, e.args)
            case ast.Call(func=ast.Name(id="_unwritten")):
                function, *known = map(plain, e.func.args)
                return Unwritten(function, self._each(e.args), options, *known)
            case ast.Call(func=ast.Attribute(attr=kind)):
                return self._layer(kind, e.func, self._each(e.args))
            case ast.Attribute(value=target, attr=name) if not self._is_module(target):
                return Method(
                    self.expression(target), name, self._each(e.args), options
                )
        return Call(ast.unparse(e.func), self._each(e.args), options)

    def _is_module(self, target: ast.expr) -> bool:
        """Whether it is a dotted name, and none of a value or weight."""
        while isinstance(target, ast.Attribute):
            target = target.value
        return isinstance(target, ast.Name) and target.id not in {*self.known, "self"}

    def _layer(
        self, kind: str, made: ast.Call, inputs: tuple[Expression, ...]
    ) -> Layer:
        options: dict[str, Any] = {}
        weights: dict[str, Weight] = {}
        for keyword in made.keywords:
            value, name = keyword.value, keyword.arg or ""
            held = self.known.get(value.id) if isinstance(value, ast.Name) else None
            if isinstance(held, Weight):
                weights[name] = held
            else:
                options[name] = plain(value)
        return Layer(kind, tuple(map(plain, made.args)), options, weights, inputs)

    def _special(self, name: str, args: list[ast.expr]) -> Expression:
        """Parse what Python's syntax lacks, written as calls of keywords."""
        match name, args:
            case "_each", [ast.List(elts=items)]:
                return ListOrTuple(self._each(items), "[]")
            case "_each", [ast.Tuple(elts=items)]:
                return ListOrTuple(self._each(items), "()")
            case "_unary", [operator, operand]:
                return UnaryOp(plain(operator), self.expression(operand))
            case "_name", [text]:
                return Name(plain(text))
            case "_constant", [dtype, numbers]:
                return Constant(np.array(plain(numbers), plain(dtype)))
            case "_host", [dtype, shape, ast.List(elts=items)]:
                array = np.empty(len(items), object)
                array[:] = self._each(items)
                return Host(array.reshape(plain(shape)), plain(dtype))
        given = ", ".join(map(ast.unparse, args))
        raise ValueError(f"expected the arguments of {name} as printed, got {given}")


def syntax(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _is_plain(e: ast.expr) -> bool:
    """Whether a list or tuple holds nothing but plain values."""
    names = {n.id for n in ast.walk(e) if isinstance(n, ast.Name)}
    others = ast.Call | ast.Attribute | ast.Subscript | ast.Dict
    computed = ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp
    return names <= {"inf", "nan"} and not any(
        isinstance(n, others | computed) for n in ast.walk(e)
    )


def plain(e: ast.expr) -> Any:
    """A plain value of Python's, infinities and NaN among them."""
    match e:
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -plain(operand)
        case ast.List(elts=items):
            return [*map(plain, items)]
        case ast.Tuple(elts=items):
            return tuple(map(plain, items))
        case ast.Name(id=name):
            raise ValueError(f"expected a value or weight that is declared, got {name}")
    return ast.literal_eval(e)
