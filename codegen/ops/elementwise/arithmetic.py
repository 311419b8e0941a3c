"""Element-wise arithmetic."""

from __future__ import annotations

from functools import partial
from typing import Any

from burnish.codegen.ops.rule.expressions import (
    bare,
    call,
    infix,
    known,
    number,
    operands,
    plain,
    tensor,
)
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.simple import called, infixed
from burnish.codegen.ops.rule.traits import (
    ACTIVATION,
    BROADCAST,
    COMMUTATIVE,
    ELEMENTWISE,
    OWN_SHAPE,
    REPARAMETRIZATION,
    SAME_SHAPE,
    Twin,
)
from burnish.codegen.ops.rule.words import (
    cast,
    chain,
    integers_kept,
    is_float,
    is_integer,
    plus,
)
from burnish.codegen.program import BinOp, Call, Expression, Literal, UnaryOp

infixed("Add", "+", since=7, traits=BROADCAST | COMMUTATIVE, neutral=-0.0)
infixed("Sub", "-", since=7, traits=BROADCAST, neutral=0)
infixed("Mul", "*", since=7, traits=BROADCAST | COMMUTATIVE, neutral=1)
infixed("FloorDiv", "//", domain="burnish", traits=BROADCAST)  # rounds down

called("Floor", "floor", "X", since=6, traits=ELEMENTWISE)
called("Ceil", "ceil", "X", since=6, traits=ELEMENTWISE)
called("Sqrt", "sqrt", "X", since=6, traits=ELEMENTWISE)
called("Exp", "exp", "input", since=6, traits=ELEMENTWISE | REPARAMETRIZATION)
called("Log", "log", "input", since=6, traits=ELEMENTWISE)
called("Sign", "sign", "input", traits=ELEMENTWISE)
called("Sin", "sin", "input", traits=ELEMENTWISE, role="sin")
called("Cos", "cos", "input", traits=ELEMENTWISE, role="cos")
called("Tan", "tan", "input", traits=ELEMENTWISE)
called("Asin", "asin", "input", traits=ELEMENTWISE)
called("Acos", "acos", "input", traits=ELEMENTWISE)
called("Atan", "atan", "input", traits=ELEMENTWISE)
called("Sinh", "sinh", "input", traits=ELEMENTWISE)
called("Cosh", "cosh", "input", traits=ELEMENTWISE)
called("Asinh", "asinh", "input", traits=ELEMENTWISE)
called("Acosh", "acosh", "input", traits=ELEMENTWISE)
called("Atanh", "atanh", "input", traits=ELEMENTWISE)
called("Det", "det", "X", traits=OWN_SHAPE)


@onnx_op("Div", since=7, traits=BROADCAST, neutral=1)
def div(A: Expression, B: Expression, *, node: NodeContext) -> Result:
    """Integers are rounded towards zero."""
    if is_integer(node.dtypes[0]):
        return call("int_div", A, B)
    return infix("/", A, B)


@onnx_op("Mod", since=10, traits=BROADCAST)
def mod(A: Expression, B: Expression, *, fmod: int = 0) -> Result:
    return call("mod", A, B, fmod=True) if fmod else infix("%", A, B)


@onnx_op("Pow", since=7, traits=BROADCAST, neutral=1)
def pow_(X: Expression, Y: Expression, *, node: NodeContext) -> Result:
    """The result has X's dtype, whatever the exponent's is."""
    exponent = known(Y)
    if exponent is not None and exponent.shape == ():
        value = plain(exponent)
        if float(value).is_integer():
            value = int(value)
        power = BinOp("**", tensor(X), Literal(value))
        whole = isinstance(value, int) and (value >= 0 or is_float(X.dtype))
        return power if whole or is_float(X.dtype) else cast(power, X.dtype)
    if X.dtype == Y.dtype:
        return infix("**", X, Y)
    return cast(BinOp("**", tensor(X), operands(Y, X)[0]), X.dtype)


@onnx_op("Neg", since=6, traits=ELEMENTWISE)
def neg(X: Expression) -> Result:
    return UnaryOp("-", tensor(X))


@onnx_op("Abs", since=6, traits=ELEMENTWISE)
def abs_(X: Expression) -> Result:
    return Call("abs", (tensor(X),))


@onnx_op("Reciprocal", since=6, traits=ELEMENTWISE)
def reciprocal(X: Expression) -> Result:
    return BinOp("/", Literal(1), tensor(X))


@onnx_op("Erf", traits=ELEMENTWISE)
def erf(input_: Expression) -> Result:
    return integers_kept(call("erf", input_), input_.dtype)


@onnx_op("Round", traits=ELEMENTWISE)
def round_(X: Expression) -> Result:
    return Call("round", (tensor(X),))


@onnx_op("Sum", since=8, traits=BROADCAST | COMMUTATIVE)
def sum_(*data_0: Expression, node: NodeContext) -> Result:
    return chain(plus, operands(*data_0), node)


@onnx_op("Mean", since=8, traits=BROADCAST | COMMUTATIVE)
def mean(*data_0: Expression, node: NodeContext) -> Result:
    if len(data_0) == 1:
        return data_0[0]
    return BinOp("/", chain(plus, operands(*data_0), node), Literal(len(data_0)))


@onnx_op("Max", since=8, traits=BROADCAST | COMMUTATIVE)
def max_(*data_0: Expression, node: NodeContext) -> Result:
    return _extreme("maximum", data_0, node)


@onnx_op("Min", since=8, traits=BROADCAST | COMMUTATIVE)
def min_(*data_0: Expression, node: NodeContext) -> Result:
    return _extreme("minimum", data_0, node)


def _extreme(
    function: str, values: tuple[Expression, ...], node: NodeContext
) -> Result:
    given = bare(*values) if len(values) == 2 else values
    return chain(partial(call, function), given, node)


@onnx_op("Clip", since=6)
def clip_to_constants(
    input_: Expression,
    *,
    min_: float = -3.4028234663852886e38,
    max_: float = 3.4028234663852886e38,
) -> Result:
    return _clip(input_, Literal(min_), Literal(max_))


@onnx_op("Clip", since=11, traits=ELEMENTWISE | ACTIVATION, twin=Twin("relu6", "ReLU6"))
def clip(
    input_: Expression, min_: Expression | None = None, max_: Expression | None = None
) -> Result:
    return _clip(input_, min_, max_)


def _clip(x: Expression, low: Expression | None, high: Expression | None) -> Result:
    bounds: list[Any] = [_bound(low, -1), _bound(high, 1)]
    if bounds == [0, 6] and is_float(x.dtype):
        return call("relu6", x)
    if bounds == [None, None]:
        return x
    return call("clip", x, *bounds)


def _bound(value: Expression | None, side: int) -> Any:
    """A number where it is known, None where it bounds nothing on its side, -1 or 1."""
    if value is None or known(value) is None:
        return value
    limit = number(value)
    return None if side * limit >= 3.4028234e38 else limit


@onnx_op("CumSum", since=11, traits=SAME_SHAPE)
def cum_sum(
    x: Expression, axis: Expression, *, exclusive: int = 0, reverse: int = 0
) -> Result:
    return call("cum_sum", x, axis=number(axis), exclusive=exclusive, reverse=reverse)


@onnx_op("CumProd", since=26, traits=SAME_SHAPE)
def cum_prod(
    x: Expression, axis: Expression, *, exclusive: int = 0, reverse: int = 0
) -> Result:
    return call("cum_prod", x, axis=number(axis), exclusive=exclusive, reverse=reverse)
