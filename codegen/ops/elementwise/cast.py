"""Casts between element types."""

from __future__ import annotations

import math
from typing import Any

from burnish.codegen.ops.rule.expressions import call, operand, tensor
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.traits import ELEMENTWISE
from burnish.codegen.ops.rule.words import cast as cast_to
from burnish.codegen.ops.rule.words import dtype_name
from burnish.codegen.program import Expression

_ENDS = {
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
}


def _cast(
    x: Expression, dtype: str | None, *, round_mode: str = "up", saturate: int = 1
) -> Result:
    """Casts to 8-bit floats saturate, if the attribute says so."""
    if dtype == "float8_e8m0fnu":
        options = {"rounding": round_mode, "saturate": saturate}
        return call("power_of_two", tensor(x), **options)
    end = _ENDS.get(dtype or "")
    if saturate and end and _reach(x.dtype) > end:
        x = call("clip", x, -end, end)
    return cast_to(operand(x), dtype)


def _reach(dtype: str | None) -> float:
    """The greatest magnitude of a boolean or an integer, infinity for others."""
    if dtype == "bool":
        return 1.0
    if dtype is None or "int" not in dtype:
        return math.inf
    return 2.0 ** (int(dtype.lstrip("uint")) - dtype.startswith("int"))


@onnx_op("Cast", since=6, traits=ELEMENTWISE, options=_cast)
def cast(input_: Expression, *, to: int, **options: Any) -> Result:
    return _cast(input_, dtype_name(to), **options)


@onnx_op("CastLike", traits=ELEMENTWISE, options=_cast)
def cast_like(input_: Expression, target_type: Expression, **options: Any) -> Result:
    dtype = target_type.dtype
    return _cast(input_, "str" if dtype == "object" else dtype, **options)


@onnx_op("BitCast", traits=ELEMENTWISE)
def bit_cast(input_: Expression, *, to: int) -> Result:
    return call("bit_cast", tensor(input_), dtype=dtype_name(to))
