"""Python's `if` and loops on tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from burnish.capture.ref import Ref
from burnish.codegen.writers.traced.emitter import Emitter
from burnish.codegen.writers.traced.rounds import Counted
from burnish.codegen.writers.traced.table import writes
from burnish.codegen.writers.traced.tape import Block


@writes("step fork")
def fork(emit: Emitter, condition: Any, *, then: Block, otherwise: Block) -> Any:
    made = emit(
        "If",
        _truth(emit, condition),
        outputs=len(emit.results),
        then_branch=emit.body("then", (), lambda: emit.block(then)),
        else_branch=emit.body("else", (), lambda: emit.block(otherwise)),
    )
    return made if isinstance(made, tuple) else (made,)


@writes("step repeat")
def repeat(
    emit: Emitter,
    count: Any,
    condition: Any,
    first: Sequence[Any],
    *,
    body: Block,
    stays: bool,
    counted: Sequence[Counted],
) -> Any:
    round_ = emit.taken(Ref(0, (), np.dtype(np.int64)), "round")
    going = emit.taken(Ref(0, (), np.dtype(np.bool_)), "going")
    takes = [emit.taken(ref) for ref in body.takes[: len(first)]]

    def steps() -> list[Any]:
        numbers = [_number(emit, round_, each) for each in counted]
        for ref, value in zip(body.takes, (*takes, *numbers), strict=True):
            emit.values[ref.place] = value
        asked, *results = emit.block(body)
        return [going if asked is None else _stays(emit, asked, stays), *results]

    # ONNX's own evaluator never enters a loop without a condition
    begins = np.True_ if condition is None else _stays(emit, condition, stays)
    most = None if count is None else emit.reshape(emit.cast(count, np.int64), ())
    graph = emit.body("rounds", (round_, going, *takes), steps)
    made = emit("Loop", most, begins, *first, outputs=len(emit.results), body=graph)
    return made if isinstance(made, tuple) else (made,)


def _number(emit: Emitter, round_: ir.Value, number: Counted) -> ir.Value:
    """The value of a Python number in one iteration."""
    kind = number.start.dtype
    made = round_ if kind == np.int64 else emit.cast(round_, kind)
    if number.step.shape or number.step != 1:
        made = emit("Mul", made, number.step.astype(kind))
    if number.start.shape or number.start != 0:
        made = emit("Add", made, number.start)
    return made


def _stays(emit: Emitter, condition: Any, stays: bool) -> Any:
    asked = _truth(emit, condition)
    return asked if stays else emit("Not", asked)


def _truth(emit: Emitter, condition: Any) -> Any:
    """A tensor of one element as ONNX wants it of a condition."""
    asked = emit.cast(condition, np.bool_)
    return emit("Reshape", asked, emit.ints([])) if condition.shape else asked
