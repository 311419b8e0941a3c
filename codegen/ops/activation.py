"""Activations."""

from __future__ import annotations

from burnish.codegen.ops._rules import Result, call, known, layer, onnx_op, plain
from burnish.codegen.program import Expression


@onnx_op("Relu")
def relu(X: Expression) -> Result:
    return call("relu", X)


@onnx_op("Dropout", since=12)
def dropout(
    data: Expression,
    ratio: Expression | None = None,
    training_mode: Expression | None = None,
    *,
    seed: int | None = None,
) -> Result:
    rate = known(ratio)
    p = 0.5 if rate is None else plain(rate.reshape(()))
    return layer("Dropout", (p,), {}, {}, data)
