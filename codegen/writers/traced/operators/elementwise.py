"""Element by element: arithmetic, comparisons, functions of one number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.capture.ref import Ref
from burnish.codegen.writers.traced.emitter import Emitter
from burnish.codegen.writers.traced.sizes import Varying
from burnish.codegen.writers.traced.table import same_as, writers, writes

_ONE = {
    "sqrt": "Sqrt", "exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos",
    "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh",
    "cosh": "Cosh", "tanh": "Tanh", "asinh": "Asinh", "acosh": "Acosh",
    "atanh": "Atanh", "erf": "Erf", "neg": "Neg", "abs_": "Abs", "sign": "Sign",
    "floor": "Floor", "ceil": "Ceil", "round_": "Round", "logical_not": "Not",
    "is_nan": "IsNaN", "det": "Det", "rint": "Round",
    "reciprocal": "Reciprocal",
}  # fmt: skip
_ARITHMETIC = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow_": "Pow",
    "maximum": "Max", "minimum": "Min", "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor",
}  # fmt: skip
_COMPARE = {
    "equal": "Equal", "greater": "Greater", "greater_or_equal": "GreaterOrEqual",
    "less": "Less", "less_or_equal": "LessOrEqual",
}  # fmt: skip
_TRUTH = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}


@writes(**_ONE)
def one(emit: Emitter, x: Any, *, op: str) -> Any:
    if op in _ROUNDING and x.dtype.kind in "iu":
        return emit.value(x)
    return emit(op, emit.cast(x, emit.result.dtype) if op not in _MIXED else x)


_MIXED = ("IsNaN",)
_ROUNDING = ("Floor", "Ceil", "Round")


@writes(**_ARITHMETIC)
def arithmetic(emit: Emitter, a: Any, b: Any, *, op: str) -> Any:
    kind = np.dtype(emit.result.dtype)
    of_truth = op.removeprefix("Bitwise") if kind.kind == "b" else op
    return emit(of_truth, *same(emit, a, b, dtype=kind))


@writes(**_COMPARE)
def compare(emit: Emitter, a: Any, b: Any, *, op: str) -> Any:
    return emit(op, *same(emit, a, b))


@writes(**_TRUTH)
def truth(emit: Emitter, a: Any, b: Any, *, op: str) -> Any:
    return emit(op, emit.cast(a, np.bool_), emit.cast(b, np.bool_))


def same(emit: Emitter, *items: Any, dtype: Any = None) -> tuple[Any, ...]:
    """Values of one dtype: the one given, else what NumPy promotes these to."""
    if dtype is None:
        kinds = [getattr(item, "dtype", item) for item in items]
        dtype = np.result_type(*(_plain(kind) for kind in kinds))
    return tuple(
        emit.cast(emit.value(i), dtype, was=np.float32)
        if isinstance(i, Varying) and isinstance(i.captures[0], float)
        else emit.cast(i, dtype)
        for i in items
    )


def _plain(kind: Any) -> Any:
    return float(kind.captures[0]) if isinstance(kind, Varying) else kind


@writes("bitwise_not")
def bitwise_not(emit: Emitter, x: Any) -> Any:
    return emit("Not" if x.dtype.kind == "b" else "BitwiseNot", x)


@writes("not_equal")
def not_equal(emit: Emitter, a: Any, b: Any) -> Any:
    return emit("Not", emit("Equal", *same(emit, a, b)))


@writes("where")
def where(emit: Emitter, condition: Any, a: Any, b: Any) -> Any:
    kept = emit.cast(condition, np.bool_)
    return emit("Where", kept, *same(emit, a, b, dtype=emit.result.dtype))


@writes("masked_fill")
def masked_fill(emit: Emitter, x: Any, mask: Any, value: Any) -> Any:
    return where(emit, mask, value, x)


@writes("cast", "astype")
def cast(emit: Emitter, x: Any, *, dtype: Any) -> Any:
    if isinstance(x, Ref) and x.dtype == emit.result.dtype:
        return emit.value(x)
    return emit.cast(x, emit.result.dtype)


writers["is_inf"] = same_as("IsInf")


@writes("is_finite")
def is_finite(emit: Emitter, x: Any) -> Any:
    return emit("Not", emit("Or", emit("IsNaN", x), emit("IsInf", x)))


@writes("is_close")
def is_close(emit: Emitter, a: Any, b: Any, *, rtol: float, atol: float) -> Any:
    a, b = same(emit, a, b)
    kind = emit.current.args[0].dtype
    away = emit("Abs", emit("Sub", a, b))
    room = emit("Mul", emit("Abs", b), np.asarray(rtol, kind))
    near = emit("LessOrEqual", away, emit("Add", room, np.asarray(atol, kind)))
    return emit("Or", emit("Equal", a, b), near)


@writes("expm1")
def expm1(emit: Emitter, x: Any) -> Any:
    return emit("Sub", emit("Exp", x), np.asarray(1, x.dtype))


@writes("log1p")
def log1p(emit: Emitter, x: Any) -> Any:
    return emit("Log", emit("Add", x, np.asarray(1, x.dtype)))


@writes("square")
def square(emit: Emitter, x: Any) -> Any:
    return emit("Mul", x, x)


@writes("trunc")
def trunc(emit: Emitter, x: Any) -> Any:
    if np.dtype(x.dtype).kind != "f":
        return emit("Identity", x)
    return emit("Mul", emit("Sign", x), emit("Floor", emit("Abs", x)))


@writes("int_div")
def int_div(emit: Emitter, a: Any, b: Any) -> Any:
    """Towards zero for whole numbers, as ONNX's Div has it."""
    return emit("Div", *same(emit, a, b, dtype=emit.result.dtype))


