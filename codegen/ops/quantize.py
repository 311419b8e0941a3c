"""Element types: casts, and numbers that stand for others by scale and zero point."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops._rules import Result, call, onnx_op
from burnish.codegen.ops._words import cast as cast_to
from burnish.codegen.ops._words import dtype_name
from burnish.codegen.program import Expression


@onnx_op("Cast", since=6)
def cast(input_: Expression, *, to: int) -> Result:
    return _cast(input_, dtype_name(to), True, "up")


@onnx_op("Cast", since=19)
def cast_saturated(input_: Expression, *, saturate: int = 1, to: int) -> Result:
    return _cast(input_, dtype_name(to), bool(saturate), "up")


@onnx_op("Cast", since=24)
def cast_rounded(
    input_: Expression, *, round_mode: str = "up", saturate: int = 1, to: int
) -> Result:
    return _cast(input_, dtype_name(to), bool(saturate), round_mode)


@onnx_op("CastLike")
def cast_like(input_: Expression, target_type: Expression) -> Result:
    return _cast(input_, target_type.dtype, True, "up")


@onnx_op("CastLike", since=19)
def cast_like_saturated(
    input_: Expression, target_type: Expression, *, saturate: int = 1
) -> Result:
    return _cast(input_, target_type.dtype, bool(saturate), "up")


@onnx_op("CastLike", since=24)
def cast_like_rounded(
    input_: Expression,
    target_type: Expression,
    *,
    round_mode: str = "up",
    saturate: int = 1,
) -> Result:
    return _cast(input_, target_type.dtype, bool(saturate), round_mode)


_SIMPLE = (
    "bool",
    "int",
    "uint",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "complex",
)
_NARROW = ("int2", "uint2", "int4", "uint4")


def _cast(x: Expression, dtype: str | None, saturate: bool, round_mode: str) -> Result:
    """Wide types as arrays convert them; narrow ones round and saturate."""
    assert dtype is not None
    wide = dtype.startswith(_SIMPLE) and dtype not in _NARROW
    if wide and x.dtype is not None and x.dtype.startswith(_SIMPLE):
        return cast_to(x, dtype)
    options: dict[str, Any] = {"saturate": saturate, "round_mode": round_mode}
    return call("cast_element", x, dtype=dtype, **options)
