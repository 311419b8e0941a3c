"""Shape arithmetic on the host: folded while generating, or left as Python ints.

A Host value is an object array of expressions, so NumPy itself does Gather, Slice,
Concat and broadcasting; unknown sizes stay symbolic expressions. An operator is
evaluated here when all its inputs are Host values or small known integers.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
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
    Literal,
    Subscript,
    UnaryOp,
    Value,
    Weight,
)

_LARGEST = 64
#: Elements of a Host value; a shape has no more, and doubling would find no end.
_LONGEST = 256
#: Numbers beyond these wrap on the device, so they are left to it.
_INT64 = range(-(1 << 63), 1 << 63)


def host(items: Any, dtype: str | None = "int64") -> Host:
    """Numbers and expressions, in any nesting, as a Host value."""
    array = np.asarray(items, object)
    wrapped = np.empty(array.shape, object)
    for i, item in np.ndenumerate(array):
        wrapped[i] = item if isinstance(item, Expression) else Literal(item)
    return Host(wrapped, dtype)


def sizes(value: Expression, start: int = 0, end: int | None = None) -> Host | None:
    """The shape of a tensor as host numbers; None when its rank is not known."""
    if value.shape is None:
        return None
    dims = [
        dim
        if isinstance(dim, int)
        else Subscript(Attribute(value, "shape"), (Literal(i),))
        for i, dim in enumerate(value.shape)
    ]
    return host(dims[start:end])


def evaluate(
    op_type: str,
    inputs: list[Expression | None],
    attributes: dict[str, Any],
    outputs: int = 1,
) -> list[Host]:
    """The operator's results as host numbers; none when it belongs on the device."""
    try:
        if op_type == "Split" and isinstance(inputs[0], Host):
            return _parts(attributes, *map(_as_host, inputs), outputs=outputs)
        result = _evaluated(op_type, inputs, attributes)
    except _Symbolic:
        return []
    return [] if result is None or result.array.size > _LONGEST else [result]