@writes("floor_div")
def floor_div(emit: Emitter, a: Any, b: Any) -> Any:
    kind = np.dtype(emit.result.dtype)
    a, b = same(emit, a, b, dtype=kind)
    if kind.kind == "f":
        return emit("Floor", emit("Div", a, b))
    if kind.kind == "u":
        return emit("Div", a, b)
    return emit("Div", emit("Sub", a, emit("Mod", a, b)), b)


@writes("mod")
def mod(emit: Emitter, a: Any, b: Any, *, fmod: bool) -> Any:
    kind = np.dtype(emit.result.dtype)
    a, b = same(emit, a, b, dtype=kind)
    if fmod or kind.kind != "f":
        return emit("Mod", a, b, fmod=int(fmod))
    return emit("Sub", a, emit("Mul", emit("Floor", emit("Div", a, b)), b))


@writes("atan2")
def atan2(emit: Emitter, a: Any, b: Any) -> Any:
    y, x = same(emit, a, b, dtype=emit.result.dtype)
    kind = emit.result.dtype
    zero, pi = np.asarray(0, kind), np.asarray(math.pi, kind)
    half = np.asarray(math.pi / 2, kind)
    at_zero = emit("Mul", emit("Sign", y), half)
    safe = emit("Where", emit("Equal", x, zero), np.asarray(1, kind), x)
    angle = emit("Atan", emit("Div", y, safe))
    opposite = emit("Where", emit("Less", y, zero), emit("Neg", emit.value(pi)), pi)
    angle = emit("Where", emit("Less", x, zero), emit("Add", angle, opposite), angle)
    return emit("Where", emit("Equal", x, zero), at_zero, angle)


@writes("hypot")
def hypot(emit: Emitter, a: Any, b: Any) -> Any:
    a, b = same(emit, a, b, dtype=emit.result.dtype)
    return emit("Sqrt", emit("Add", emit("Mul", a, a), emit("Mul", b, b)))


@writes("ndtr")
def ndtr(emit: Emitter, x: Any) -> Any:
    kind = x.dtype
    tail = emit("Erf", emit("Mul", x, np.asarray(math.sqrt(0.5), kind)))
    return emit("Mul", emit("Add", tail, np.asarray(1, kind)), np.asarray(0.5, kind))


@writes("clip")
def clip(emit: Emitter, x: Any, low: Any = None, high: Any = None) -> Any:
    kind = emit.result.dtype
    x = emit.cast(x, kind)
    bounds = [
        None if b is None else emit.cast(_held(b, kind), kind) for b in (low, high)
    ]
    ranks = [
        np.ndim(b) if not isinstance(b, Ref) else len(b.shape) for b in (low, high)
    ]
    if any(ranks):
        made = emit.value(x)
        for op, bound in zip(("Max", "Min"), bounds, strict=True):
            made = made if bound is None else emit(op, made, bound)
        return made
    return emit("Clip", x, *bounds)


def _held(bound: Any, kind: np.dtype[Any]) -> Any:
    """A number as near as integers of this dtype come to it."""
    if kind.kind not in "iu" or not isinstance(bound, int | float):
        return bound
    ends = np.iinfo(kind)
    return int(min(max(bound, ends.min), ends.max))


@writes(shift_left="LEFT", shift_right="RIGHT")
def shift(emit: Emitter, a: Any, b: Any, *, op: str) -> Any:
    """op: the direction of a BitShift."""
    kind = np.dtype(emit.result.dtype)
    a, b = same(emit, a, b, dtype=kind)
    if kind.kind == "u":
        return emit("BitShift", a, b, direction=op)
    wide = np.dtype(np.int64)
    x, count = (emit.cast(part, wide) for part in (a, b))
    by = emit("Pow", np.asarray(2, wide), count)
    if op == "LEFT":
        made = emit("Mul", x, by)
    else:
        made = emit("Div", emit("Sub", x, emit("Mod", x, by)), by)
    return emit.cast(made, kind)


_STEPS = ("values", "detach", "inner", "clone", "require_grad", "to")


@writes(sum_of="Sum", max_of="Max", min_of="Min", mean_of="Mean")
def several_of(emit: Emitter, *arrays: Any, op: str) -> Any:
    return emit(op, *same(emit, *arrays, dtype=emit.result.dtype))


@writes("moved_array", *(f"step {name}" for name in _STEPS))
def itself(emit: Emitter, x: Any, *_: Any, **_options: Any) -> Any:
    """Identity, or a cast to the requested dtype."""
    if x.dtype != emit.result.dtype:
        return emit.cast(x, emit.result.dtype)
    return emit.value(x)
