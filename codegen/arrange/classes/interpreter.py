"""Interpret statements with the runtime library on sampled inputs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from burnish import Tensor, nn, ops
from burnish.backend import Device
from burnish.codegen.program import (
    Assign,
    Attribute,
    BinOp,
    Call,
    Constant,
    Expression,
    Host,
    Layer,
    ListOrTuple,
    Literal,
    Method,
    Name,
    Slice,
    Statement,
    Subscript,
    UnaryOp,
    Value,
)

Numbers = dict[Value, Any]

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "@": operator.matmul,
    "==": operator.eq,
    "&": operator.and_,
    "|": operator.or_,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "~": operator.invert,
    "not ": operator.not_,
}


class Untried(Exception):
    """An expression that the interpreter does not support."""


def run(
    statements: Iterable[Statement], inputs: Numbers, layers: Mapping[int, nn.Module]
) -> Numbers:
    """Values of all targets; layers: the function for each Layer, by its id.

    Raises Untried for loops, branches and free weights.
    """
    found = dict(inputs)

    def of(expression: Expression | None) -> Any:
        match expression:
            case None:
                return None
            case Value():
                if expression not in found:
                    raise Untried(expression.hint)
                return found[expression]
            case Literal(value=value):
                return value
            case Name(text="self.device"):
                return Device("cpu")
            case Constant(array=array):
                return Tensor(np.array(array))
            case Host(array=array) if array.ndim == 0:
                return of(array.item())
            case Host(array=array):
                return [of(item) for item in array.ravel()]
            case ListOrTuple(items=items, brackets=brackets):
                return (tuple if brackets == "()" else list)(map(of, items))
            case BinOp(operator=sign, left=left, right=right) if sign in _BINARY:
                return _BINARY[sign](of(left), of(right))
            case UnaryOp(operator=sign, operand=operand) if sign in _UNARY:
                return _UNARY[sign](of(operand))
            case Attribute(target=target, name=name):
                return getattr(of(target), name)
            case Slice(start=start, stop=stop, step=step):
                return slice(of(start), of(stop), of(step))
            case Subscript(target=target, keys=keys):
                given = tuple(map(of, keys))
                return of(target)[given if len(given) > 1 else given[0]]
            case Method(target=target, name=name, args=args, options=options):
                return getattr(of(target), name)(*map(of, args), **named(options))
            case Call(function=function, args=args, options=options):
                called = _function(function)
                return called(*map(of, args), **named(options))
            case Layer(inputs=given) if id(expression) in layers:
                return layers[id(expression)](*map(of, given))
        raise Untried(type(expression).__name__)

    def named(options: Iterable[tuple[str, Expression]]) -> dict[str, Any]:
        return {name: of(value) for name, value in options}

    for statement in statements:
        if not isinstance(statement, Assign):
            raise Untried(type(statement).__name__)
        made = of(statement.expression)
        values = (made,) if len(statement.targets) == 1 else made
        found.update(zip(statement.targets, values, strict=True))
    return found


def _function(name: str) -> Any:
    if name in ("float", "int", "bool"):
        return {"float": float, "int": int, "bool": bool}[name]
    module, _, last = name.partition(".")
    if module == "ops" and last in vars(ops)["__all__"]:
        return getattr(ops, last)
    if module == "Tensor" and hasattr(Tensor, last):
        return getattr(Tensor, last)
    if name == "Tensor":
        return Tensor
    raise Untried(name)
