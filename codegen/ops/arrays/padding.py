"""Pad, in the three forms that its inputs have had."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops.rule.expressions import (
    call,
    ints,
    number,
    operand,
    paired,
    tensor,
)
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE, RESIZE
from burnish.codegen.ops.rule.words import numbers
from burnish.codegen.ops.shapes import indexing
from burnish.codegen.program import Attribute, Expression, Literal, Method


@onnx_op("Pad", since=2)
def pad_of_constants(
    data: Expression, *, mode: str = "constant", pads: list[int], value: float = 0.0
) -> Result:
    return call("pad", data, pad_width=_pairs(pads), mode=mode, constant_values=value)


@onnx_op("Pad", since=11, traits=OWN_SHAPE | RESIZE, shapes=indexing.padded)
def pad(
    data: Expression,
    pads: Expression,
    constant_value: Expression | None = None,
    axes: Expression | None = None,
    *,
    mode: str = "constant",
    node: NodeContext,
) -> Result:
    value = 0 if constant_value is None else number(constant_value)
    along = None if axes is None else ints(axes)
    if isinstance(along, Expression) or not _known(along):
        options = {"pad_width": _rows(pads), "mode": mode, "axes": along}
        return call("pad", data, **options, constant_values=value)
    rank = data.rank or 0
    length = 2 * (rank if along is None else len(along))
    pairs = _pairs(numbers(node, pads, "pad", length) or [])
    if along is not None:
        chosen = {axis % rank: pair for axis, pair in paired(along, pairs)}
        pairs = tuple(chosen.get(i, (0, 0)) for i in range(rank))
    return call(
        "pad", data, pad_width=_displayed(pairs), mode=mode, constant_values=value
    )


def _pairs(pads: list[Any]) -> tuple[Any, ...]:
    """ONNX's begins-then-ends as (before, after) for each axis."""
    rank = len(pads) // 2
    return tuple(paired(pads[:rank], pads[rank:]))


def _known(axes: list[Any] | None) -> bool:
    return not any(isinstance(axis, Expression) for axis in axes or ())


def _rows(pads: Expression) -> Any:
    """Begins-then-ends as pairs, also where only the running model knows how many."""
    listed = ints(pads)
    if isinstance(listed, list):
        return _displayed(_pairs(listed))
    columns = Method(tensor(pads), "reshape", (Literal(2), Literal(-1)))
    return Method(Attribute(columns, "T"), "tolist")


def _displayed(pairs: tuple[Any, ...]) -> Any:
    if any(isinstance(n, Expression) for pair in pairs for n in pair):
        return tuple(operand(pair) for pair in pairs)
    return pairs
