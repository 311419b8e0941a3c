"""Element-wise operators as programs: what joins them into chains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from burnish.plan.graph import Constant, Node, Value
from burnish.plan.rewrites.fold import scale_and_shift

if TYPE_CHECKING:
    from burnish.plan.rewrites.fuse import Around

_REGISTERS = 16

_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "div",
    "maximum": "max",
    "minimum": "min",
    "pow_": "pow",
    "neg": "neg",
    "abs_": "abs",
    "exp": "exp",
    "log": "log",
    "log1p": "log1p",
    "expm1": "expm1",
    "floor": "floor",
    "ceil": "ceil",
    "rint": "rint",
    "trunc": "trunc",
    "sin": "sin",
    "cos": "cos",
    "sqrt": "sqrt",
    "erf": "erf",
    "square": "square",
    "reciprocal": "reciprocal",
    "greater": "greater",
    "greater_or_equal": "at_least",
    "less": "less",
    "less_or_equal": "at_most",
    "equal": "equal",
    "not_equal": "unequal",
    "logical_and": "and",
    "logical_or": "or",
    "logical_not": "not",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "where": "where",
    "cast": "none",
}
_OF_TRUTH = (
    *("logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or"),
    *("where", "cast", "dropped"),
)


def to_program(node: Node, act: tuple[str, float, float] | None) -> Node | None:
    """A node that kernels compute element by element, as a program of one step."""
    if node.name == "batch_norm":
        return _norm(node)
    if node.name in _FORMULAS:
        return _formula(node)
    if act is not None:
        step, low, high = act
        args = node.args[:1]
    else:
        step, low, high = _OPERATORS.get(node.name, ""), 0.0, 0.0
        args = [_number(arg) for arg in node.args]
        step, args = _power(step, args)
    if not step or not _fits(node, args):
        return None
    if node.name == "cast" and node.result.dtype == np.bool_:
        step, args = "unequal", [*args, 0.0]
    places = [*range(len(args)), 0, 0][:3]
    return _program(args, [(step, *places, low, high)], node)


_POWERS = {2.0: "square", 1.0: "none", -1.0: "reciprocal"}


def _power(step: str, args: list[Any]) -> tuple[str, list[Any]]:
    """Powers of some numbers are other steps."""
    if step != "pow" or not isinstance(args[1], int | float):
        return step, args
    known = _POWERS.get(float(args[1]))
    return (known, args[:1]) if known else (step, args)


def _program(args: list[Any], code: list[Any], node: Node) -> Node:
    return Node("program", args, {"code": code}, node.results, node.lines)


def _number(arg: Any) -> Any:
    if isinstance(arg, np.generic) and arg.dtype.kind in "fiu":
        return float(arg)
    return arg


def _fits(node: Node, args: list[Any]) -> bool:
    """Whether all that goes in and out is float32, or truth where it may be."""
    arrays = [arg for arg in args if isinstance(arg, Value | Constant)]
    if not any(isinstance(arg, Value) for arg in arrays):
        return False
    if not all(isinstance(arg, Value | Constant | int | float) for arg in args):
        return False
    kinds = {arg.dtype for arg in arrays}
    if node.result.dtype not in (np.float32, np.bool_):
        return False
    if kinds == {np.dtype(np.float32)}:
        return True
    is_known = kinds <= {np.dtype(np.float32), np.dtype(np.bool_)}
    return is_known and node.name in _OF_TRUTH


def _norm(node: Node) -> Node | None:
    """A batch norm of constants: x * scale + shift for each channel."""
    moved = scale_and_shift(node)
    x = node.args[0]
    if moved is None or not isinstance(x, Value) or x.dtype != np.float32:
        return None
    tail = (1,) * (len(x.shape) - 2)
    by, shift = (part.then(lambda a: a.reshape(-1, *tail)) for part in moved)
    code = [("mul", 0, 1, 0, 0.0, 0.0), ("add", 3, 2, 0, 0.0, 0.0)]
    return _program([x, by, shift], code, node)


_FORMULAS: dict[str, tuple[tuple[Any, ...], str]] = {
    "dropped": (("factor",), "mul 1 2, mul 0 3"),
    "threshold": (("threshold", "value"), "at_most 0 1, where 3 2 0"),
    "elementwise_cross_entropy": (
        (-100.0, 1.0),
        "log 0, max 4 2, mul 1 5, sub 3 0, log 7, max 8 2, sub 3 1, mul 10 9, "
        "add 6 11, neg 12",
    ),
    "prelu_of": ((), "leak 0 0 1"),
    "is_nan": ((), "unequal 0 0"),
    "sign": ((0.0, 1.0, -1.0), "less 0 1, where 4 3 0, greater 0 1, where 6 2 5"),
    "softsign": ((1.0,), "abs 0, add 2 1, div 0 3"),
    "log_sigmoid": ((), "neg 0, softplus 1, neg 2"),
    "sigmoid_gate": ((), "sigmoid 1, mul 0 2"),
    "celu": (
        (0.0, "alpha"),
        "min 0 1, div 3 2, expm1 4, mul 5 2, max 0 1, add 6 7",
    ),
}
"""Operators of several steps: numbers, or options, behind the arguments, and what is
computed from which of them and of the results before."""


def _formula(node: Node) -> Node | None:
    numbers, steps = _FORMULAS[node.name]
    more = [node.options[n] if isinstance(n, str) else n for n in numbers]
    args = [*node.args, *more]
    if not _fits(node, args):
        return None
    code = []
    for step in steps.split(", "):
        name, *places = step.split()
        a, b, c = [*map(int, places), 0, 0][:3]
        code.append((name, a, b, c, 0.0, 0.0))
    return _program(args, code, node)


def chain(node: Node, around: Around) -> Node | None:
    """Programs one after the other -> one program."""
    if node.name != "program":
        return None
    for i, arg in enumerate(node.args):
        first = around.only(arg, "program")
        if first is None or first.result.shape != node.result.shape:
            continue
        made = _behind(first, node, i)
        if made is not None:
            return chain(made, around) or made
    return None


def _behind(first: Node, last: Node, place: int) -> Node | None:
    """`last` with its argument at `place` computed by `first`."""
    args = list(first.args)
    where: dict[int, int] = {}  # an argument of `last` -> its register
    for i, arg in enumerate(last.args):
        if arg is last.args[place]:
            continue
        same = [
            j for j, other in enumerate(args) if other is arg and isinstance(arg, Value)
        ]
        if not same:
            args.append(arg)
        where[i] = same[0] if same else len(args) - 1
    steps = len(first.options["code"])
    if len(args) + steps + len(last.options["code"]) > _REGISTERS:
        return None
    for i, arg in enumerate(last.args):
        if arg is last.args[place]:
            where[i] = len(args) + steps - 1
    code = [_moved(s, len(first.args), len(args), {}) for s in first.options["code"]]
    code += [
        _moved(s, len(last.args), len(args) + steps, where)
        for s in last.options["code"]
    ]
    lines = first.lines + [each for each in last.lines if each not in first.lines]
    return Node("program", args, {"code": code}, last.results, lines)


def _moved(step: Any, args: int, now: int, where: dict[int, int]) -> Any:
    """A step with other registers: arguments by `where`, results from `now` on."""
    name, *places, low, high = step
    moved = [where.get(p, p) if p < args else p - args + now for p in places]
    return (name, *moved, low, high)
