"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish.codegen.ops.rule.expressions import call, ints, method, operand
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE, REDUCTION, REDUCTION_TO_INDEX
from burnish.codegen.ops.rule.words import axes_option, is_integer
from burnish.codegen.program import BinOp, Call, Expression, Literal, Method

_METHODS = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceProd": "prod",
}


def _over(
    op_type: str, x: Expression, axes: Any, keepdims: int, noop: int = 0
) -> Result:
    """axes: numbers, an expression for a list, or None and [] for every axis."""
    if noop and (axes is None or axes == []):
        made = _OF_ONE[op_type](x) if op_type in _OF_ONE else x
        return _of_type(op_type, x, made) if op_type == "ReduceLogSum" else made
    chosen = axes_option(axes or None)
    if isinstance(axes, Expression) and not noop:
        every = Literal(None)
        chosen = BinOp("or", Call("tuple", (axes,)), every)
    return _call(op_type, x, chosen, keepdims)


def _call(op_type: str, x: Expression, axes: Any, keepdims: int) -> Expression:
    name = _METHODS.get(op_type)
    if name is None:
        options = {"axes": axes, "keepdims": bool(keepdims)}
        return _of_type(op_type, x, call(_OPERATORS[op_type], x, **options))
    given = {"keepdims": True} if keepdims else {}
    made = method(x, name, *([] if axes is None else [axes]), **given)
    return _of_type(op_type, x, made)


def _of_type(op_type: str, x: Expression, made: Expression) -> Expression:
    """The result in x's type: means and logarithms of integers are cut to integers."""
    if op_type in _FRACTIONS and is_integer(x.dtype):
        return Method(made, "to", (Literal(x.dtype),))
    return made


_OPERATORS = {
    "ReduceL1": "reduce_l1",
    "ReduceL2": "reduce_l2",
    "ReduceSumSquare": "reduce_sum_square",
    "ReduceLogSum": "reduce_log_sum",
    "ReduceLogSumExp": "reduce_log_sum_exp",
}

_FRACTIONS = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")
"""Reductions whose results for integers are none."""

_OF_ONE: dict[str, Callable[[Expression], Expression]] = {
    "ReduceL1": lambda x: Call("abs", (operand(x),)),
    "ReduceL2": lambda x: Call("abs", (operand(x),)),
    "ReduceSumSquare": lambda x: BinOp("*", operand(x), operand(x)),
    "ReduceLogSum": lambda x: call("log", x),
}
"""The elementwise part of each reduction: its result over no axis."""


def _list(axes: Expression | None) -> Any:
    if axes is None:
        return None
    return [] if axes.shape == (0,) else ints(axes)


@onnx_op("ReduceSum")
def reduce_sum_over(
    data: Expression, *, axes: list[int] | None = None, keepdims: int = 1
) -> Result:
    return _over("ReduceSum", data, axes, keepdims)


