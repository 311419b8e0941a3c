"""Pooling."""

from __future__ import annotations

from burnish.codegen.ops._rules import Result, call, onnx_op
from burnish.codegen.ops.conv import alike, padding
from burnish.codegen.program import Expression


@onnx_op("AveragePool", since=7)
def average_pool(
    X: Expression,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: list[int] | None = None,
    kernel_shape: list[int],
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Result:
    rank = len(kernel_shape)
    return call(
        "avg_pool",
        X,
        kernel_size=alike(kernel_shape),
        stride=alike(strides or [1] * rank),
        padding=padding(auto_pad, pads or [0] * 2 * rank),
    )
