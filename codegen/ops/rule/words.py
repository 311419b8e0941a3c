"""Helpers of rules: constant tensors, dtypes, sizes, names of parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops.rule.expressions import (
    DEVICE,
    UnfitError,
    ints,
    known,
    operand,
    plain,
    tensor,
)
from burnish.codegen.ops.rule.registry import NodeContext
from burnish.codegen.program import (
    Assign,
    Attribute,
    BinOp,
    Call,
    Constant,
    Expression,
    Host,
    Literal,
    Method,
    Shape,
    Slice,
    Subscript,
    Value,
    Weight,
)
from burnish.codegen.symbolic.sizes import MOST_DIMS

_IN_A_ROW = 16
_MOST = 1024  # numbers that are unpacked, each with a name of its own

WHOLE = Slice()
"""`:`, the key that takes a whole axis."""


def dtype_name(code: int) -> str:
    """ONNX's number of an element type as the runtime spells it: 7 -> "int64"."""
    if code == ir.DataType.STRING:
        return "str"
    return np.dtype(ir.DataType(code).numpy()).name


def is_float(dtype: str | None) -> bool:
    return dtype is not None and "float" in dtype


def is_integer(dtype: str | None) -> bool:
    return dtype is not None and "int" in dtype


def cast(x: Expression, dtype: str | None) -> Expression:
    """`x.to(dtype)`; x itself where it is known to have it."""
    if dtype is None or x.dtype == dtype:
        return x
    if isinstance(x, Literal):
        return tensor(x, dtype)
    if isinstance(x, Constant):
        return Constant(x.array.astype(dtype))
    return Method(tensor(x), "to", (Literal(dtype),))


def integers_kept(y: Expression, dtype: str | None) -> Expression:
    """y in an integer dtype as its operand has it; y itself with any other dtype."""
    return cast(y, dtype) if is_integer(dtype) else y


def made(function: str, *args: Any, dtype: str | None = None, **options: Any) -> Call:
    """`Tensor.function(*args, dtype=..., device=self.device)`"""
    if dtype is not None:
        options["dtype"] = dtype
    written = tuple((name, operand(value)) for name, value in options.items())
    where = (*written, ("device", DEVICE))
    return Call(f"Tensor.{function}", tuple(map(operand, args)), where)


def filled(shape: Any, number: np.ndarray) -> Call:
    """A constant tensor: every element is `number`."""
    value, dtype = plain(number.reshape(())), number.dtype.name
    if value == 0:
        return made("zeros", shape, dtype=dtype)
    return made("full", shape, value, dtype=dtype)


def size(x: Expression, axis: int) -> Expression:
    """`x.shape[axis]`, or the number where it is known."""
    if x.shape is not None:
        dim = x.shape[axis]
        if isinstance(dim, int):
            return Literal(dim)
    return Subscript(Attribute(operand(x), "shape"), (Literal(axis),))


def at(x: Expression, axis: int, key: Expression) -> Expression:
    """`x[:, :, key]` with `key` at `axis`."""
    if axis < 0 and x.rank is not None:
        axis += x.rank
    if abs(axis) > MOST_DIMS:
        raise UnfitError(f"expected an axis of an array, got {axis}")
    if axis >= 0:
        return Subscript(operand(x), (*[WHOLE] * axis, key))
    return Subscript(operand(x), (Literal(...), key, *[WHOLE] * (-axis - 1)))


def numbers(
    node: NodeContext, value: Expression, hint: str, length: int | None = None
) -> list[Any] | None:
    """A rank-1 integer input as one Python number or expression an element.

    One of rank 0, as some tools write it, is a list of one. What only the running model
    knows is unpacked: `a, b = value.tolist()`. None when the length is neither given
    nor known, or too many to unpack.
    """
    listed = ints(value)
    if isinstance(listed, list):
        return listed
    if value.shape == ():
        length = 1
    elif value.shape and isinstance(value.shape[0], int):
        length = value.shape[0]
    if length is None or length > _MOST:
        return None
    if length == 1:
        on_host = isinstance(value, Value) and value.host
        return [value if on_host else Method(value, "item")]
    parts = tuple(Value(hint, value.dtype, (), host=True) for _ in range(length))
    if parts:
        node.emit(Assign(parts, (), listed))
    return list(parts)


def named(
    node: NodeContext,
    expression: Expression,
    hint: str,
    dtype: str | None = None,
    shape: Shape | None = None,
) -> Value:
    """Assign the expression to a variable, because it is used twice."""
    value = Value(hint, dtype or expression.dtype, shape or expression.shape)
    node.emit(Assign((value,), (), expression))
    return value


def unpacked(
    node: NodeContext, expression: Expression, *hints: str, dtype: str | None = None
) -> tuple[Value, ...]:
    """Names for the parts of a call that returns several values."""
    shapes = (*node.shapes, *(None for _ in hints))
    values = tuple(
        Value(hint, dtype, shape) for hint, shape in zip(hints, shapes, strict=False)
    )
    node.emit(Assign(values, (), expression))
    return values


def axes_option(axes: list[Any] | Expression | None) -> Any:
    """Axes as one number, a tuple, or an expression for a tuple; None for all."""
    if axes is None:
        return None
    if isinstance(axes, Expression):
        return Call("tuple", (axes,))
    return axes[0] if len(axes) == 1 else tuple(axes)


def is_scalar(value: Expression | None) -> bool:
    """A number: a known array of one element without axes, or a host number."""
    if isinstance(value, Weight):
        return False
    return value is not None and value.shape == () and not is_device(value)


def is_device(value: Expression) -> bool:
    """Whether the expression is a tensor when the model runs."""
    if isinstance(value, Value):
        return not value.host
    return not (isinstance(value, Literal | Host) or known(value) is not None)


def chain(
    join: Callable[[Expression, Expression], Expression],
    values: Sequence[Expression],
    node: NodeContext,
) -> Expression:
    """`a + b + c`, with a name for what every sixteen values make."""
    whole, *rest = values
    for number, value in enumerate(rest, 1):
        whole = join(whole, value)
        if number % _IN_A_ROW == 0 and number < len(rest):
            whole = named(node, whole, "x", whole.dtype, node.shapes[0])
    return whole


def plus(a: Expression, b: Expression) -> Expression:
    """`a + b`"""
    return BinOp("+", a, b)
