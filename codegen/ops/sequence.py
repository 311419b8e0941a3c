"""Sequences are Python lists; an optional value is itself or None."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops.arrays.shape import shape_option
from burnish.codegen.ops.rule.expressions import call, method, number, operand, tensor
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE, UNBOUNDED
from burnish.codegen.ops.rule.words import is_scalar
from burnish.codegen.program import (
    BinOp,
    Call,
    Expression,
    ListOrTuple,
    Literal,
    Slice,
    Subscript,
    UnaryOp,
)
from burnish.codegen.symbolic.host import host


@onnx_op("SequenceConstruct", traits=OWN_SHAPE)
def sequence_construct(*inputs: Expression) -> Result:
    return ListOrTuple(tuple(map(tensor, inputs)))


@onnx_op("SequenceEmpty", traits=OWN_SHAPE)
def sequence_empty(*, dtype: int | None = None) -> Result:
    return ListOrTuple(())


@onnx_op("SequenceAt", traits=OWN_SHAPE)
def sequence_at(input_sequence: Expression, position: Expression) -> Result:
    return Subscript(input_sequence, (_place(position),))


def _place(position: Expression) -> Expression:
    return operand(number(position))


def _all(items: Expression) -> Expression:
    return UnaryOp("*", items)


def _part(
    items: Expression, start: Expression | None, stop: Expression | None = None
) -> Expression:
    return Subscript(items, (Slice(start, stop),))


@onnx_op("SequenceInsert", traits=OWN_SHAPE)
def sequence_insert(
    input_sequence: Expression,
    tensor_: Expression,
    position: Expression | None = None,
) -> Result:
    added = tensor(tensor_)
    if position is None:
        return ListOrTuple((_all(input_sequence), added))
    place = _place(position)
    before = _part(input_sequence, None, place)
    after = _part(input_sequence, place)
    return ListOrTuple((_all(before), added, _all(after)))


@onnx_op("SequenceErase", traits=OWN_SHAPE)
def sequence_erase(
    input_sequence: Expression, position: Expression | None = None
) -> Result:
    place: Any = Literal(-1) if position is None else _place(position)
    before = _part(input_sequence, None, place)
    if isinstance(place, Literal) and place.value == -1:
        return before
    rest = _part(_part(input_sequence, place), Literal(1))
    return ListOrTuple((_all(before), _all(rest)))


@onnx_op("SequenceLength", traits=OWN_SHAPE)
def sequence_length(input_sequence: Expression) -> Result:
    return host(Call("len", (input_sequence,)))


@onnx_op("ConcatFromSequence", traits=OWN_SHAPE)
def concat_from_sequence(
    input_sequence: Expression, *, axis: int, new_axis: int = 0
) -> Result:
    joined = "stack" if new_axis else "concat"
    return call(joined, input_sequence, axis=axis)


@onnx_op("SplitToSequence", traits=OWN_SHAPE | UNBOUNDED)
def split_to_sequence(
    input_: Expression,
    split: Expression | None = None,
    *,
    axis: int = 0,
    keepdims: int = 1,
    node: NodeContext,
) -> Result:
    sizes: Any = 1
    if split is not None:
        sizes = number(split) if is_scalar(split) or split.rank == 0 else None
        sizes = shape_option(split) if sizes is None else sizes
    if split is not None or keepdims:
        along = {"axis": axis} if axis else {}
        return Call("list", (method(input_, "split", sizes, **along),))
    if axis == 0:
        return Call("list", (tensor(input_),))
    rank = input_.rank or 0
    order = (axis % rank, *(i for i in range(rank) if i != axis % rank))
    return Call("list", (method(input_, "transpose", *order),))


@onnx_op("Optional", traits=OWN_SHAPE)
def optional(input_: Expression | None = None, *, type_: Any = None) -> Result:
    return Literal(None) if input_ is None else input_


@onnx_op("OptionalGetElement", traits=OWN_SHAPE)
def optional_get_element(input_: Expression) -> Result:
    return input_


@onnx_op("OptionalHasElement", traits=OWN_SHAPE)
def optional_has_element(input_: Expression | None = None) -> Result:
    if input_ is None or (isinstance(input_, Literal) and input_.value is None):
        return host(False, "bool")
    return host(BinOp("is not", input_, Literal(None)), "bool")