def _parts(
    attributes: dict[str, Any],
    data: Host | None,
    sizes: Host | None = None,
    *,
    outputs: int,
) -> list[Host]:
    """The parts of Split, which end where sizes add up to; else equal ones."""
    axis = attributes.get("axis", 0)
    wanted = attributes.get("split") or _integers(sizes)
    if data is None or not -data.array.ndim <= axis < data.array.ndim:
        return []
    length = data.array.shape[axis]
    if wanted is None:
        wanted = [-(-length // outputs)] * (outputs - 1)
        wanted.append(length - sum(wanted))
    if len(wanted) != outputs or min(wanted) < 0 or sum(wanted) != length:
        return []  # the operator's rule reports it
    parts = np.split(data.array, np.cumsum(wanted)[:-1], axis)
    return [Host(part, data.dtype) for part in parts]


def _evaluated(
    op_type: str,
    inputs: list[Expression | None],
    attributes: dict[str, Any],
) -> Host | None:
    if op_type in ("Shape", "Size") and inputs[0] is not None:
        shape = sizes(inputs[0], attributes.get("start", 0), attributes.get("end"))
        if op_type == "Shape" or shape is None:
            return shape
        return host(_product(shape.array))
    function = _TABLE.get(op_type)
    if function is None or not any(isinstance(x, Host) for x in inputs):
        return None
    arrays = [_as_host(x) for x in inputs]
    if any(a is None and x is not None for a, x in zip(arrays, inputs, strict=True)):
        return None
    try:
        return function(attributes, *arrays)
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return None  # the operator's rule reports it


def _as_host(value: Expression | None) -> Host | None:
    if isinstance(value, Host):
        return value
    if isinstance(value, Constant | Weight):
        trained = isinstance(value, Weight) and value.trained
        small = (
            math.prod(n for n in value.shape or () if isinstance(n, int)) <= _LARGEST
        )
        if small and not trained:
            return host(value.array.tolist(), value.dtype)
    if isinstance(value, Literal) and not isinstance(value.value, str | None):
        return host(value.value)
    if isinstance(value, Value) and value.host:
        return host(value, value.dtype)
    return None


# --- symbolic arithmetic on single numbers ---


def _infix(
    sign: str,
    fold: Callable[[Any, Any], Any],
    *,
    left: object = None,
    right: object = None,
) -> Callable[[Expression, Expression], Expression]:
    """`a sign b`; left, right: the number that changes nothing as that operand."""

    def apply(a: Expression, b: Expression) -> Expression:
        if isinstance(a, Literal) and isinstance(b, Literal):
            return _number(fold(a.value, b.value))
        if isinstance(b, Literal) and b.value == right:
            return a
        if isinstance(a, Literal) and a.value == left:
            return b
        return BinOp(sign, a, b)

    return apply


_sum = _infix("+", operator.add, left=0, right=0)
_mul = _infix("*", operator.mul, left=1, right=1)


def _add(a: Expression, b: Expression) -> Expression:
    if isinstance(b, Literal) and b.value < 0 and not isinstance(a, Literal):
        return BinOp("-", a, Literal(-b.value))
    return _sum(a, b)


def not_negative(x: Expression) -> bool:
    match x:
        case Literal(value=value):
            return value >= 0
        case Subscript(target=Attribute(name="shape")):
            return True
        case Value():
            return x.nonnegative
        case BinOp(operator="+" | "*" | "//" | "%", left=left, right=right):
            return not_negative(left) and not_negative(right)
    return False


def _integer_div(a: Expression, b: Expression) -> Expression:
    """ONNX rounds towards zero; `//` says the same where nothing is negative."""
    if isinstance(a, Literal) and isinstance(b, Literal):
        return Literal(int(a.value / b.value))
    if isinstance(b, Literal) and b.value == 1:
        return a
    if not_negative(a) and not_negative(b):
        return BinOp("//", a, b)
    return Call("int", (BinOp("/", a, b),))


def _less(a: Expression, b: Expression) -> Expression:
    if isinstance(b, Literal) and b.value <= 0 and not_negative(a):
        return Literal(False)
    return _infix("<", operator.lt)(a, b)


def _and(a: Expression, b: Expression) -> Expression:
    for known, other in ((a, b), (b, a)):
        if isinstance(known, Literal):
            return other if known.value else known
    return BinOp("and", a, b)


def _xor(a: Expression, b: Expression) -> Expression:
    for known, other in ((a, b), (b, a)):
        if isinstance(known, Literal):
            return _invert(other) if known.value else other
    raise _Symbolic  # `!=` of two comparisons would be one chain of them


def _builtin(name: str, fold: Callable[..., Any]) -> Any:
    def apply(*args: Expression) -> Expression:
        if all(isinstance(a, Literal) for a in args):
            return Literal(fold(*(a.value for a in args if isinstance(a, Literal))))
        return Call(name, args)

    return apply


def _choose(condition: Expression, a: Expression, b: Expression) -> Expression:
    if isinstance(condition, Literal):
        return a if condition.value else b
    same = isinstance(a, Literal) and repr(a) == repr(b)
    return a if same or a is b else Conditional(a, condition, b)


def _product(items: np.ndarray) -> Expression:
    result: Expression = Literal(1)
    for item in items.ravel():
        result = _mul(result, item)
    return result


# --- operators on arrays of numbers ---


def _each(function: Callable[..., Expression], dtype: str | None = None) -> Any:
    def apply(attributes: dict[str, Any], *inputs: Host) -> Host:
        return Host(_spread(function, *inputs), dtype or inputs[-1].dtype)

    return apply


def _pairwise(name: str, fold: Callable[..., Any]) -> Any:
    """`max` or `min` of all inputs, two at a time."""
    function = _builtin(name, fold)

    def apply(attributes: dict[str, Any], *inputs: Host) -> Host:
        return functools.reduce(
            lambda one, other: Host(_spread(function, one, other), one.dtype), inputs
        )

    return apply


def _div(attributes: dict[str, Any], a: Host, b: Host) -> Host:
    whole = "int" in str(a.dtype)
    function = _integer_div if whole else _infix("/", operator.truediv)
    return Host(_spread(function, a, b), a.dtype)


def _mod(attributes: dict[str, Any], a: Host, b: Host) -> Host:
    """Python's remainder has the divisor's sign, as Mod's has unless `fmod` is set."""
    if attributes.get("fmod", 0):
        raise _Symbolic
    return Host(_spread(_infix("%", operator.mod), a, b), a.dtype)


def _integers(value: Host | None) -> list[int] | None:
    if value is None:
        return None
    items = value.array.ravel()
    if not all(isinstance(item, Literal) for item in items):
        raise _Symbolic
    return [item.value for item in items]


class _Symbolic(Exception):
    """Positions not known while generating, or too many: left to the device."""


def _spread(function: Callable[..., Expression], *inputs: Host) -> np.ndarray:
    """The function of each element, broadcast."""
    if math.prod(np.broadcast_shapes(*(x.array.shape for x in inputs))) > _LONGEST:
        raise _Symbolic
    apply = np.frompyfunc(function, len(inputs), 1)
    return np.asarray(apply(*(x.array for x in inputs)), object)


def _number(value: Any) -> Literal:
    if isinstance(value, int) and value not in _INT64:
        raise _Symbolic
    return Literal(value)


def _gather(attributes: dict[str, Any], data: Host, at: Host) -> Host:
    where = np.asarray(_integers(at), int).reshape(at.array.shape)
    if where.size * data.array.size > _LONGEST**2:
        raise _Symbolic
    picked = np.take(data.array, where, attributes.get("axis", 0))
    return Host(np.asarray(picked, object), data.dtype)  # a bare object for rank 0


def _slice(
    attributes: dict[str, Any],
    data: Host,
    starts: Host | None = None,
    ends: Host | None = None,
    axes: Host | None = None,
    steps: Host | None = None,
) -> Host:
    begin = _integers(starts) or attributes["starts"]
    stop = _integers(ends) or attributes["ends"]
    along = _integers(axes) or attributes.get("axes") or range(len(begin))
    stride = _integers(steps) or [1] * len(begin)
    key = [slice(None)] * data.array.ndim
    for a, b, e, s in zip(along, begin, stop, stride, strict=True):
        size = data.array.shape[a]
        if s > 0:
            key[a] = slice(b, e, s)
        else:
            key[a] = slice(b, None if e < -size else e, s)
    return Host(data.array[tuple(key)], data.dtype)


def _concat(attributes: dict[str, Any], *inputs: Host) -> Host:
    joined = np.concatenate([x.array for x in inputs], attributes["axis"])
    return Host(joined, inputs[0].dtype)


def _unsqueeze(
    attributes: dict[str, Any], data: Host, axes: Host | None = None
) -> Host:
    along = attributes.get("axes") or _integers(axes) or []
    return Host(np.expand_dims(data.array, tuple(along)), data.dtype)


def _squeeze(attributes: dict[str, Any], data: Host, axes: Host | None = None) -> Host:
    along = attributes.get("axes") or _integers(axes)
    return Host(data.array.squeeze(tuple(along) if along else None), data.dtype)


def _reshape(attributes: dict[str, Any], data: Host, to: Host) -> Host:
    sizes = _integers(to) or []
    if not attributes.get("allowzero", 0):
        sizes = [n or data.array.shape[i] for i, n in enumerate(sizes)]
    return Host(data.array.reshape(sizes), data.dtype)


def _transpose(attributes: dict[str, Any], data: Host) -> Host:
    return Host(data.array.transpose(attributes.get("perm")), data.dtype)


def _reduced(fold: Callable[[np.ndarray], Expression]) -> Any:
    """One size for a list of them: their product, or `min(300, n)`."""

    def apply(attributes: dict[str, Any], data: Host, axes: Host | None = None) -> Host:
        of_all = axes is None or not axes.array.size
        kept = of_all and attributes.get("noop_with_empty_axes", 0)
        if data.array.ndim != 1 or kept:
            raise _Symbolic
        found = np.empty((1,) if attributes.get("keepdims", 1) else (), object)
        found[...] = fold(data.array)
        return Host(found, data.dtype)

    return apply


def _extreme(name: str, fold: Callable[..., Any]) -> Callable[..., Expression]:
    pick = _builtin(name, fold)

    def apply(items: np.ndarray) -> Expression:
        if not items.size:
            raise _Symbolic
        return pick(*items) if items.size > 1 else items[0]

    return apply


_KINDS = {1: "float32", 6: "int32", 7: "int64", 9: "bool", 11: "float64"}


def _cast(attributes: dict[str, Any], data: Host) -> Host | None:
    dtype = _KINDS.get(attributes["to"])
    if dtype is None:
        return None
    name = dtype.rstrip("0123456789")
    if name == str(data.dtype).rstrip("0123456789"):
        return Host(data.array, dtype)
    fold = {"int": int, "float": float, "bool": bool}[name]
    return Host(_spread(_builtin(name, fold), data), dtype)


def _negate(x: Expression) -> Expression:
    return Literal(-x.value) if isinstance(x, Literal) else UnaryOp("-", x)


def _invert(x: Expression) -> Expression:
    return Literal(not x.value) if isinstance(x, Literal) else UnaryOp("not ", x)


_TABLE: dict[str, Callable[..., Host | None]] = {
    "Identity": lambda attributes, data: data,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Transpose": _transpose,
    "ReduceProd": _reduced(_product),
    "ReduceMin": _reduced(_extreme("min", min)),
    "ReduceMax": _reduced(_extreme("max", max)),
    "Cast": _cast,
    "Add": _each(_add),
    "Sub": _each(_infix("-", operator.sub, right=0)),
    "Mul": _each(_mul),
    "Div": _div,
    "Mod": _mod,
    "Neg": _each(_negate),
    "Not": _each(_invert),
    "Where": _each(_choose),
    "Max": _pairwise("max", max),
    "Min": _pairwise("min", min),
    "Abs": _each(_builtin("abs", abs)),
    "Equal": _each(_infix("==", operator.eq), "bool"),
    "Less": _each(_less, "bool"),
    "LessOrEqual": _each(_infix("<=", operator.le), "bool"),
    "Greater": _each(_infix(">", operator.gt), "bool"),
    "GreaterOrEqual": _each(_infix(">=", operator.ge), "bool"),
    "And": _each(_and, "bool"),
    "Or": _each(_infix("or", operator.or_), "bool"),
    "Xor": _each(_xor, "bool"),
}

OPERATORS = frozenset((*_TABLE, "Shape", "Size", "Split"))
"""Operators that may be arithmetic on sizes."""
