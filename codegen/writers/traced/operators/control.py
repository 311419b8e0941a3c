"""Python's `if` on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.writers.traced.emitter import Emitter
from burnish.codegen.writers.traced.table import writes
from burnish.codegen.writers.traced.tape import Block


@writes("step fork")
def fork(emit: Emitter, condition: Any, *, then: Block, otherwise: Block) -> Any:
    made = emit(
        "If",
        truth(emit, condition),
        outputs=len(emit.results),
        then_branch=emit.body(then, "then"),
        else_branch=emit.body(otherwise, "else"),
    )
    return made if isinstance(made, tuple) else (made,)


def truth(emit: Emitter, condition: Any) -> Any:
    """A tensor of one element as ONNX wants it of a condition."""
    asked = emit.cast(condition, np.bool_)
    return emit("Reshape", asked, emit.ints([])) if condition.shape else asked
