"""Tensor creation: ranges, constants, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.ops.arrays.shape import shape_option
from burnish.codegen.ops.rule.expressions import (
    call,
    known,
    method,
    number,
    operand,
    plain,
    tensor,
)
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE, RANDOM, SAME_SHAPE
from burnish.codegen.ops.rule.words import cast, dtype_name, filled, made, size
from burnish.codegen.ops.shapes import indexing
from burnish.codegen.program import (
    Attribute,
    BinOp,
    Constant,
    Expression,
    Literal,
    UnaryOp,
)


@onnx_op("Constant", traits=OWN_SHAPE)
def constant(
    *,
    value: Constant | None = None,
    value_int: int | None = None,
    value_ints: list[int] | None = None,
    value_float: float | None = None,
    value_floats: list[float] | None = None,
    value_string: str | None = None,
    value_strings: list[str] | None = None,
    sparse_value: Any = None,
) -> Result:
    if value is not None:
        return value
    for given, dtype in (
        (value_int, "int64"),
        (value_ints, "int64"),
        (value_float, "float32"),
        (value_floats, "float32"),
        (value_string, "object"),
        (value_strings, "object"),
    ):
        if given is not None:
            return Constant(np.asarray(given, dtype))
    return Constant(np.asarray(sparse_value))


@onnx_op("ConstantOfShape", traits=OWN_SHAPE, shapes=indexing.filled)
def constant_of_shape(input_: Expression, *, value: Constant | None = None) -> Result:
    shape = shape_option(input_)
    one = np.zeros(1, np.float32) if value is None else value.array
    return Constant(one.reshape(())) if shape == () else filled(shape, one)


@onnx_op("Range", traits=OWN_SHAPE, shapes=indexing.range_)
def range_(
    start: Expression,
    limit: Expression,
    delta: Expression,
    *,
    stash_type: int = 1,
    node: NodeContext,
) -> Result:
    dtype = node.dtypes[0]
    bounds = [number(start), number(limit), number(delta)]
    if bounds[2] == 1:
        bounds = bounds[1:2] if bounds[0] == 0 else bounds[:2]
    return made("arange", *bounds, dtype=dtype)


@onnx_op("EyeLike", traits=SAME_SHAPE)
def eye_like(input_: Expression, *, dtype: int | None = None, k: int = 0) -> Result:
    chosen = None if dtype is None else dtype_name(dtype)
    return call("eye_like", input_, dtype=chosen, k=k)


@onnx_op("Trilu", traits=SAME_SHAPE)
def trilu(input_: Expression, k: Expression | None = None, *, upper: int = 1) -> Result:
    diagonal = 0 if k is None else number(k)
    return call("triu" if upper else "tril", input_, k=diagonal)


@onnx_op("OneHot", since=9, traits=OWN_SHAPE)
def one_hot(
    indices: Expression, depth: Expression, values: Expression, *, axis: int = -1
) -> Result:
    ends = known(values)
    if ends is None or ends.dtype.kind not in "biuf":
        return call("one_hot_of", indices, number(depth), values, axis=axis)
    off, on = plain(ends)
    given = {"axis": axis, "on": on, "off": off, "dtype": str(ends.dtype)}
    return call("one_hot", indices, number(depth), **given)


# Draws come from `burnish.seed`'s source alone. A node's `seed` would make every call
# draw the same, and two runtimes never agree on what a seed draws, so it is not taken
# over: `burnish.seed(n)` before the calls makes a whole program repeatable.


def _normal(
    shape: Any,
    dtype: str | None,
    *,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Result:
    return _drawn("randn", shape, dtype, scale, mean)


def _uniform(
    shape: Any,
    dtype: str | None,
    *,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Result:
    return _drawn("rand", shape, dtype, high - low, low)


def _drawn(
    kind: str, shape: Any, dtype: str | None, scale: float, offset: float
) -> Result:
    drawn: Expression = made(kind, shape, dtype=dtype)
    if scale != 1:
        drawn = BinOp("*", drawn, Literal(scale))
    return drawn if offset == 0 else BinOp("+", drawn, Literal(offset))


def _like(x: Expression, dtype: int | None) -> tuple[Expression, str | None]:
    chosen = x.dtype if dtype is None else dtype_name(dtype)
    return Attribute(tensor(x), "shape"), chosen


@onnx_op("RandomNormal", traits=OWN_SHAPE | RANDOM, options=_normal)
def random_normal(*, dtype: int = 1, shape: list[int], **options: Any) -> Result:
    return _normal(tuple(shape), dtype_name(dtype), **options)


@onnx_op("RandomNormalLike", traits=SAME_SHAPE | RANDOM, options=_normal)
def random_normal_like(
    input_: Expression, *, dtype: int | None = None, **options: Any
) -> Result:
    return _normal(*_like(input_, dtype), **options)


@onnx_op("RandomUniform", traits=OWN_SHAPE | RANDOM, options=_uniform)
def random_uniform(*, dtype: int = 1, shape: list[int], **options: Any) -> Result:
    return _uniform(tuple(shape), dtype_name(dtype), **options)


@onnx_op("RandomUniformLike", traits=SAME_SHAPE | RANDOM, options=_uniform)
def random_uniform_like(
    input_: Expression, *, dtype: int | None = None, **options: Any
) -> Result:
    return _uniform(*_like(input_, dtype), **options)


@onnx_op("Bernoulli", traits=SAME_SHAPE | RANDOM)
def bernoulli(
    input_: Expression, *, dtype: int | None = None, seed: float | None = None
) -> Result:
    """Draws are in float32 at least: those of narrow types would often equal x."""
    shape, chosen = _like(input_, dtype)
    wide = input_.dtype if input_.dtype == "float64" else None
    drawn = made("rand", shape, dtype=wide)
    return cast(BinOp("<", drawn, operand(input_)), chosen)


@onnx_op("Multinomial", traits=OWN_SHAPE | RANDOM)
def multinomial(
    input_: Expression,
    *,
    dtype: int = 6,
    sample_size: int = 1,
    seed: float | None = None,
) -> Result:
    """Sampling by the Gumbel-max trick."""
    shape = (size(input_, 0), Literal(sample_size), size(input_, 1))
    noise = call("log", UnaryOp("-", call("log", made("rand", *shape))))
    noisy = BinOp("-", method(input_, "unsqueeze", 1), noise)
    return cast(call("arg_max", noisy, axis=-1), dtype_name(dtype))