@onnx_op("ReduceSum", since=13, traits=REDUCTION)
def reduce_sum(
    data: Expression,
    axes: Expression | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Result:
    return _over("ReduceSum", data, _list(axes), keepdims, noop_with_empty_axes)


@onnx_op("ReduceMean")
def reduce_mean_over(
    data: Expression, *, axes: list[int] | None = None, keepdims: int = 1
) -> Result:
    return _over("ReduceMean", data, axes, keepdims)


@onnx_op("ReduceMean", since=18, traits=REDUCTION)
def reduce_mean(
    data: Expression,
    axes: Expression | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Result:
    return _over("ReduceMean", data, _list(axes), keepdims, noop_with_empty_axes)


@onnx_op("ReduceMax")
def reduce_max_over(
    data: Expression, *, axes: list[int] | None = None, keepdims: int = 1
) -> Result:
    return _over("ReduceMax", data, axes, keepdims)


@onnx_op("ReduceMax", since=18, traits=REDUCTION)
def reduce_max(
    data: Expression,
    axes: Expression | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Result:
    return _over("ReduceMax", data, _list(axes), keepdims, noop_with_empty_axes)


@onnx_op("ReduceMin")
def reduce_min_over(
    data: Expression, *, axes: list[int] | None = None, keepdims: int = 1
) -> Result:
    return _over("ReduceMin", data, axes, keepdims)


@onnx_op("ReduceMin", since=18, traits=REDUCTION)
def reduce_min(
    data: Expression,
    axes: Expression | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Result:
    return _over("ReduceMin", data, _list(axes), keepdims, noop_with_empty_axes)


@onnx_op("ReduceProd")
def reduce_prod_over(
    data: Expression, *, axes: list[int] | None = None, keepdims: int = 1
) -> Result:
    return _over("ReduceProd", data, axes, keepdims)


@onnx_op("ReduceProd", since=18, traits=REDUCTION)
def reduce_prod(
    data: Expression,
    axes: Expression | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Result:
    return _over("ReduceProd", data, _list(axes), keepdims, noop_with_empty_axes)


@onnx_op("ReduceL1")
def reduce_l1_over(
    data: Expression, *, axes: list[int] | None = None, keepdims: int = 1
) -> Result:
    return _over("ReduceL1", data, axes, keepdims)


@onnx_op("ReduceL1", since=18, traits=REDUCTION)
def reduce_l1(
    data: Expression,
    axes: Expression | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Result:
    return _over("ReduceL1", data, _list(axes), keepdims, noop_with_empty_axes)


@onnx_op("ReduceL2")
def reduce_l2_over(
    data: Expression, *, axes: list[int] | None = None, keepdims: int = 1
) -> Result:
    return _over("ReduceL2", data, axes, keepdims)


@onnx_op("ReduceL2", since=18, traits=REDUCTION)
def reduce_l2(
    data: Expression,
    axes: Expression | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Result:
    return _over("ReduceL2", data, _list(axes), keepdims, noop_with_empty_axes)


@onnx_op("ReduceSumSquare")
def reduce_sum_square_over(
    data: Expression, *, axes: list[int] | None = None, keepdims: int = 1
) -> Result:
    return _over("ReduceSumSquare", data, axes, keepdims)


@onnx_op("ReduceSumSquare", since=18, traits=REDUCTION)
def reduce_sum_square(
    data: Expression,
    axes: Expression | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Result:
    return _over("ReduceSumSquare", data, _list(axes), keepdims, noop_with_empty_axes)


@onnx_op("ReduceLogSum")
def reduce_log_sum_over(
    data: Expression, *, axes: list[int] | None = None, keepdims: int = 1
) -> Result:
    return _over("ReduceLogSum", data, axes, keepdims)


@onnx_op("ReduceLogSum", since=18, traits=REDUCTION)
def reduce_log_sum(
    data: Expression,
    axes: Expression | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Result:
    return _over("ReduceLogSum", data, _list(axes), keepdims, noop_with_empty_axes)


@onnx_op("ReduceLogSumExp")
def reduce_log_sum_exp_over(
    data: Expression, *, axes: list[int] | None = None, keepdims: int = 1
) -> Result:
    return _over("ReduceLogSumExp", data, axes, keepdims)


@onnx_op("ReduceLogSumExp", since=18, traits=REDUCTION)
def reduce_log_sum_exp(
    data: Expression,
    axes: Expression | None = None,
    *,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Result:
    return _over("ReduceLogSumExp", data, _list(axes), keepdims, noop_with_empty_axes)


@onnx_op("ArgMax", traits=REDUCTION_TO_INDEX)
def arg_max(
    data: Expression, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
) -> Result:
    return _place("arg_max", data, axis, keepdims, select_last_index)


@onnx_op("ArgMin", traits=REDUCTION_TO_INDEX)
def arg_min(
    data: Expression, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
) -> Result:
    return _place("arg_min", data, axis, keepdims, select_last_index)


def _place(name: str, data: Expression, axis: int, keepdims: int, last: int) -> Result:
    options = {"axis": axis, "keepdims": bool(keepdims)}
    return call(name, data, **options, select_last_index=bool(last))


@onnx_op("Variance", domain="burnish", traits=OWN_SHAPE)
def variance(
    x: Expression, *, axes: list[int], keepdims: int, correction: float = 0.0
) -> Result:
    return _spread("var", x, axes, keepdims, correction)


@onnx_op("StandardDeviation", domain="burnish", traits=OWN_SHAPE)
def standard_deviation(
    x: Expression, *, axes: list[int], keepdims: int, correction: float = 0.0
) -> Result:
    return _spread("std", x, axes, keepdims, correction)


def _spread(
    name: str, x: Expression, axes: list[int], keepdims: int, correction: float
) -> Result:
    options: dict[str, Any] = {"keepdims": True} if keepdims else {}
    if correction:
        whole = int(correction) == correction
        options["correction"] = int(correction) if whole else correction
    return method(x, name, axes_option(axes), **options)
