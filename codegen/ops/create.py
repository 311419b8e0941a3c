"""Tensors made from sizes, numbers and chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.ops._rules import (
    NodeContext,
    Result,
    call,
    number,
    onnx_op,
    operand,
    plain,
)
from burnish.codegen.ops._words import dtype_name, made
from burnish.codegen.ops.shape import shape_option
from burnish.codegen.program import Attribute, Constant, Expression


@onnx_op("Constant")
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


@onnx_op("ConstantOfShape")
def constant_of_shape(input_: Expression, *, value: Constant | None = None) -> Result:
    shape = shape_option(input_)
    filled = np.zeros(1, np.float32) if value is None else value.array
    dtype, number_ = filled.dtype.name, plain(filled.reshape(()))
    if shape == ():
        return Constant(filled.reshape(()))
    if number_ == 0:
        return made("zeros", shape, dtype=dtype)
    return made("full", shape, number_, dtype=dtype)


@onnx_op("Range")
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


@onnx_op("EyeLike")
def eye_like(input_: Expression, *, dtype: int | None = None, k: int = 0) -> Result:
    chosen = None if dtype is None else dtype_name(dtype)
    return call("eye_like", input_, dtype=chosen, k=k)


@onnx_op("Trilu")
def trilu(input_: Expression, k: Expression | None = None, *, upper: int = 1) -> Result:
    diagonal = 0 if k is None else number(k)
    return call("triu" if upper else "tril", input_, k=diagonal)


@onnx_op("OneHot", since=9)
def one_hot(
    indices: Expression, depth: Expression, values: Expression, *, axis: int = -1
) -> Result:
    return call("one_hot", indices, number(depth), values, axis=axis)


@onnx_op("RandomNormal")
def random_normal(
    *,
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
    shape: list[int],
) -> Result:
    drawn = {"mean": mean, "std": scale, "seed": seed}
    return _drawn("normal", tuple(shape), dtype_name(dtype), drawn)


@onnx_op("RandomNormalLike")
def random_normal_like(
    input_: Expression,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Result:
    drawn = {"mean": mean, "std": scale, "seed": seed}
    return _drawn_like("normal", input_, dtype, drawn)


@onnx_op("RandomUniform")
def random_uniform(
    *,
    dtype: int = 1,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
    shape: list[int],
) -> Result:
    drawn = {"low": low, "high": high, "seed": seed}
    return _drawn("uniform", tuple(shape), dtype_name(dtype), drawn)


@onnx_op("RandomUniformLike")
def random_uniform_like(
    input_: Expression,
    *,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Result:
    drawn = {"low": low, "high": high, "seed": seed}
    return _drawn_like("uniform", input_, dtype, drawn)


_UNSAID = {"mean": 0.0, "std": 1.0, "low": 0.0, "high": 1.0, "seed": None}


def _drawn(kind: str, shape: Any, dtype: str | None, options: dict[str, Any]) -> Result:
    said = {name: v for name, v in options.items() if v != _UNSAID[name]}
    if "seed" in said:
        said["seed"] = int(np.float32(said["seed"]).view(np.uint32))
    return made(kind, shape, dtype=dtype, **said)


def _drawn_like(
    kind: str, x: Expression, dtype: int | None, options: dict[str, Any]
) -> Result:
    chosen = x.dtype if dtype is None else dtype_name(dtype)
    return _drawn(kind, Attribute(operand(x), "shape"), chosen, options)


@onnx_op("Bernoulli")
def bernoulli(
    input_: Expression, *, dtype: int | None = None, seed: float | None = None
) -> Result:
    chosen = None if dtype is None else dtype_name(dtype)
    return call("bernoulli", input_, dtype=chosen, seed=seed)


@onnx_op("Multinomial")
def multinomial(
    input_: Expression,
    *,
    dtype: int = 6,
    sample_size: int = 1,
    seed: float | None = None,
) -> Result:
    return call(
        "multinomial",
        input_,
        sample_size=sample_size,
        dtype=dtype_name(dtype),
        seed=seed,
    )
