"""Comparisons, logic and bits."""

from __future__ import annotations

from burnish.codegen.ops.rule.expressions import (
    bare,
    call,
    infix,
    method,
    operand,
    operands,
    tensor,
)
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.simple import called, infixed
from burnish.codegen.ops.rule.traits import BROADCAST, COMMUTATIVE, ELEMENTWISE
from burnish.codegen.ops.rule.words import is_scalar
from burnish.codegen.program import Call, Constant, Expression, UnaryOp


@onnx_op("Equal", since=7, traits=BROADCAST | COMMUTATIVE, role="mask")
def equal(A: Expression, B: Expression) -> Result:
    for value, other in ((A, B), (B, A)):
        if isinstance(other, Constant) and other.dtype == "bool" and not other.shape:
            return value if other.array else UnaryOp("~", tensor(value))
    return infix("==", A, B)


infixed("Greater", ">", since=7, traits=BROADCAST)
infixed("GreaterOrEqual", ">=", traits=BROADCAST)
infixed("Less", "<", since=7, traits=BROADCAST)
infixed("LessOrEqual", "<=", traits=BROADCAST)
infixed("And", "&", since=7, traits=BROADCAST | COMMUTATIVE, neutral=True)
infixed("Or", "|", since=7, traits=BROADCAST | COMMUTATIVE, neutral=False)
infixed("Xor", "^", since=7, traits=BROADCAST | COMMUTATIVE, neutral=False)
infixed("BitwiseAnd", "&", traits=BROADCAST | COMMUTATIVE)
infixed("BitwiseOr", "|", traits=BROADCAST | COMMUTATIVE)
infixed("BitwiseXor", "^", traits=BROADCAST | COMMUTATIVE)

called("IsNaN", "is_nan", "X", traits=ELEMENTWISE)
_SIGNS = {"detect_negative": 1, "detect_positive": 1}
called("IsInf", "is_inf", "X", _SIGNS, traits=ELEMENTWISE)


@onnx_op("Not", traits=ELEMENTWISE)
def not_(X: Expression) -> Result:
    return UnaryOp("~", tensor(X))


@onnx_op("BitwiseNot", traits=ELEMENTWISE)
def bitwise_not(X: Expression) -> Result:
    return UnaryOp("~", tensor(X))


@onnx_op("BitShift", traits=BROADCAST)
def bit_shift(X: Expression, Y: Expression, *, direction: str) -> Result:
    return infix("<<" if direction == "LEFT" else ">>", X, Y)


@onnx_op("Where", traits=BROADCAST, role="mask")
def where(condition: Expression, X: Expression, Y: Expression) -> Result:
    X, Y = (bare(value, condition)[0] for value in (X, Y))
    condition = tensor(condition, "bool")
    usual = _USUAL.get(X.dtype or "")
    if usual is None or X.dtype != Y.dtype or not (is_scalar(X) and is_scalar(Y)):
        return call("where", condition, *operands(X, Y))
    chosen = Call("ops.where", (condition, operand(X), operand(Y)))
    return chosen if X.dtype == usual else method(chosen, "to", X.dtype)


_USUAL = {
    **dict.fromkeys(("float16", "float32", "float64"), "float64"),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16"), "int64"),
    "bool": "bool",
}
"""The host type of a choice between two Python numbers, from its dtype in the file."""
