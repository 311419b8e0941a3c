"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from burnish.codegen.ops.rule.expressions import call, ints, method, operand
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.simple import called
from burnish.codegen.ops.rule.traits import OWN_SHAPE, REDUCTION, REDUCTION_TO_INDEX
from burnish.codegen.ops.rule.words import axes_option, is_integer
from burnish.codegen.program import BinOp, Call, Expression, Literal, Method


class _Reduction(NamedTuple):
    """What an operator of ONNX's becomes.

    function: of `burnish.ops`. method: of tensors, which is called instead. alone: the
    elementwise part, the result over no axis. is_cut: means and logarithms of integers
    are cut to integers. since: the opset version from which on axes are an input.
    """

    function: str
    method: str = ""
    alone: Callable[[Expression], Result] | None = None
    is_cut: bool = False
    since: int = 18


def _magnitude(x: Expression) -> Result:
    return Call("abs", (operand(x),))


def _square(x: Expression) -> Result:
    return BinOp("*", operand(x), operand(x))


def _logarithm(x: Expression) -> Result:
    return _cut(x, call("log", x))


_REDUCTIONS = {
    "ReduceSum": _Reduction("reduce_sum", "sum", since=13),
    "ReduceMean": _Reduction("reduce_mean", "mean", is_cut=True),
    "ReduceMax": _Reduction("reduce_max", "max"),
    "ReduceMin": _Reduction("reduce_min", "min"),
    "ReduceProd": _Reduction("reduce_prod", "prod"),
    "ReduceL1": _Reduction("reduce_l1", alone=_magnitude),
    "ReduceL2": _Reduction("reduce_l2", alone=_magnitude, is_cut=True),
    "ReduceSumSquare": _Reduction("reduce_sum_square", alone=_square),
    "ReduceLogSum": _Reduction("reduce_log_sum", alone=_logarithm, is_cut=True),
    "ReduceLogSumExp": _Reduction("reduce_log_sum_exp", is_cut=True),
}


def _declare(op_type: str, kind: _Reduction) -> None:
    """Declare an operator's two rules: axes are an attribute, then an input."""

    def of_attribute(
        data: Expression, *, axes: list[int] | None = None, keepdims: int = 1
    ) -> Result:
        return _over(kind, data, axes, keepdims)

    def of_input(
        data: Expression,
        axes: Expression | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Result:
        return _over(kind, data, _list(axes), keepdims, noop_with_empty_axes)

    of_attribute.__name__ = of_input.__name__ = kind.function
    onnx_op(op_type)(of_attribute)
    onnx_op(op_type, since=kind.since, traits=REDUCTION)(of_input)


def _over(
    kind: _Reduction, x: Expression, axes: Any, keepdims: int, noop: int = 0
) -> Result:
    """axes: numbers, an expression for a list, or None and [] for every axis."""
    if noop and (axes is None or axes == []):
        return kind.alone(x) if kind.alone else x
    chosen = axes_option(axes or None)
    if isinstance(axes, Expression) and not noop:
        every = Literal(None)
        chosen = BinOp("or", Call("tuple", (axes,)), every)
    made: Expression
    if kind.method:
        given = {"keepdims": True} if keepdims else {}
        made = method(x, kind.method, *([] if chosen is None else [chosen]), **given)
    else:
        made = call(kind.function, x, axes=chosen, keepdims=keepdims)
    return _cut(x, made) if kind.is_cut else made


def _cut(x: Expression, made: Expression) -> Expression:
    """The result in the type of integers that were reduced."""
    return Method(made, "to", (Literal(x.dtype),)) if is_integer(x.dtype) else made


def _list(axes: Expression | None) -> Any:
    if axes is None:
        return None
    return [] if axes.shape == (0,) else ints(axes)


for _op_type, _kind in _REDUCTIONS.items():
    _declare(_op_type, _kind)


_PLACE = {"axis": 0, "keepdims": 1, "select_last_index": 0}
called("ArgMax", "arg_max", "data", _PLACE, traits=REDUCTION_TO_INDEX)
called("ArgMin", "arg_min", "data", _PLACE, traits=REDUCTION_TO_INDEX)


def _spread(
    name: str, x: Expression, *, axes: list[int], keepdims: int, correction: float = 0.0
) -> Result:
    options: dict[str, Any] = {"keepdims": True} if keepdims else {}
    if correction:
        whole = int(correction) == correction
        options["correction"] = int(correction) if whole else correction
    return method(x, name, axes_option(axes), **options)


@onnx_op("Variance", domain="burnish", traits=OWN_SHAPE, options=_spread)
def variance(x: Expression, **options: Any) -> Result:
    return _spread("var", x, **options)


@onnx_op("StandardDeviation", domain="burnish", traits=OWN_SHAPE, options=_spread)
def standard_deviation(x: Expression, **options: Any) -> Result:
    return _spread("std", x, **options)
